"""What watching costs a compiled call that hits: nothing, as far as can be told."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import torch
from measure import Estimate, estimate, in_turn, timed
from variants import VARIANTS

NAMES = ("unwatched", "unwatched again", "lean", "full")


@dataclass(frozen=True)
class Calls:
    """One variant: CPU ns a call, and how many more than unwatched in the block beside it."""

    variant: str
    ns: float
    more_ns: Estimate


def compare_calls(calls: int, blocks: int) -> list[Calls]:
    """`calls` calls a variant in `blocks` blocks, in turn. A watch begins before its block and ends after it."""
    torch._dynamo.reset()
    x = torch.ones(4)
    step = torch.compile(lambda x: x + 1, backend="eager")
    with torch.no_grad():
        step(x)
        taken: dict[str, list[float]] = defaultdict(list)
        for name in in_turn(NAMES, blocks):
            taken[name].append(_block(step, x, name, calls // blocks))
    base = taken["unwatched"]
    return [
        Calls(name, estimate(taken[name]).value, estimate([a - b for a, b in zip(taken[name], base, strict=True)]))
        for name in NAMES
    ]


def _block(step: object, x: torch.Tensor, variant: str, calls: int) -> float:
    def work() -> None:
        for _ in range(calls):
            step(x)

    with VARIANTS[variant]():
        return timed(work)[1] / calls * 1e9
