"""A program for tests: all small programs, and Inductor's caches, under a watch; TORCH_TRACE names where torch logs it.

python -m tests.live.traced SESSION.cdiag
"""

import copy
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


def copies():
    """A graph break inside Python's library, and one inside torch."""

    def f(x):
        y = copy.deepcopy(x.sin())
        torch.nn.utils.clip_grad_norm_([parameter], 1.0, error_if_nonfinite=True)
        return y * 2

    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    programs.compiled(f)(torch.ones(3))


if __name__ == "__main__":
    with cd.watch(sys.argv[1]):
        for program in programs.ALL:
            program()
        copies()
        inductor()
