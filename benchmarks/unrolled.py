"""What an unrolled loop costs, and what is left if its body is compiled once: the table of docs/compile_time.md.

    python -m benchmarks.unrolled

Each row is a process of its own, without caches. Seconds are those of the processor.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import torch
from torch import nn

STEPS, CALLS = 64, 50
WAYS = ("loop", "cell", "region")


class Cell(nn.Module):
    def __init__(self, size: int = 32):
        super().__init__()
        self.inner, self.outer = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.inner(x) + self.outer(h)) * 0.5 + h * 0.5


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = Cell()

    def forward(self, xs: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        for x in xs:
            h = self.cell(x, h)
        return h


def measure(way: str) -> None:
    import compilediag

    torch.manual_seed(0)
    torch.compile(lambda x: x + 1)(torch.ones(4))  # What a process pays once.
    if way == "region":
        Cell.forward = torch.compiler.nested_compile_region(Cell.forward)  # type: ignore[method-assign]
    model, xs, h = Recurrent(), torch.randn(STEPS, 4, 32), torch.zeros(4, 32)
    if way == "cell":
        model.cell.compile()
    else:
        model.compile()
    with torch.no_grad(), compilediag.watch(detail="lean") as session:
        begin = time.process_time()
        model(xs, h)
        first = time.process_time() - begin
        model(xs, h)
        begin = time.process_time()
        for _ in range(CALLS):
            model(xs, h)
        later = (time.process_time() - begin) / CALLS
    saved = sum(finding.seconds_lost for finding in session.findings() if finding.rule == "unrolled_loop")
    share = saved / session.compiles["duration_s"].sum()
    print(f"{way:8} first call {first:.2f} s, estimate {share:.0%} of it, later calls {1e3 * later:.2f} ms")


def main() -> None:
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    plain = {"TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1", "TORCHINDUCTOR_COMPILE_THREADS": "1", "OMP_NUM_THREADS": "1"}
    for way in WAYS:
        command = [sys.executable, "-m", "benchmarks.unrolled", way]
        subprocess.run(command, check=True, env={**os.environ, **plain})


if __name__ == "__main__":
    main()
