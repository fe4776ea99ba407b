"""Alternate rounds of several variants, and estimate their times and ratios."""

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
        """Return True if the interval does not contain zero."""
        return not self.low <= 0 <= self.high


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate the median of at least one value. Few values give an unreliable interval."""
    data = np.asarray(values, dtype=float)
    picks = np.random.default_rng(0).integers(0, len(data), (RESAMPLES, len(data)))
    low, high = np.percentile(np.median(data[picks], axis=1), [2.5, 97.5])
    return Estimate(float(np.median(data)), float(low), float(high))


def estimate_excess(values: Sequence[float], base: Sequence[float]) -> Estimate:
    """Estimate the excess over `base` as a share of it: the median over pairs of the same cycle."""
    return estimate([value / other - 1 for value, other in zip(values, base, strict=True)])


def alternate(names: Sequence[str], cycles: int) -> Iterator[str]:
    """Yield every name once per cycle. Each cycle starts with the next name, so that the order favors no name."""
    for cycle in range(cycles):
        start = cycle % len(names)
        yield from (*names[start:], *names[:start])


def time_call(work: Callable[[], None]) -> tuple[float, float]:
    """Return the wall s and the CPU s (whole process, all threads) of one call, after a garbage collection."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu
