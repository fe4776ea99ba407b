"""A program for tests: all small programs, and Inductor's caches, under a watch; TORCH_TRACE names where torch logs it.

python -m tests.live.traced SESSION.cdiag
"""

import sys

import torch

import compilediag as cd
from tests.live import programs


def inductor():
    """A miss, a miss of another graph, a hit of what a reset forgot, and a backward."""
    for factor in (2, 3, 2):
        torch._dynamo.reset()
        torch.compile(lambda x, by=factor: x * by + 1)(torch.ones(3))
    x = torch.ones(3, requires_grad=True)
    torch.compile(lambda x: x.sin())(x).sum().backward()


if __name__ == "__main__":
    with cd.watch(sys.argv[1]):
        for program in programs.ALL:
            program()
        inductor()
