"""A torch.distributed job of two ranks (gloo, on the CPU) whose ranks part ways at a call; a program for tests.

python -m tests.live.two_ranks RANK MEETING FOLDER

MEETING is a file for the ranks to meet in, FOLDER what they watch into. No variable says which rank this is.
"""

import sys

import torch
import torch.distributed as dist

import compilediag as cd


def step(x, flag):
    y = x.relu() + 1
    return y.sin() if flag else y.cos()


def scale(x):
    return x * 2


def main(rank: int, meeting: str, folder: str) -> None:
    with cd.watch(path=folder):
        compiled, other = (torch.compile(f, backend="aot_eager", dynamic=False) for f in (step, scale))
        compiled(torch.ones(4), True)  # Nobody knows yet which rank this is.
        cd.current().flush()
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
        dist.all_reduce(compiled(torch.ones(8), True).sum())
        # From here on the batches differ: one fits what is compiled, one does not.
        dist.all_reduce(compiled(torch.ones(9 if rank == 1 else 8), True).sum())
        other(torch.ones(3))
        cd.current().flush()  # The writer asks for the rank, and here it still has an answer.
        dist.destroy_process_group()
        compiled(torch.ones(4), rank == 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
