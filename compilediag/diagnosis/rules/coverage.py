"""Find what was not collected: an empty table of a source that was off says nothing about the program."""

from __future__ import annotations

from collections.abc import Iterable

from ...events import COMPILE_CACHE_SOURCES, KINDS, Rows, SourceStatus, list_sources
from ...formatting import format_amount, format_first_line, format_line
from ..finding import Finding
from ..rule import Rule, report

#: Table -> the sources that fill it. A table without any is not collected.
FEEDS = {kind.table: list_sources(kind) for kind in KINDS if kind is not SourceStatus}
#: Part of a table that has totals of its own -> the sources that fill it.
PARTS = {"compile_caches": COMPILE_CACHE_SOURCES}
#: What a source collects, in words.
SUBJECTS = {
    "compiles": "compiles",
    "recompiles": "recompiles",
    "refusals": "calls that a stance kept from compiling",
    "fx_graph_cache": "lookups in FxGraphCache",
    "aot_autograd_cache": "lookups in AOTAutogradCache",
    "remote_cache": "lookups in remote caches",
    "keys": "parts of cache keys",
    "select_algorithm": "autotuning of operators",
    "triton_heuristics": "autotuning of Inductor's triton kernels",
    "triton_autotune": "autotuning of triton kernels by triton.autotune",
    "dynamo_cache": "lookups of compiled code",
    "code_caches": "caches of generated code and compiled kernels",
    "triton_bundle": "bundles of triton kernels",
    "pgo": "profiles of earlier runs",
    "graph_breaks": "graph breaks",
    "phases": "compile phases",
    "tracing": "functions that Dynamo traces",
    "dynamic": "automatic dynamic shapes",
    "trace": "graphs and generated code",
    "cudagraphs": "CUDA graphs of torch.compile",
    "cudagraph_skips": "functions that CUDA graphs skip",
    "captures": "CUDA graphs that you capture yourself",
    "replays": "replays of CUDA graphs",
    "calls": "calls of compiled functions",
}
_NOT_COLLECTED = Rule(
    "not_observed",
    title="Not collected: {subject}: {reason}",
    action="An empty table does not mean that there were none.",
    severity="low",
    docs=None,
)
_DROPPED = Rule(
    "dropped",
    title="Incomplete: {subject}: {events} dropped",
    action="Dropped events are missing from the tables and from these findings.",
    severity="low",
    docs=None,
)
RULES = (_NOT_COLLECTED, _DROPPED)
#: Reason codes of "off" that are no gap: the user did not ask for it, it cannot happen here, or the watch is over.
_MEANT = ("detail_level", "not_requested", "nothing_to_watch", "watch_ended")


def map_collected(states: Iterable[SourceStatus]) -> dict[str, bool]:
    """Table, or part of one -> whether all that fills it was collected; `states` are the last states of the sources."""
    rows = list(states)
    active = {row.name for row in rows if row.status == "active"}
    idle = {row.name for row in rows if row.status == "off" and row.reason_code == "nothing_to_watch"}
    feeds = FEEDS | PARTS
    return {table: bool(active & {*names}) and {*names} <= active | idle for table, names in feeds.items()}


def find_gaps(data: Rows) -> frozenset[str]:
    """The tables, and parts of tables, that a source was asked to fill and did not."""
    missing = {row.name for row in _list_gaps(data)}
    return frozenset(table for table, names in (FEEDS | PARTS).items() if missing & {*names})


def explain_gaps(data: Rows) -> dict[str, str]:
    """What was not collected, in words -> why; empty if all sources did their work."""
    return {_name(row): _explain(row) for row in _list_gaps(data)}


def find_missing_data(data: Rows) -> list[Finding]:
    """One finding per source that was not active, or dropped events."""
    found = []
    for row in _list_gaps(data):
        why = _explain(row)
        found.append(report(_NOT_COLLECTED, [row], {"subject": _name(row), "reason": why}, details=(why,)))
    for row in data.rows(SourceStatus):
        if count := row.dropped or 0:
            events = format_amount(count, "event or payload was", "events or payloads were")
            found.append(report(_DROPPED, [row], {"subject": _name(row), "events": events}, count=count))
    return found


def _list_gaps(data: Rows) -> list[SourceStatus]:
    states = (row for row in data.rows(SourceStatus) if row.status not in (None, "active"))
    return [row for row in states if row.status != "off" or row.reason_code not in _MEANT]


def _name(row: SourceStatus) -> str:
    name = row.name or "a source"
    return SUBJECTS.get(name, format_line(name, 60))


def _explain(row: SourceStatus) -> str:
    return format_first_line(row.reason or f"the source was {row.status}")
