"""Looks up graphs in every way that torch reports to a trace log; it needs torch 2.4 or later and nothing else.

python tests/golden/cache_programs.py, with TORCH_TRACE and an empty TORCHINDUCTOR_CACHE_DIR
"""

import contextlib
import os
import shutil

import torch

CACHE = os.path.join(os.environ["TORCHINDUCTOR_CACHE_DIR"], "fxgraph")


def settings(**wanted):
    """A block with those of the settings that this torch has."""
    import torch._functorch.config
    import torch._inductor.config

    stack = contextlib.ExitStack()
    for name, value in wanted.items():
        group, _, key = name.partition("__")
        config = {"functorch": torch._functorch.config, "inductor": torch._inductor.config}[group]
        if hasattr(config, key):
            stack.enter_context(config.patch({key: value}))
    return stack


def call(*factors, grad=False):
    """Compiles one graph per factor, with its backward if `grad`, as if torch had compiled nothing in this process."""
    torch._dynamo.reset()

    def scale(x, factor):
        return (x * factor).sin()

    compiled = torch.compile(scale, dynamic=False)
    for factor in factors:
        x = torch.ones(4, requires_grad=grad)
        y = compiled(x, factor)
        if grad:
            y.sum().backward()


def call_custom(function):
    """Compiles a function of a tensor."""
    torch._dynamo.reset()
    torch.compile(function)(torch.ones(3))


def sized(*sizes):
    """Compiles for a symbolic size."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x.cos() if x.shape[0] > 8 else x.sin(), dynamic=True)
    for size in sizes:
        compiled(torch.ones(size))


def main():
    with contextlib.suppress(AttributeError):
        torch.compiler.config.job_id = "job"
    with settings(inductor__fx_graph_cache=True, functorch__enable_autograd_cache=False):
        call(2, 3)
        call(2, 3)  # Found.
        sized(4)
        sized(16)  # The entry is of a shorter tensor.
        with settings(inductor__post_grad_custom_pre_pass=lambda graph: None):
            call(4)  # Bypassed.
    with settings(inductor__fx_graph_cache=False, functorch__enable_autograd_cache=False):
        call(5)
    with settings(inductor__fx_graph_cache=True, functorch__enable_autograd_cache=True):
        call(6, 7, 8, 9, 10, grad=True)
        call(6, 7, 8, 9, 10, grad=True)  # Ten graphs of five entries.
        shutil.rmtree(CACHE, ignore_errors=True)
        call(6, 7, grad=True)  # The entries are found, their graphs are gone.
        with settings(functorch__bundled_autograd_cache=True):
            call(11, grad=True)
            call(11, grad=True)


if __name__ == "__main__":
    main()
