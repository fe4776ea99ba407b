"""A torch.distributed job of two ranks (gloo, on the CPU) that compile one product; a program for tests.

python -m tests.live.ranks_multiply RANK MEETING FOLDER
torchrun --nproc-per-node 2 ranks_multiply.py 0 MEETING FOLDER

MEETING is a file for the ranks to meet in, FOLDER what they watch into. Nothing needs a C++ compiler. With the variable
LOAD, artifacts of each rank are loaded before; with ENDLESS, the ranks reduce until somebody ends them.
"""

import os
import sys

import torch
import torch.distributed as dist

import compilediag as cd


def main(rank: int, meeting: str, folder: str) -> None:
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    if "LOAD" in os.environ:
        with open(os.environ["LOAD"].replace("{rank}", str(rank)), "rb") as file:
            torch.compiler.load_cache_artifacts(file.read())
        dist.barrier()
    with cd.watch(path=folder), torch.no_grad():
        multiply = torch.compile(torch.nn.Linear(8, 8, bias=False))
        dist.all_reduce(multiply(torch.ones(4, 8)))
        while "ENDLESS" in os.environ:
            dist.all_reduce(multiply(torch.ones(4, 8)))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(os.environ.get("RANK", sys.argv[1])), *sys.argv[2:])
