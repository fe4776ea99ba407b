"""The clock of a recording: it begins at the wall clock and never jumps, whatever happens to the wall clock.

All times of a session are its times, so the difference of two of them is a duration. torch reads the wall clock;
`convert` gives its times as times of this clock.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

#: A smaller difference between the two clocks is no step: times of torch stay as torch has read them.
TOLERANCE_NS = 50_000_000
#: Steps that are remembered: a clock that is corrected once a minute steps as often in a day.
_MOST_STEPS = 1440
#: This one goes on while a computer sleeps, so that times after that are right.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", getattr(time, "CLOCK_MONOTONIC", None))
#: As all state of a module, it outlives `importlib.reload`.
_offset_ns: int = globals().get("_offset_ns", 0)
#: When the wall clock was stepped, and how far it is ahead of this clock since then.
_steps: list[tuple[int, int]] = globals().get("_steps", [])


_read_steady: Callable[[], int] = (
    time.perf_counter_ns if _CLOCK is None else functools.partial(time.clock_gettime_ns, _CLOCK)
)


def synchronize() -> None:
    """Set the clock by the wall clock. A recording does it when it begins."""
    global _offset_ns
    _offset_ns = time.time_ns() - _read_steady()
    _steps[:] = [(0, 0)]


def now_ns() -> int:
    """Nanoseconds since the epoch."""
    return _read_steady() + _offset_ns


def convert(wall_ns: int) -> int:
    """The time of this clock at a time that the wall clock has shown."""
    now = _read_steady() + _offset_ns
    if len(_steps) == 1 and -TOLERANCE_NS <= wall_ns - now - _steps[0][1] <= TOLERANCE_NS:
        return wall_ns  # It is the time of now, mostly.
    drift = time.time_ns() - now
    if not -TOLERANCE_NS <= drift - _steps[-1][1] <= TOLERANCE_NS:
        _steps.append((now, drift))
        del _steps[:-_MOST_STEPS]
    if len(_steps) == 1:
        return wall_ns
    until = now + TOLERANCE_NS
    for begin, ahead in reversed(_steps):
        if begin - TOLERANCE_NS <= wall_ns - ahead <= until:
            return wall_ns - ahead
        until = begin
    return wall_ns - drift


if not _steps:
    synchronize()
