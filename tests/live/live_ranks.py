"""A job of two ranks for `compilediag live`; a program for tests.

torchrun --nproc-per-node 2 live_ranks.py FOLDER GO

The ranks watch into FOLDER. Both recompile twice; then rank 1 compiles until the file GO exists, and rank 0 waits.
"""

import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

import compilediag as cd


def slow(graph, inputs):
    while not Path(sys.argv[2]).exists():
        time.sleep(0.05)
    return graph.forward


@torch.compile(backend="eager", dynamic=False)
def step(x):
    return x.relu() + 1


@torch.compile(backend=slow)
def late(x):
    return x * 2


if __name__ == "__main__":
    with cd.watch(sys.argv[1]):
        dist.init_process_group("gloo")
        for size in (4, 6, 9):
            dist.all_reduce(step(torch.ones(size)))
        value = torch.ones(2)
        dist.all_reduce(late(value) if dist.get_rank() == 1 else value)
        dist.destroy_process_group()
