"""Read what is new in a session and make the rows that a page shows.

Events that numbers are computed from are read as typed rows, each once; those that are only displayed go from the file
to the page as they are stored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from ..diagnosis.causes.call_sites import read_own_code
from ..diagnosis.rules.cache_misses import MISSES, has_key_parts, list_miss_reasons
from ..events import (
    KINDS,
    Artifact,
    CacheLookup,
    Collective,
    DynamicDecision,
    Event,
    ExportProblem,
    Phase,
    RankMember,
    Recompile,
    RefusedCall,
    SourceStatus,
    StackFrame,
    SymbolicShape,
    VllmConfig,
)
from ..storage.data import SessionData
from ..storage.tables import table_columns
from .group_tables import make_group_tables
from .page_columns import to_ms
from .page_types import PageRow
from .redaction import Redactor

#: Kinds of events that are only displayed. The rows of all others are read as events.
DISPLAYED_ONLY: tuple[type[Event], ...] = (
    Phase,
    DynamicDecision,
    StackFrame,
    SymbolicShape,
    ExportProblem,
    Collective,
    VllmConfig,
)
#: Kinds whose rows are not sent: the pages of ranks and of vLLM get what they show as a separate part of a patch.
UNLISTED: tuple[type[Event], ...] = (RankMember, VllmConfig)
#: The states of the sources come first: the meaning of other rows depends on them.
READ_ORDER = sorted(KINDS, key=lambda kind: kind is not SourceStatus)


@dataclass
class News:
    """What was not read before.

    `rows`: table -> rows for the page. `events` are new, `updates` are recompiles whose seconds changed, `displayed`
    counts the events that are in `rows` only.
    """

    rows: dict[str, list[PageRow]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    updates: list[Recompile] = field(default_factory=list)
    displayed: int = 0

    @property
    def artifacts(self) -> list[Artifact]:
        """The artifacts among the events."""
        return [event for event in self.events if isinstance(event, Artifact)]


class PageRows:
    """The rows of one session. `redactor` changes events before anything else sees them."""

    def __init__(self, data: SessionData, redactor: Redactor | None):
        self._data = data
        self._redactor = redactor
        self._last_event = 0
        self._read: dict[type[Event], int] = dict.fromkeys(KINDS, 0)
        self._lost_s: dict[int | None, float | None] = {}
        self._refused: dict[str | int | None, RefusedCall] = {}
        self._states: dict[tuple[int | None, int | None, str | None], SourceStatus] = {}
        self._state_ids: dict[tuple[int | None, int | None, str | None], int] = {}
        self._groups = make_group_tables(read_own_code(data))

    def use_ids_of(self, other: PageRows) -> None:
        """Give the rows of sources the ids of another model of the same page, which sends the later patches."""
        self._state_ids = other._state_ids

    @property
    def states(self) -> list[SourceStatus]:
        """The last state of each source."""
        return list(self._states.values())

    def read(self, everything: bool) -> News:
        """What is new. Only tables with news are queried, unless `everything` is asked for.

        Beside a busy compiler a query waits 5 ms for the interpreter, whatever it finds.
        """
        kinds = {kind.kind for kind in KINDS}
        if not everything:
            self._last_event, kinds = self._data.news(self._last_event)
        news = News()
        for kind in READ_ORDER:
            if kind.kind in kinds or (kind is Recompile and "compile" in kinds):
                self._read_kind(kind, news)
        for group in self._groups.values():
            if rows := group.take_changed():
                news.rows[group.name] = rows
        return news

    def _read_kind(self, kind: type[Event], news: News) -> None:
        if kind is SourceStatus:
            rows = self._read_states()
        elif kind is Recompile:
            rows = self._read_recompiles(news)
        elif kind is RefusedCall:
            rows = self._read_refused_calls(news)
        elif kind in DISPLAYED_ONLY:
            rows = self._read_stored(kind)
            news.displayed += len(rows)
        else:
            rows = self._read_events(kind, news)
        if rows and kind not in UNLISTED:
            news.rows[kind.table] = rows

    def _read_stored(self, kind: type[Event]) -> list[PageRow]:
        stored = self._data.stored_rows(kind.table, self._read[kind])
        if stored:
            self._read[kind] = stored[-1][0]
        changes = _list_cell_changes(kind, self._redactor)
        rows = [list(values) for values in stored]
        for row in rows:
            for index, change in changes:
                row[index] = change(row[index])
        return rows

    def _take_events(self, kind: type[Event], news: News) -> list[Any]:
        events = self._redact(self._data.rows(kind)[self._read[kind] :])
        self._read[kind] += len(events)
        news.events += events
        return events

    def _read_events(self, kind: type[Event], news: News) -> list[PageRow]:
        events = self._take_events(kind, news)
        rows = make_rows(kind, events)
        if kind is CacheLookup:
            for row, event in zip(rows, events, strict=True):
                row.append(self._explain(event))
        if kind in self._groups:
            for row, event in zip(rows, events, strict=True):
                row.append(self._groups[kind].add(event))
        return rows

    def _read_recompiles(self, news: News) -> list[PageRow]:
        """New recompiles, and those whose seconds became known since they were read."""
        known = self._read[Recompile]
        events = self._data.rows(Recompile)
        updates = [event for event in events[:known] if self._lost_s.get(event.event_id) != event.lost_s]
        changed = self._redact([*updates, *events[known:]])
        self._read[Recompile] = len(events)
        self._lost_s.update((event.event_id, event.lost_s) for event in changed)
        news.updates, fresh = changed[: len(updates)], changed[len(updates) :]
        news.events += fresh
        return make_rows(Recompile, changed)

    def _read_refused_calls(self, news: News) -> list[PageRow]:
        """Refused calls with their counts so far. The page keeps one row per compile key, under the id of its first."""
        changed: dict[str | int | None, RefusedCall] = {}
        for event in self._take_events(RefusedCall, news):
            key = event.compile_key or event.event_id
            before = self._refused.get(key)
            changed[key] = self._refused[key] = _add_calls(before, event) if before else event
        return make_rows(RefusedCall, list(changed.values()))

    def _read_states(self) -> list[PageRow]:
        """The states that changed. The page keeps one row per source, under the id of its first state."""
        changed = []
        for state in self._redact(self._data.rows(SourceStatus)):
            source = (state.rank, state.pid, state.name)
            if self._states.get(source) != state:
                self._states[source] = state
                changed.append(state)
        rows = make_rows(SourceStatus, changed)
        for row, state in zip(rows, changed, strict=True):
            row[0] = self._state_ids.setdefault((state.rank, state.pid, state.name), row[0])
        return rows

    def _redact(self, events: Sequence[Any]) -> list[Any]:
        return list(events) if self._redactor is None else [self._redactor.redact(event) for event in events]

    def _explain(self, lookup: CacheLookup) -> list[str] | None:
        """Why a lookup missed, as `session.explain_miss` says it. Redacted views leave it out: it quotes values."""
        if lookup.outcome not in MISSES or self._redactor is not None:
            return None
        return list_miss_reasons(lookup, has_key_parts(self.states))


def make_rows(kind: type[Event], events: Sequence[Event]) -> list[PageRow]:
    """Events as rows of the page, in the order of their table's columns; times are in ms."""
    names = list(table_columns(kind.table))
    names.remove("time")
    get = attrgetter(*names)
    rows = [list(get(event)) for event in events]
    for row, event in zip(rows, events, strict=True):
        row.insert(1, to_ms(event.time_ns))
    return rows


def _add_calls(before: RefusedCall, event: RefusedCall) -> RefusedCall:
    return replace(event, event_id=before.event_id, count=(before.count or 0) + (event.count or 0))


def _list_cell_changes(kind: type[Event], redactor: Redactor | None) -> list[tuple[int, Callable[[Any], Any]]]:
    """(index, function) of the columns whose stored cells are not what a page shows."""
    changes: list[tuple[int, Callable[[Any], Any]]] = [(1, to_ms)]
    for index, (name, spec) in enumerate(table_columns(kind.table).items()):
        if spec["dtype"] == "json":
            changes.append((index, _parse_json))
        elif spec["dtype"] == "boolean":
            changes.append((index, _parse_bool))
        if redactor is not None and (redact := redactor.get_change(kind, name)):
            changes.append((index, redact))
    return changes


def _parse_json(cell: str | None) -> Any:
    return None if cell is None else json.loads(cell)


def _parse_bool(cell: int | None) -> bool | None:
    return None if cell is None else bool(cell)
