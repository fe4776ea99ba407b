"""The program's own steps: when each began, so that what is recorded can be given the step in which it began."""

from __future__ import annotations

import bisect
import dataclasses
import itertools

from ..events import Event
from ..system import clock

#: Steps that are remembered at least: a compile is given its step when it is over.
REMEMBERED = 32_768


class ProgramSteps:
    """All threads of the program begin steps here; no lock is taken, and one call takes less than a microsecond."""

    def __init__(self) -> None:
        #: (time in ns, number) of each step.
        self._begun: list[tuple[int, int]] = []
        self._numbers = itertools.count()
        self._counts = itertools.count(1)

    def begin(self, number: int | None = None) -> int:
        """A step begins: the one after the last, if it has no number. Returns how many have begun."""
        if number is None:
            number = next(self._numbers)
        else:
            self._numbers = itertools.count(number + 1)
        self._begun.append((clock.now_ns(), number))
        if len(self._begun) > 2 * REMEMBERED:
            del self._begun[:REMEMBERED]
        return next(self._counts)

    def find(self, time_ns: int) -> int | None:
        """The step that ran at this time; None before the first one, and for a time that is not remembered."""
        begun = self._begun
        at = bisect.bisect_left(begun, (time_ns + 1,))
        return begun[at - 1][1] if at else None

    def add_to(self, event: Event) -> Event:
        """The event with its step, if its kind has one and it is not known yet."""
        if not self._begun or getattr(event, "step", 0) is not None:
            return event
        return dataclasses.replace(event, step=self.find(event.time_ns))  # type: ignore[call-arg]
