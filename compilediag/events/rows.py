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
        by_kind[Recompile] = add_lost_seconds(by_kind[Recompile], sum_by_compile(by_kind[Compile]))
        by_kind[SourceStatus] = keep_last_states(by_kind[SourceStatus])
        self._by_kind = by_kind

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`."""
        return sorted(self._by_kind.get(kind, ()), key=lambda event: event.event_id)


def sum_by_compile(compiles: Iterable[Compile]) -> dict[str, float]:
    """compile_key -> seconds of all compiles that have it: the forward, the lazy backward and compiled autograd."""
    seconds: dict[str, float] = {}
    for compile in compiles:
        key = _get_key(compile)
        if key is not None and compile.duration_s is not None:
            seconds[key] = seconds.get(key, 0.0) + compile.duration_s
    return seconds


def _get_key(event: Event) -> str | None:
    """The compile key. Until the sources give one, made of rank, pid and compile id."""
    if event.compile_key is not None or event.compile_id is None:
        return event.compile_key
    return f"{event.rank}.{event.pid}.{event.compile_id}"


def add_lost_seconds(recompiles: Iterable[Recompile], seconds: dict[str, float]) -> list[Recompile]:
    """The recompiles with their `lost_s`; it stays None while no compile of the recompile's key has ended."""
    return [
        row
        if row.lost_s is not None or (key := _get_key(row)) is None or key not in seconds
        else dataclasses.replace(row, lost_s=seconds[key])
        for row in recompiles
    ]


def keep_last_states(states: Iterable[SourceStatus]) -> list[SourceStatus]:
    """The last state of each source of each process."""
    last: dict[tuple[object, ...], SourceStatus] = {}
    for state in states:
        last[state.rank, state.pid, state.name] = state
    return list(last.values())
