"""The programs that the campaigns watch, and how a campaign reports."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Sequence

import torch

#: What a line of a campaign's output begins with that is a row of the table.
ROW = "soak: "
#: Until when campaigns may run, in seconds of time.time(); set by `python -m benchmarks.soak`.
END = "COMPILEDIAG_SOAK_END"


def report(what: str, count: int, problems: Iterable[str], note: str = "") -> None:
    """Print a row of the table: how often something was tried, and what went wrong."""
    row = {"what": what, "count": count, "problems": list(problems), "note": note}
    print(ROW + json.dumps(row), flush=True)


def is_time_left() -> bool:
    """False when the soak has to end; what was tried until then is reported."""
    return time.time() < float(os.environ.get(END, "inf"))


def is_quick() -> bool:
    """True with --quick: fewer rounds, to try a campaign."""
    return "--quick" in sys.argv


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(8, 16)
        self.second = torch.nn.Linear(16, 4)

    def forward(self, x: torch.Tensor, scale: int) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)) * scale)


def break_graph(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    torch._dynamo.graph_break()
    return y.sin()


def run_inductor(calls: Sequence[tuple[int, int]] = ((3, 1), (5, 2))) -> list[bytes]:
    """Compile with Inductor, forward and backward, with recompiles and a graph break; the bytes of all results."""
    torch._dynamo.reset()
    model = Model()
    compiled = torch.compile(model)
    results = []
    for size, scale in calls:
        x = torch.arange(8.0 * size).reshape(size, 8)
        compiled(x, scale).sum().backward()
        results.append(model.first.weight.grad)
        model.zero_grad()
    with torch.no_grad():
        results.append(compiled(torch.ones(3, 8), 1))
    results.append(torch.compile(break_graph)(torch.ones(4)))
    return [result.detach().numpy().tobytes() for result in results]


def add_length(x: torch.Tensor, name: str) -> torch.Tensor:
    return x + len(name)


def run_eager(calls: int = 4) -> list[list[float]]:
    """Compile with the backend "eager": one compile, then a recompile at each call."""
    torch._dynamo.reset()
    compiled = torch.compile(add_length, backend="eager")
    return [compiled(torch.ones(2), "n" * n).tolist() for n in range(calls)]


def expect_eager(calls: int = 4) -> list[list[float]]:
    """What `run_eager` gives."""
    return [[1.0 + n] * 2 for n in range(calls)]
