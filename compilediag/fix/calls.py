"""What the outer calls into compiled code of a run returned, and whether another run's returned the same."""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..events import Compile
from ..storage.data import SessionData
from ..trials.fresh_process import CALLS_FILE

#: Relative difference of two sums or norms that other kernels for the same mathematics make, by dtype.
_TOLERANCE = 1e-3
_LOW_PRECISION = {"torch.bfloat16": 2e-2, "torch.float16": 5e-3}


@dataclass(frozen=True)
class OuterCalls:
    """The outer calls of a run, in their order.

    `count` is their number, of which the first have `begins` (ns of the wall clock), `durations` (ns) and `digests`.
    `last_compile` is the number of the call at which something was compiled last; 0 without one. `longest_gap` is the
    largest number of calls between two at which something was compiled.
    """

    count: int = 0
    begins: tuple[int, ...] = ()
    durations: tuple[int, ...] = ()
    digests: tuple[Any, ...] = ()
    last_compile: int = 0
    longest_gap: int = 0

    @property
    def warm_s(self) -> float | None:
        """Median duration (s) of the calls after the last compile; None if there are fewer than three."""
        warm = self.durations[self.last_compile :]
        return statistics.median(warm) / 1e9 if len(warm) >= 3 else None


def read_calls(session: Path) -> OuterCalls | None:
    """The outer calls of the run that recorded this session; None if they were not observed."""
    try:
        found = json.loads((session.parent / CALLS_FILE).read_text())
        begins, durations, digests = zip(*found["calls"], strict=True) if found["calls"] else ((), (), ())
    except (OSError, ValueError, KeyError, TypeError):
        return None
    compiled = sorted({sum(begin <= row.time_ns for begin in begins) for row in SessionData(session).rows(Compile)})
    gaps = (after - before for before, after in itertools.pairwise(compiled))
    return OuterCalls(found["count"], begins, durations, digests, compiled[-1] if compiled else 0, max(gaps, default=0))


def find_other_result(without: Sequence[OuterCalls], changed: OuterCalls) -> int | None:
    """The number of the first call that returned something else than in the unchanged runs; None if none did.

    Calls whose results differ between the unchanged runs are passed over, and so is what one of the runs has not.
    """
    first = without[0].digests
    for number, (expected, found) in enumerate(zip(first, changed.digests, strict=False), 1):
        known = [one.digests[number - 1] for one in without[1:] if number <= len(one.digests)]
        if all(_is_same(expected, one) for one in known) and not _is_same(expected, found):
            return number
    return None


def _is_same(one: list[Any], other: list[Any]) -> bool:
    return len(one) == len(other) and all(map(_is_near, one, other))


def _is_near(one: list[Any], other: list[Any]) -> bool:
    """Two digests of a tensor, `[shape, dtype, sum, norm]`, or of a number."""
    if len(one) == len(other) == 4 and one[:2] == other[:2]:
        allowed = _LOW_PRECISION.get(one[1], _TOLERANCE)
        # A sum can cancel out, so its difference is compared with the norm.
        size = max(abs(one[3]), abs(other[3]), 1e-6)
        count = math.prod(one[0]) or 1
        return _is_close(one[3], other[3], allowed, 1e-6) and _is_close(
            one[2], other[2], allowed, allowed * size * math.sqrt(count)
        )
    return one == other


def _is_close(one: float, other: float, relative: float, absolute: float) -> bool:
    return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
