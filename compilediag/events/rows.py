"""Typed rows: the events of one kind, wherever they are kept."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol, TypeVar

from .base import Event
from .compiling import Compile
from .guarding import Recompile
from .sources import SourceStatus

E = TypeVar("E", bound=Event)


class Rows(Protocol):
    """Anything that gives the events of a kind: a session's file, a list in memory, a redacted session."""

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`; each has one."""
        ...


class RowList:
    """Events in memory as rows. An event without an `event_id` is numbered by its place, from 1."""

    def __init__(self, events: Iterable[Event]):
        by_kind: dict[type[Event], list[Any]] = defaultdict(list)
        for number, event in enumerate(events, 1):
            numbered = event if event.event_id is not None else dataclasses.replace(event, event_id=number)
            by_kind[type(event)].append(numbered)
        lost = LostSeconds()
        lost.add_compiles(by_kind[Compile])
        lost.add_recompiles(by_kind[Recompile])
        by_kind[Recompile] = lost.recompiles
        by_kind[SourceStatus] = keep_last_states(by_kind[SourceStatus])
        self._by_kind = by_kind

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`."""
        return sorted(self._by_kind.get(kind, ()), key=lambda event: event.event_id)


class LostSeconds:
    """Gives recompiles their `lost_s` as events come: the seconds of all compiles that have the recompile's key.

    These are the forward, the lazy backward and compiled autograd. `lost_s` stays None while none of them has ended.
    """

    def __init__(self) -> None:
        self.recompiles: list[Recompile] = []
        self._seconds: dict[str, float] = {}
        self._places: dict[str, list[int]] = defaultdict(list)

    def add_compiles(self, compiles: Iterable[Compile]) -> None:
        """Take compiles that were not taken before."""
        changed: set[str] = set()
        for compile in compiles:
            key = compile.compile_key
            if key is not None and compile.duration_s is not None:
                self._seconds[key] = self._seconds.get(key, 0.0) + compile.duration_s
                changed.add(key)
        for key in changed & self._places.keys():
            for place in self._places[key]:
                self.recompiles[place] = dataclasses.replace(self.recompiles[place], lost_s=self._seconds[key])

    def add_recompiles(self, recompiles: Iterable[Recompile]) -> None:
        """Take recompiles that were not taken before. One that has `lost_s` already keeps it."""
        for recompile in recompiles:
            key = recompile.compile_key
            if recompile.lost_s is None and key is not None:
                self._places[key].append(len(self.recompiles))
                lost_s = self._seconds.get(key)
                self.recompiles.append(recompile if lost_s is None else dataclasses.replace(recompile, lost_s=lost_s))
            else:
                self.recompiles.append(recompile)


def keep_last_states(states: Iterable[SourceStatus]) -> list[SourceStatus]:
    """The last state of each source of each process."""
    last: dict[tuple[object, ...], SourceStatus] = {}
    for state in states:
        last[state.rank, state.pid, state.name] = state
    return list(last.values())
