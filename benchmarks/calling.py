"""Measure the cost of watching a compiled call that hits the cache. No difference has been measurable."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
from measure import Estimate, alternate, estimate, time_call
from variants import VARIANTS

NAMES = ("unwatched", "unwatched again", "lean", "full")


@dataclass(frozen=True)
class Calls:
    """One variant: CPU ns per call, and the difference to the unwatched block of the same cycle."""

    variant: str
    ns: float
    more_ns: Estimate


def compare_calls(calls: int, blocks: int) -> list[Calls]:
    """Run `calls` calls per variant in `blocks` alternating blocks. A watch spans one block."""
    torch._dynamo.reset()
    x = torch.ones(4)
    step = torch.compile(lambda x: x + 1, backend="eager")
    with torch.no_grad():
        step(x)
        ns_per_call: dict[str, list[float]] = defaultdict(list)
        for name in alternate(NAMES, blocks):
            ns_per_call[name].append(_measure_block(step, x, name, calls // blocks))
    base = ns_per_call["unwatched"]
    return [
        Calls(
            name,
            estimate(ns_per_call[name]).value,
            estimate([a - b for a, b in zip(ns_per_call[name], base, strict=True)]),
        )
        for name in NAMES
    ]


def _measure_block(step: object, x: torch.Tensor, variant: str, calls: int) -> float:
    def work() -> None:
        for _ in range(calls):
            step(x)

    with VARIANTS[variant]():
        return time_call(work)[1] / calls * 1e9
