"""Read what is new in a session, each event once, and make the rows that a page shows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from ..decode.cache_keys import KEY, SETTINGS
from ..decode.call_stacks import OwnCode
from ..decode.guards.path import spell_expression
from ..diagnosis.causes.call_sites import read_own_code
from ..diagnosis.rules.autotune import TuningRun, get_run_key, summarize_run
from ..diagnosis.rules.caches import MISSES, LookupGroup, has_key_parts, list_miss_reasons
from ..diagnosis.rules.cudagraphs import GraphFunction
from ..events import (
    BY_TABLE,
    KINDS,
    Artifact,
    AutotuneChoice,
    CacheLookup,
    CudaGraphAction,
    Event,
    RankMember,
    Recompile,
    RefusedCall,
    SourceStatus,
    VllmConfig,
)
from ..storage.data import SessionData, table_columns
from .page_types import PageColumn, PageRow
from .redaction import Redactor

V = TypeVar("V")

# Tables whose rows each sum up many events: a tuning run, the lookups or the CUDA graphs of a function. A group's id is
# that of its first event; every event of the group has it in its column `part_of`.

_PLACE = {
    "event_id": ("id", "event id of its first event"),
    "time": ("time", "when its latest event began"),
    "function": ("text", "name of the code object"),
    "file": ("path", "file of the code object"),
    "line": ("int", "first line of the code object"),
}
_PROCESS = {"rank": ("int", "rank in a distributed job"), "pid": ("int", "process id")}
#: Group table -> column -> (type, meaning).
COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    "cache_groups": {
        **_PLACE,
        "cache": ("text", "the cache"),
        "tier": ("text", "local, remote or memory"),
        "last": ("text", "outcome of the latest lookup"),
        "why": ("text", "why the latest lookup without a hit missed: what differs, or torch's reason"),
        "reasons": ("list", "all such reasons with their counts, the most frequent first"),
        "hits": ("int", "lookups that found an entry"),
        "misses": ("int", "lookups that found no entry, or one whose guards failed"),
        "bypassed": ("int", "lookups that were skipped because the cache was bypassed or off"),
        "stored": ("int", "entries that were stored"),
        "failed": ("int", "lookups and stores that failed"),
        "other": ("int", "files written again, artifacts loaded, entries evicted, caches cleared"),
        "saved_s": ("s", "compile time that hits saved, as torch reports it"),
        "taken_s": ("s", "time of the compiles whose results were stored"),
        "is_own": ("bool", "whether the function is the user's own code; missing outside of any function"),
    },
    "tunings": {
        **_PLACE,
        **_PROCESS,
        "time": ("time", "when it began"),
        **{f.name: (f.metadata["kind"], f.metadata["doc"]) for f in fields(TuningRun) if f.metadata},
    },
    "graph_functions": {
        **_PLACE,
        **_PROCESS,
        "mode": ("text", "forward, backward or inference"),
        "backend": ("text", "trees, cudagraphs or user"),
        "state": ("text", "state after its latest action"),
        "warmups": ("int", "warm-up runs"),
        "captured": ("int", "captured graphs, re-recordings included"),
        "rerecorded": ("int", "of those, re-recordings because an invariant of an earlier graph broke"),
        "skipped": ("int", "how often torch skipped CUDA graphs for it"),
        "replays": ("int", "replays, if they were counted"),
        "eager": ("int", "calls without a graph, if they were counted"),
        "reason": ("text", "torch's latest reason to re-record or to skip"),
        "mismatch": ("text", "the invariant that broke last"),
        "input": ("text", "the input that broke it"),
        "capture_ms": ("ms", "time of all captures"),
        "pool_bytes": ("bytes", "size of the graphs' memory pool after the latest capture"),
    },
}


class EventGroup(Protocol):
    """Events that are one row of the page."""

    def add(self, event: Any) -> None:
        """Take one more event of the group."""

    def as_dict(self) -> Mapping[str, Any]:
        """The cells of its row; `time_ns` is shown as `time`."""


class _TuningGroup:
    """The choices of a tuning run; its numbers need all of them."""

    def __init__(self) -> None:
        self._choices: list[AutotuneChoice] = []

    def add(self, event: AutotuneChoice) -> None:
        self._choices.append(event)

    def as_dict(self) -> Mapping[str, object]:
        run = summarize_run(self._choices)
        reasons = [f"{reason} ({count}x)" if count > 1 else reason for reason, count in run.fail_reasons]
        lists = {"inputs": list(run.inputs), "fail_reasons": reasons, "order": list(run.order)}
        return {**{name: getattr(run, name, None) for name in COLUMNS["tunings"]}, "time_ns": run.time_ns, **lists}


#: Group table -> kind of its events, the key that the events of a group share, and what makes a group of the first one.
GROUPS: dict[str, tuple[type[Event], Callable[[Any], Hashable], Callable[[Any], EventGroup]]] = {
    "cache_groups": (CacheLookup, LookupGroup.key, LookupGroup.of),
    "tunings": (AutotuneChoice, get_run_key, lambda event: _TuningGroup()),
    "graph_functions": (CudaGraphAction, GraphFunction.key, GraphFunction.of),
}
#: Group table -> the table of the events that it sums up.
MADE_OF = {name: kind.table for name, (kind, _, _) in GROUPS.items()}


class GroupTable:
    """One such table: takes events as they come, gives the rows that changed."""

    def __init__(self, name: str, own: OwnCode):
        self.name = name
        self.kind, self._get_key, self._start = GROUPS[name]
        self._own = own
        self._groups: dict[Hashable, tuple[int, EventGroup]] = {}
        self._changed: dict[Hashable, None] = {}

    def add(self, event: Event) -> int:
        """Take an event; the id of the row that it is part of."""
        key = self._get_key(event)
        if key not in self._groups:
            self._groups[key] = (event.event_id or 0, self._start(event))
        number, group = self._groups[key]
        group.add(event)
        self._changed[key] = None
        return number

    def take_changed(self) -> list[list[object]]:
        """The rows that are new or changed since the last call, in the order of `COLUMNS`."""
        rows = []
        for row in (self._groups[key][1].as_dict() for key in self._changed):
            is_own = None if row["file"] is None else self._own.is_own(row["file"], row["function"])
            cells = {**row, "time": to_ms(row["time_ns"]), "is_own": is_own}
            rows.append([cells[name] for name in COLUMNS[self.name]])
        self._changed.clear()
        return rows


def add_group_tables(by_table: Mapping[str, V]) -> dict[str, V]:
    """`by_table` with the tables of groups: each has the value of the table that it sums up."""
    return {**by_table, **{name: by_table[source] for name, source in MADE_OF.items()}}


# Columns: name, label, type (how the page formats a cell) and meaning

NS_PER_MS = 1_000_000
#: How the page formats a column that has neither a unit nor user data of a known form.
_TYPES = {"Int64": "int", "boolean": "bool", "json": "list", "datetime64[ns, UTC]": "time"}


def get_columns() -> dict[str, list[PageColumn]]:
    """Table -> its columns on the page: those that its documentation has, and what only the page has."""
    columns: dict[str, list[PageColumn]] = {}
    for table in BY_TABLE:
        columns[table] = []
        for name, spec in table_columns(table).items():
            type = "id" if name == "event_id" else spec["unit"] or _TYPES.get(spec["dtype"], "text")
            if spec["dtype"] == "string" and spec["user_data"] in ("path", "code"):
                type = str(spec["user_data"])
            columns[table].append(_make_column(name, type, spec["doc"]))
    columns[CacheLookup.table].append(_make_column("explained", "list", "why the lookup missed"))
    for table in MADE_OF.values():
        columns[table].append(_make_column("part_of", "id", "id of the group row that this event is part of"))
    groups = {table: [_make_column(name, *spec) for name, spec in specs.items()] for table, specs in COLUMNS.items()}
    return {**columns, **groups}


def _make_column(name: str, type: str, doc: str) -> PageColumn:
    return {"name": name, "label": name.replace("_", " "), "type": type, "doc": doc}


def to_ms(time_ns: int) -> float:
    """A time as the page has it, in ms."""
    return time_ns / NS_PER_MS


# Rows

#: Kinds whose rows are not sent: the pages of ranks and of vLLM get what they show as a separate part of a patch.
UNLISTED: tuple[type[Event], ...] = (RankMember, VllmConfig)
#: The names of artifacts that are not shown.
KEY_TEXTS = (KEY, SETTINGS)
#: The states of the sources come first: the meaning of other rows depends on them.
READ_ORDER = sorted(KINDS, key=lambda kind: kind is not SourceStatus)


@dataclass
class News:
    """What was not read before.

    `rows`: table -> rows for the page. `events` are new, `updates` are recompiles whose seconds changed.
    """

    rows: dict[str, list[PageRow]] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    updates: list[Recompile] = field(default_factory=list)


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
        own = read_own_code(data)
        tables = [GroupTable(name, own) for name in GROUPS]
        self._groups = {table.kind: table for table in tables}

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
            if kind.kind not in kinds and not (kind is Recompile and "compile" in kinds):
                continue
            if kind is SourceStatus:
                rows = self._read_states()
            elif kind is Recompile:
                rows = self._read_recompiles(news)
            elif kind is RefusedCall:
                rows = self._read_refused_calls(news)
            else:
                rows = self._read_events(kind, news)
            if rows and kind not in UNLISTED:
                news.rows[kind.table] = rows
        for group in self._groups.values():
            if changed := group.take_changed():
                news.rows[group.name] = changed
        return news

    def _take_events(self, kind: type[Event], news: News) -> list[Any]:
        new: Sequence[Any] = self._data.rows(kind)[self._read[kind] :]
        self._read[kind] += len(new)
        if kind is Artifact:
            # The parts of cache keys are for `coldstart`; the differences are in the rows of look-ups.
            new = [event for event in new if event.name not in KEY_TEXTS]
        events = self._redact(new)
        news.events += events
        return events

    def _read_events(self, kind: type[Event], news: News) -> list[PageRow]:
        events = self._take_events(kind, news)
        rows = make_rows(kind, events)
        if kind is CacheLookup:
            # As `session.explain_miss` says it. Redacted views leave it out: it quotes values.
            for row, event in zip(rows, events, strict=True):
                is_explained = event.outcome in MISSES and self._redactor is None
                row.append(list_miss_reasons(event, has_key_parts(self.states)) if is_explained else None)
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
            known = (before.count or 0) if before else 0
            latest = replace(event, event_id=before.event_id, count=known + (event.count or 0)) if before else event
            changed[key] = self._refused[key] = latest
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


def make_rows(kind: type[Event], events: Sequence[Event]) -> list[PageRow]:
    """Events as rows of the page, in the order of their table's columns; times are in ms.

    A size has one spelling on the page, that of the user's code: torch's `x.size()[0]` is `x.shape[0]`.
    """
    specs = table_columns(kind.table)
    names = [name for name in specs if name != "time"]
    sources = [i for i, name in enumerate(names) if specs[name]["user_data"] in ("source", "torch_source")]
    get = attrgetter(*names)
    rows = [list(get(event)) for event in events]
    for row in rows if sources else ():
        for i in sources:
            if row[i] and ".size()" in row[i]:
                row[i] = spell_expression(row[i])
    for row, event in zip(rows, events, strict=True):
        row.insert(1, to_ms(event.time_ns))
    return rows
