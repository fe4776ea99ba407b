"""Tables of the page whose rows are made of many events: a tuning, the look-ups or the CUDA graphs of a function.

A row's id is that of its first event; all of its events have it as `part_of`.
"""

from __future__ import annotations

from typing import Any

from ..diagnosis.rules.autotune_runs import get_run_key, summarize_run
from ..diagnosis.rules.cudagraph_functions import GraphFunction
from ..diagnosis.rules.lookup_groups import LookupGroup

Cells = dict[str, Any]
#: Page table -> the table that it is made of.
MADE_OF = {"cache_groups": "cache_lookups", "tunings": "autotune", "graph_functions": "cudagraphs"}

_COMMON = {
    "event_id": ("id", "number of its first event"),
    "time": ("time", "when its latest event began"),
    "function": ("text", "name of the code object"),
    "file": ("path", "file of the code object"),
    "line": ("int", "first line of the code object"),
}
_PROCESS = {"rank": ("int", "rank in a distributed job"), "pid": ("int", "process that it happened in")}
#: Page table -> column -> (type, meaning).
COLUMNS: dict[str, dict[str, tuple[str, str]]] = {
    "cache_groups": {
        **_COMMON,
        "cache": ("text", "the cache"),
        "tier": ("text", "local, remote or memory"),
        "last": ("text", "what became of the latest look-up"),
        "why": ("text", "what the latest look-up that was no hit differed in, or torch's reason"),
        "reasons": ("list", "each such difference or reason with how often it was met, the most frequent first"),
        "hits": ("int", "look-ups that found an entry"),
        "misses": ("int", "look-ups that found none, or one whose guards did not hold"),
        "bypassed": ("int", "look-ups that were not made, as the cache was bypassed or off"),
        "stored": ("int", "entries that were stored"),
        "failed": ("int", "look-ups and stores that failed"),
        "other": ("int", "files put in place again, entries evicted, caches cleared"),
        "saved_s": ("s", "s of compile time that hits saved, by torch's own account"),
        "taken_s": ("s", "s that the compiles took whose results were stored"),
    },
    "tunings": {
        **_COMMON,
        **_PROCESS,
        "time": ("time", "when it began"),
        "compile_id": ("text", "torch's id of the compile that asked for it"),
        "tuner": ("text", "select_algorithm, triton_heuristics or triton_autotune"),
        "op": ("text", "what was tuned"),
        "inputs": ("list", "one text an input"),
        "device": ("text", "device that it was timed on"),
        "winner": ("text", "the choice that was taken"),
        "winner_kind": ("text", "kind of that choice"),
        "winner_ms": ("ms", "ms of one call of the winner"),
        "next_choice": ("text", "the choice that came next"),
        "next_ms": ("ms", "ms of one call of that"),
        "extern_ms": ("ms", "ms of one call of the best extern kernel"),
        "margin_next": ("share", "how much longer the next choice takes, as a part of the winner's time"),
        "margin_extern": ("share", "how much longer the best extern kernel takes, as a part of the winner's time"),
        "choices": ("int", "choices in all"),
        "timed": ("int", "choices with a time"),
        "failed": ("int", "choices that failed"),
        "fail_reasons": ("list", "why choices failed, the most frequent reason first"),
        "benchmark_s": ("s", "s that timing took"),
        "precompile_s": ("s", "s that compiling the choices took"),
        "spent_s": ("s", "s of both"),
        "saved_ms": ("ms", "ms that one call of the winner saves against the best extern kernel"),
        "break_even": ("int", "calls after which that has paid for the tuning"),
        "from_cache": ("text", "memory, local or remote if nothing was timed now"),
        "order": ("ids", "numbers of the events of the times that were compared, the fastest first"),
    },
    "graph_functions": {
        **_COMMON,
        **_PROCESS,
        "mode": ("text", "forward, backward or inference"),
        "backend": ("text", "trees, cudagraphs or user"),
        "state": ("text", "what it does since its latest action"),
        "warmups": ("int", "runs to warm up"),
        "captured": ("int", "graphs that were captured, re-records included"),
        "rerecorded": ("int", "of those, captures because an invariant of an earlier one broke"),
        "skipped": ("int", "times that torch gave up on CUDA graphs for it"),
        "replays": ("int", "replays, if they were counted"),
        "eager": ("int", "calls that ran without a graph, if they were counted"),
        "reason": ("text", "torch's latest reason to capture again or to skip"),
        "mismatch": ("text", "the invariant that broke last"),
        "input": ("text", "the input that broke it"),
        "capture_ms": ("ms", "ms of all captures"),
        "pool_bytes": ("bytes", "bytes of the graphs' memory pool after the latest capture"),
    },
}


class _Tuning:
    """A run of a tuner, whose numbers need all of its rows."""

    key = staticmethod(get_run_key)

    def __init__(self) -> None:
        self._rows: list[Any] = []

    @classmethod
    def of(cls, row: Any) -> _Tuning:
        return cls()

    def add(self, row: Any) -> None:
        self._rows.append(row)

    def as_dict(self) -> Cells:
        run = summarize_run(self._rows)
        cells = {name: getattr(run, name) for name in COLUMNS["tunings"] if name != "time"}
        reasons = [f"{reason} ({count}x)" if count > 1 else reason for reason, count in run.fail_reasons]
        return {
            **cells,
            "time_ns": run.time_ns,
            "inputs": list(run.inputs),
            "fail_reasons": reasons,
            "order": list(run.order),
        }


_MAKERS: dict[str, Any] = {"cache_groups": LookupGroup, "tunings": _Tuning, "graph_functions": GraphFunction}


class DerivedTable:
    """One such table: takes the cells of events as they come, gives the rows that changed."""

    def __init__(self, name: str):
        self.name = name
        self._maker = _MAKERS[name]
        self._groups: dict[tuple[Any, ...], tuple[int, Any]] = {}
        self._changed: dict[tuple[Any, ...], None] = {}

    def add(self, event: Any) -> int:
        """Takes an event; gives the id of the row that it is part of."""
        key = self._maker.key(event)
        if key not in self._groups:
            self._groups[key] = (event.event_id, self._maker.of(event))
        row_id, group = self._groups[key]
        group.add(event)
        self._changed[key] = None
        return row_id

    def take(self) -> list[list[Any]]:
        """The rows that are new or changed since the last call, in the order of `COLUMNS`."""
        rows = [self._groups[key][1].as_dict() for key in self._changed]
        self._changed.clear()
        return [[row[n] if n != "time" else row["time_ns"] / 1e6 for n in COLUMNS[self.name]] for row in rows]


#: What rows have in addition on the page: look-ups the first, all that others are made of the second.
EXPLAINED = {"name": "explained", "label": "explained", "type": "list", "doc": "why it missed, in words"}
PART_OF = {"name": "part_of", "label": "part of", "type": "id", "doc": "id of the row that this event is part of"}


def derived_columns() -> dict[str, list[dict[str, str]]]:
    """The columns of all such tables, as the page takes them."""
    return {table: [_column(name, *told) for name, told in columns.items()] for table, columns in COLUMNS.items()}


def with_derived(known: dict[str, Any]) -> dict[str, Any]:
    """`known`, a value a table; each table of the page has that of the table that it is made of."""
    return {**known, **{name: known[source] for name, source in MADE_OF.items()}}


def _column(name: str, kind: str, doc: str) -> dict[str, str]:
    return {"name": name, "label": name.replace("_", " "), "type": kind, "doc": doc}
