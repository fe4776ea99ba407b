"""Programs whose trace records are rare: symbolic shapes, failures, an export that is not sound, provenance, ranks.

python -m tests.live.recorded NAME [RANK PORT]
"""

import contextlib
import os
import sys

import torch


def shapes():
    """A branch on a dynamic size, a size that is fixed by what it meets, a value that only data can tell."""

    @torch.compile(backend="eager", dynamic=True)
    def branch(x, n):
        if x.shape[0] > 3:
            x = x * 2
        return x[:n]

    @torch.compile(backend="eager", dynamic=True)
    def fixed(x):
        return x + torch.ones(5)

    branch(torch.ones(6, 2), 3)
    branch(torch.ones(2, 2), 2)
    fixed(torch.ones(5))


def failures():
    """A break where none may be, a backend that raises, an expression that only data can decide."""

    @torch.compile(backend="eager", fullgraph=True)
    def breaks(x):
        print(x)
        return x

    def broken(graph, inputs):
        raise ValueError("the backend is broken")

    @torch.compile(backend="eager", fullgraph=True)
    def undecided(x):
        n = x.sum().item()
        torch._check(n > 1)
        return x + 1 if n > 2 else x

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for function in (breaks, torch.compile(lambda x: x + 1, backend=broken), undecided):
            with contextlib.suppress(Exception):
                function(torch.tensor([1, 2]))


def export():
    """An operator without a fake kernel, one whose fake kernel is wrong, and a branch on data."""
    from torch.export._draft_export import draft_export

    library = torch.library.Library("cdiag", "DEF")
    library.define("plain(Tensor a) -> Tensor")
    library.define("cut(Tensor a) -> Tensor")
    library.impl("plain", lambda a: a.clone(), "CPU")
    library.impl("cut", lambda a: a.clone()[:2], "CPU")
    torch.library.register_fake("cdiag::cut", torch.empty_like, lib=library)

    class Model(torch.nn.Module):
        def forward(self, a, b, c):
            result = torch.ops.cdiag.plain(a) + torch.ops.cdiag.cut(b).sum()
            if c.item() > 2:
                result = result + 1
            return result

    draft_export(Model(), (torch.ones(3, 3), torch.ones(4, 4), torch.tensor(5)))
    library._destroy()


def provenance():
    """A graph whose kernels Inductor traces back to the lines of the program."""
    with torch._inductor.config.patch("trace.provenance_tracking_level", 1):
        compiled = torch.compile(lambda x, w: (torch.relu(x @ w) + 1).sum(-1))
        compiled(torch.ones(8, 8, requires_grad=True), torch.ones(8, 8)).sum().backward()


def collectives(rank, port):
    """Two ranks whose graph reduces and gathers."""
    import torch.distributed as dist
    import torch.distributed._functional_collectives as functional
    from torch._inductor.debug import record_and_log_graph_execution_order

    os.environ.update(RANK=rank, WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo")

    @torch.compile
    def step(x):
        reduced = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
        return functional.all_gather_tensor(reduced + 1, 0, dist.group.WORLD) * 2

    with record_and_log_graph_execution_order(), torch._inductor.config.patch(log_tlparse=True):
        step(torch.ones(4))
        step(torch.ones(4))
    dist.destroy_process_group()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
