"""Tables of the page whose rows each sum up many events: a tuning run, or the lookups or CUDA graphs of a function.

A group's id is that of its first event. Every event of the group has that id in its column `part_of`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ..decode.calls.own_code import OwnCode
from ..diagnosis.rules.autotune_runs import get_run_key, summarize_run
from ..diagnosis.rules.cudagraph_functions import GraphFunction
from ..diagnosis.rules.lookup_groups import LookupGroup
from ..events import AutotuneChoice, CacheLookup, CudaGraphAction, Event
from .page_columns import make_column, to_ms
from .page_types import PageColumn

V = TypeVar("V")

#: Group table -> the table of the events that it sums up.
MADE_OF = {"cache_groups": "cache_lookups", "tunings": "autotune", "graph_functions": "cudagraphs"}

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
        "other": ("int", "files written again, entries evicted, caches cleared"),
        "saved_s": ("s", "compile time that hits saved, as torch reports it"),
        "taken_s": ("s", "time of the compiles whose results were stored"),
        "is_own": ("bool", "whether the function is the user's own code; missing outside of any function"),
    },
    "tunings": {
        **_PLACE,
        **_PROCESS,
        "time": ("time", "when it began"),
        "compile_id": ("text", "torch's id of the compile that started it"),
        "compile_key": ("text", "key of that compile"),
        "tuner": ("text", "select_algorithm, triton_heuristics or triton_autotune"),
        "op": ("text", "what was tuned"),
        "inputs": ("list", "one text per input"),
        "device": ("text", "device of the timing"),
        "winner": ("text", "the choice that was selected"),
        "winner_kind": ("text", "kind of that choice"),
        "winner_ms": ("ms", "time of one call of the winner"),
        "next_choice": ("text", "the runner-up"),
        "next_ms": ("ms", "time of one call of the runner-up"),
        "extern_ms": ("ms", "time of one call of the best extern kernel"),
        "margin_next": ("share", "how much longer the runner-up takes, as a share of the winner's time"),
        "margin_extern": ("share", "how much longer the best extern kernel takes, as a share of the winner's time"),
        "choices": ("int", "number of choices"),
        "timed": ("int", "choices that were timed"),
        "failed": ("int", "choices that failed"),
        "fail_reasons": ("list", "why choices failed, the most frequent reason first"),
        "benchmark_s": ("s", "time of the benchmarks"),
        "precompile_s": ("s", "time of compiling the choices"),
        "spent_s": ("s", "time of benchmarks and compiling together"),
        "saved_ms": ("ms", "time that one call of the winner saves compared with the best extern kernel"),
        "break_even": ("int", "calls after which the saving has paid for the tuning"),
        "from_cache": ("text", "memory, local or remote if the result came from a cache"),
        "order": ("ids", "event ids of the compared times, the fastest first"),
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

    def as_dict(self) -> Mapping[str, object]:
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


@dataclass
class _Row:
    event_id: int
    group: EventGroup


class GroupTable:
    """One such table: takes events as they come, gives the rows that changed."""

    def __init__(self, name: str, kind: type[Event], own: OwnCode):
        self.name = name
        self.kind = kind
        self._own = own
        self._rows: dict[Hashable, _Row] = {}
        self._changed: dict[Hashable, None] = {}

    def add(self, event: Event) -> int:
        """Take an event; the id of the row that it is part of."""
        key = _get_group_key(event)
        if key not in self._rows:
            self._rows[key] = _Row(event.event_id or 0, _start_group(event))
        row = self._rows[key]
        row.group.add(event)
        self._changed[key] = None
        return row.event_id

    def take_changed(self) -> list[list[object]]:
        """The rows that are new or changed since the last call, in the order of `COLUMNS`."""
        rows = [self._mark_own(self._rows[key].group.as_dict()) for key in self._changed]
        self._changed.clear()
        names = ["time_ns" if name == "time" else name for name in COLUMNS[self.name]]
        return [[to_ms(row[name]) if name == "time_ns" else row[name] for name in names] for row in rows]

    def _mark_own(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        file = row["file"]
        return {**row, "is_own": None if file is None else self._own.is_own(file, row["function"])}


def make_group_tables(own: OwnCode) -> dict[type[Event], GroupTable]:
    """Kind of event -> the table that groups it, all of them empty."""
    kinds: dict[str, type[Event]] = {
        "cache_groups": CacheLookup,
        "tunings": AutotuneChoice,
        "graph_functions": CudaGraphAction,
    }
    return {kind: GroupTable(name, kind, own) for name, kind in kinds.items()}


def get_group_columns() -> dict[str, list[PageColumn]]:
    """The columns of all such tables, as the page gets them."""
    return {table: [make_column(name, *spec) for name, spec in columns.items()] for table, columns in COLUMNS.items()}


def add_group_tables(by_table: Mapping[str, V]) -> dict[str, V]:
    """`by_table` with the tables of groups: each has the value of the table that it sums up."""
    return {**by_table, **{name: by_table[source] for name, source in MADE_OF.items()}}


def _get_group_key(event: Event) -> Hashable:
    if isinstance(event, AutotuneChoice):
        return get_run_key(event)
    if isinstance(event, CacheLookup):
        return LookupGroup.key(event)
    assert isinstance(event, CudaGraphAction)
    return GraphFunction.key(event)


def _start_group(event: Event) -> EventGroup:
    if isinstance(event, AutotuneChoice):
        return _TuningGroup()
    if isinstance(event, CacheLookup):
        return LookupGroup.of(event)
    assert isinstance(event, CudaGraphAction)
    return GraphFunction.of(event)
