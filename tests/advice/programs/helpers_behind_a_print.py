import contextlib

import torch


@contextlib.contextmanager
def scope(name):
    yield name


def check(x):
    return x


@torch.compile
def forward(x):
    for _ in range(2):
        print("a layer")
        with scope("layer"), contextlib.suppress(ValueError), contextlib.ExitStack() as stack:
            stack.enter_context(scope("inner"))
            x = torch.sin(check(x))
    return x


results = forward(torch.ones(4))
