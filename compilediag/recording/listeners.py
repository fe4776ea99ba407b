"""Listeners in this process get what is recorded: metrics, warnings, a line in the console. They read no file.

    stop = listen(count)  # `count(turn)` is called in the writer's thread, four times a second, with a `Turn`

A listener gets everything that is recorded after it was added, also by recordings that begin later. What it raises is
counted at the writer (`sources`), and never reaches the program. `diagnosis.incidents.IncidentFinder` finds the
incidents in what a listener gets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..events import Event, WarmupEnd


@dataclass(frozen=True)
class Turn:
    """What is new since the last turn: events, each once and in order, and what compiles now.

    `running` has one dict per thread, as `Session.progress` has them. `warmup` is the end of the warm-up; None before.
    An event has no rank and no pid: they are those of this process; `rank` is None without a distributed job.
    """

    events: Sequence[Event]
    running: Sequence[Mapping[str, Any]]
    warmup: WarmupEnd | None
    rank: int | None = None


Listener = Callable[[Turn], object]

#: As all state of a module, it outlives `importlib.reload`.
registered: list[Listener] = globals().get("registered", [])


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener` at every turn of any recording of this process, until what this returns is called."""
    registered.append(listener)

    def stop() -> None:
        with contextlib.suppress(ValueError):
            registered.remove(listener)

    return stop
