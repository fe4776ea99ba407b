"""Rounds of several variants in turn, and what their ratios say."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A median with its 95 % interval by bootstrap."""

    value: float
    low: float
    high: float

    def shows_difference(self) -> bool:
        """True if the interval leaves zero out."""
        return not self.low <= 0 <= self.high


def estimate(values: Sequence[float]) -> Estimate:
    """The median of at least one value; the interval is only as good as their number."""
    data = np.asarray(values, dtype=float)
    picks = np.random.default_rng(0).integers(0, len(data), (RESAMPLES, len(data)))
    low, high = np.percentile(np.median(data[picks], axis=1), [2.5, 97.5])
    return Estimate(float(np.median(data)), float(low), float(high))


def excess(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """How much more, as a share of `base`: the median over the pairs that ran beside each other."""
    return estimate([value / other - 1 for value, other in zip(values, base, strict=True)])


def in_turn(names: Sequence[str], cycles: int) -> Iterator[str]:
    """Every name once a cycle, each cycle beginning with the next one, so that no place in the order is one's own."""
    for cycle in range(cycles):
        at = cycle % len(names)
        yield from (*names[at:], *names[:at])


def timed(work: Callable[[], None]) -> tuple[float, float]:
    """(wall s, CPU s of the whole process, all threads) of one call, with no garbage of others in it."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu
