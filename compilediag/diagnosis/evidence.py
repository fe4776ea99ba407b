"""What rules read: the rows of one state of a session, what is made of them, their numbers, places and seconds."""

from __future__ import annotations

import functools
import math
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypedDict, TypeGuard, TypeVar

from ..events import KINDS, Compile, Event, Rows, StackFrame

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
E = TypeVar("E", bound=Event)

#: function, file and line.
Place = tuple[str | None, str | None, int | None]
#: What can be read of a session: the rows of a kind, or an attribute.
Fact = type[Event] | str
#: A fact, or a function that keeps what it makes of a session.
Need = Fact | Callable[[Rows], object]
#: Frames of one stack at most.
MAX_DEPTH = 1_000


class Evidence:
    """The rows of one state of a session, and what functions make of them: indexes, causes, findings, the plan.

    What a function that is decorated with `kept` makes is made once. It is made again only when what it read has
    changed, so the causes of recompiles stay as they are when a cache lookup is added. The evidence of the latest state
    of a session is kept as long as the session is in use, and does not keep the session alive. What is kept must not
    refer to the evidence itself.
    """

    def __init__(self, data: Rows):
        self._data: Rows = weakref.proxy(data)
        self._facts: dict[Fact, Any] = {}
        self._by_compile: dict[type[Event], Any] = {}
        self._made: dict[Callable[[Evidence], Any], _Made] = {}

    @classmethod
    def of(cls, data: Rows) -> Evidence:
        """The evidence of a session as it is now: the same object until something that was read changes."""
        if isinstance(data, Evidence):
            return data
        known, now = _latest.get(data), cls(data)
        if known is not None:
            facts = known._facts.copy()
            changed = {fact for fact, old in facts.items() if now._read(fact) != old}
            if not changed:
                return known
            now._facts |= {fact: old for fact, old in facts.items() if fact not in changed}
            groups, made = known._by_compile.copy(), known._made.copy()
            now._by_compile = {kind: rows for kind, rows in groups.items() if kind not in changed}
            now._made = {make: one for make, one in made.items() if one.facts.isdisjoint(changed)}
        _latest[data] = now
        return now

    def _read(self, fact: Fact) -> Any:
        if _reading.facts:
            _reading.facts[-1].add(fact)
        if fact not in self._facts:
            value = getattr(self._data, fact, None) if isinstance(fact, str) else self._data.rows(fact)
            self._facts[fact] = value
        return self._facts[fact]

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`."""
        return self._read(kind)  # type: ignore[no-any-return]

    def by_compile(self, kind: type[E]) -> Mapping[str | None, Sequence[E]]:
        """The events of one kind by their compile key, each key in the order of its first event."""
        rows: Sequence[E] = self._read(kind)
        if kind not in self._by_compile:
            self._by_compile[kind] = group_by(rows, lambda row: row.compile_key)
        return self._by_compile[kind]  # type: ignore[no-any-return]

    @property
    def meta(self) -> Mapping[str, Any]:
        """Facts about the whole session; empty for rows that have none."""
        meta = self._read("meta")
        return meta if isinstance(meta, Mapping) else {}

    @property
    def torch_version(self) -> tuple[int, int]:
        """Major and minor number of torch's version."""
        return _read_version(self.meta.get("torch_version"))

    @property
    def python_version(self) -> tuple[int, int]:
        """Major and minor number of Python's version."""
        return _read_version(self.meta.get("python_version"))

    @property
    def state(self) -> str | None:
        """watching, stopped, lost or loaded; None for rows that are no session."""
        return self._read("state")  # type: ignore[no-any-return]

    @property
    def is_ours(self) -> bool:
        """True if this process recorded the session."""
        return bool(self._read("is_ours"))

    def read_artifact(self, event_id: int | None) -> str:
        """The text of an artifact; "" if it was not stored or is damaged, and for rows that have no texts."""
        read: Callable[[int], str] | None = getattr(self._data, "artifact", None)
        try:
            return "" if read is None or event_id is None else read(event_id)
        except KeyError:
            return ""

    @property
    def stacks(self) -> Stacks:
        """The recorded call stacks."""
        return _read_stacks(self)


class _Made(NamedTuple):
    """What a function made, and what it read."""

    value: Any
    facts: frozenset[Fact]


class _Reading(threading.local):
    """What each function that runs in this thread has read so far, the innermost function last."""

    def __init__(self) -> None:
        self.facts: list[set[Fact]] = []


_reading = _Reading()
#: What is read or made before a function that is kept runs.
_NEEDS: dict[Need, tuple[Need, ...]] = {}
#: The evidence of the latest state of each session.
_latest: weakref.WeakKeyDictionary[Rows, Evidence] = weakref.WeakKeyDictionary()


def kept(make: Callable[[Evidence], T]) -> Callable[[Rows], T]:
    """Keep what a function makes of a session, see `Evidence`. What it returns is shared and must not be modified."""
    return kept_after()(make)


def kept_after(*needs: Need) -> Callable[[Callable[[Evidence], T]], Callable[[Rows], T]]:
    """Keep what a function makes, see `kept`. What it needs is read and made before, in this order: rows, attributes,
    and what other functions keep, each after what it needs itself. So no function runs inside another.
    """

    def decorate(make: Callable[[Evidence], T]) -> Callable[[Rows], T]:
        steps = dict.fromkeys(step for need in needs for step in (*_NEEDS.get(need, ()), need))

        @functools.wraps(make)
        def get(data: Rows) -> T:
            evidence = Evidence.of(data)
            known = evidence._made.get(make)
            if known is None:
                _reading.facts.append(set())
                try:
                    for step in steps:
                        if isinstance(step, type | str):
                            evidence._read(step)
                        else:
                            step(evidence)
                    value = make(evidence)
                finally:
                    facts = _reading.facts.pop()
                known = evidence._made[make] = _Made(value, frozenset(facts))
            if _reading.facts:
                _reading.facts[-1].update(known.facts)
            return known.value  # type: ignore[no-any-return]

        _NEEDS[get] = tuple(steps)
        return get

    return decorate


def kept_of(kind: type[Event]) -> Callable[[Callable[[Evidence], list[T]]], Callable[[Rows], list[T]]]:
    """Keep what a function finds in the rows of one kind, see `kept`. Without such rows it is not called: it finds
    nothing.
    """

    def decorate(make: Callable[[Evidence], list[T]]) -> Callable[[Rows], list[T]]:
        @functools.wraps(make)
        def find(evidence: Evidence) -> list[T]:
            return make(evidence) if evidence.rows(kind) else []

        return kept_after(kind)(find)

    return decorate


class Stacks:
    """The recorded call stacks, in which each frame is a row that names its caller, and the stack of each compile."""

    def __init__(self, frames: Iterable[StackFrame], compiles: Iterable[Compile]):
        self._frames = {row.stack: row for row in frames}
        # A backward that is compiled later is another row of the same compile, without a stack.
        self._by_compile = {row.compile_key: row.stack for row in compiles if row.compile_key and row.stack}

    def find(self, compile_key: str | None) -> str | None:
        """The key of the stack in which something was compiled; None if it is not recorded."""
        return self._by_compile.get(compile_key or "")

    def walk(self, stack: str | None) -> Iterator[StackFrame]:
        """The frames of the stack with this key, innermost first; none if it is not recorded. In a damaged file frames
        can be each other's callers: each is there once.
        """
        seen: set[str | None] = set()
        while len(seen) < MAX_DEPTH and stack not in seen:
            frame = self._frames.get(stack or "")
            if frame is None:
                return
            yield frame
            seen.add(stack)
            stack = frame.caller


@kept
def _read_stacks(evidence: Evidence) -> Stacks:
    return Stacks(evidence.rows(StackFrame), evidence.rows(Compile))


def _read_version(text: object) -> tuple[int, int]:
    """Major and minor number of a version; (0, 0) if it is not known."""
    found = re.match(r"(\d+)\.(\d+)", str(text))
    return (int(found[1]), int(found[2])) if found else (0, 0)


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


def map_compile_keys(data: Rows, wanted: set[int]) -> dict[int, str]:
    """Number of an event -> the key of its compile, of the events that are wanted and belong to one."""
    rows = (row for kind in KINDS for row in data.rows(kind))
    return {row.event_id: row.compile_key for row in rows if row.event_id in wanted and row.compile_key}


def get_place(event: PlacedEvent) -> Place:
    """The function that an event belongs to."""
    return event.function, event.file, event.line


def is_placed(event: object) -> TypeGuard[PlacedEvent]:
    """True for an event that belongs to a function."""
    return hasattr(event, "function")


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


def sum_known(values: Iterable[float | None]) -> float | None:
    """The sum of the values that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def find_first(values: Iterable[T | None]) -> T | None:
    """The first value that is not missing."""
    return next((value for value in values if value is not None), None)


def group_by(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Key -> the items that have it; keys and items in the order of their first appearance."""
    groups: dict[K, list[T]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)
