"""What was not observed: silence of a source that was off is no sign of health."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import wording
from ..finding import Finding
from ..rows import Row, ids, rows_of

#: Table -> the sources that it needs. A new source adds its name here; a table without any is not observed.
FEEDS: dict[str, tuple[str, ...]] = {
    "compiles": ("compiles",),
    "recompiles": ("recompiles",),
    "guard_failures": ("recompiles",),
    "cache_lookups": (
        *("fx_graph_cache", "aot_autograd_cache", "remote_cache"),
        *("dynamo_cache", "code_caches", "triton_bundle", "pgo"),
    ),
    "autotune": ("select_algorithm", "triton_heuristics", "triton_autotune"),
    "cudagraphs": ("cudagraphs", "cudagraph_skips", "captures"),
    "kernels": ("workers",),
    "graph_breaks": ("graph_breaks",),
    "phases": ("phases",),
    "artifacts": ("trace",),
    "dynamic_decisions": ("dynamic",),
    "stacks": ("phases",),
    "symbolic_shapes": ("trace",),
    "export_problems": ("trace",),
    "collectives": ("trace",),
    "calls": ("calls",),
}
#: Part of a table that has totals of its own -> the sources that those need.
PARTS: dict[str, tuple[str, ...]] = {"compile_caches": ("fx_graph_cache", "aot_autograd_cache", "remote_cache")}
#: What a source observes, in words.
OBSERVES = {
    "compiles": "compiles",
    "recompiles": "recompiles",
    "fx_graph_cache": "look-ups in FxGraphCache",
    "aot_autograd_cache": "look-ups in AOTAutogradCache",
    "remote_cache": "look-ups in remote caches",
    "keys": "parts of cache keys",
    "select_algorithm": "autotuning of operators",
    "triton_heuristics": "autotuning of Inductor's triton kernels",
    "triton_autotune": "autotuning of triton kernels by triton.autotune",
    "dynamo_cache": "look-ups of compiled code",
    "code_caches": "caches of generated code",
    "triton_bundle": "bundles of triton kernels",
    "pgo": "profiles of earlier runs",
    "workers": "kernels that were compiled",
    "graph_breaks": "graph breaks",
    "phases": "phases of compiles",
    "dynamic": "automatic dynamic shapes",
    "trace": "graphs and generated code",
    "cudagraphs": "CUDA graphs of torch.compile",
    "cudagraph_skips": "what is left out of CUDA graphs",
    "captures": "CUDA graphs of your own",
    "replays": "replays of CUDA graphs",
    "calls": "calls of compiled functions",
}
#: Reasons of "off" that are no gap: the watch was over, the user did not ask for it, or it can't happen here.
_MEANT = ("the watch has ended", "detail is ", "not asked for", "nothing to watch")


def observed(states: Iterable[Row]) -> dict[str, bool]:
    """Table, or part of one -> whether all that feeds it was watched; `states` are the last states of the sources."""
    rows = list(states)
    active = {row["name"] for row in rows if row["status"] == "active"}
    idle = {row["name"] for row in rows if row["status"] == "off" and (row["reason"] or "").startswith("nothing to")}
    feeds = FEEDS | PARTS
    return {table: bool(active & {*names}) and {*names} <= active | idle for table, names in feeds.items()}


def blind(tables: Any) -> frozenset[str]:
    """The tables, and parts of tables, that a source was to feed and did not."""
    gone = {row["name"] for row in _gaps(tables)}
    return frozenset(table for table, names in (FEEDS | PARTS).items() if gone & {*names})


def unobserved(tables: Any) -> dict[str, str]:
    """What was not observed, in words -> why; empty if all sources did their work."""
    return {_subject(row): _why(row) for row in _gaps(tables)}


def coverage_findings(tables: Any) -> list[Finding]:
    dropping = [row for row in _sources(tables) if (row["dropped"] or 0) > 0]
    return [_unobserved(row) for row in _gaps(tables)] + [_dropped(row) for row in dropping]


def _sources(tables: Any) -> list[Row]:
    return rows_of(tables, "sources", ("name", "status", "reason", "dropped"))


def _gaps(tables: Any) -> list[Row]:
    return [row for row in _sources(tables) if row["status"] not in (None, "active") and not _is_meant(row)]


def _is_meant(row: Row) -> bool:
    return row["status"] == "off" and (row["reason"] or "").startswith(_MEANT)


def _subject(row: Row) -> str:
    name = row["name"] or "a source"
    return OBSERVES.get(name, wording.one_line(name, 60))


def _why(row: Row) -> str:
    return wording.first_line(row["reason"] or f"the source was {row['status']}")


def _unobserved(row: Row) -> Finding:
    why = _why(row)
    return Finding(
        rule="not_observed",
        severity="low",
        title=f"Not observed: {_subject(row)}: {why}",
        seconds_lost=0.0,
        evidence=ids([row]),
        suggestion="Nothing is known of these: that none is listed does not mean that there were none.",
        details=(why,),
    )


def _dropped(row: Row) -> Finding:
    count = int(row["dropped"])
    return Finding(
        rule="dropped",
        severity="low",
        title=f"Not all was kept of {_subject(row)}: {count} events or payloads were dropped",
        seconds_lost=0.0,
        evidence=ids([row]),
        suggestion="What was dropped is missing from the tables and from these findings.",
        count=count,
    )
