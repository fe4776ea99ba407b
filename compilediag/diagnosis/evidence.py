"""What rules read from events: their numbers in a session, their places, sums of their seconds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import Protocol, TypedDict, TypeGuard, TypeVar

from ..events import Event

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

#: function, file and line.
Place = tuple[str | None, str | None, int | None]


class PlacedEvent(Protocol):
    """An event that belongs to a function."""

    @property
    def function(self) -> str | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...


class PlaceFields(TypedDict, total=False):
    """The fields of a finding that name a function."""

    function: str | None
    file: str | None
    line: int | None


def get_ids(events: Iterable[Event]) -> tuple[int, ...]:
    """The numbers of events in their session."""
    return tuple(event.event_id for event in events if event.event_id is not None)


def get_place(event: PlacedEvent) -> Place:
    """The function that an event belongs to."""
    return event.function, event.file, event.line


def make_place_fields(place: Place) -> PlaceFields:
    """A place as fields of a finding."""
    return {"function": place[0], "file": place[1], "line": place[2]}


def find_shared_place(places: Iterable[Place]) -> PlaceFields:
    """The fields of the only place among `places`; none if there are several."""
    found = set(places)
    return make_place_fields(found.pop()) if len(found) == 1 else {}


def is_timed(value: float | None) -> TypeGuard[float]:
    """True for a duration that was measured."""
    return value is not None and math.isfinite(value)


def sum_seconds(values: Iterable[float | None]) -> float:
    """The sum in s of the durations that were measured; 0.0 if none was."""
    return float(sum(value for value in values if is_timed(value)))


def find_first(values: Iterable[T | None]) -> T | None:
    """The first value that is not missing."""
    return next((value for value in values if value is not None), None)


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Key -> the items that have it; keys and items in the order of their first appearance."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)
