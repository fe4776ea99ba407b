"""The totals of a session: sums over rows as they come. Every view shows these and no others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from ..diagnosis.rules.autotune_runs import UNTIMED, get_run_key
from ..diagnosis.rules.lookup_groups import COMPILE_CACHES, COUNTED

Cells = dict[str, Any]

COUNTS = ("compiles", "recompiles", "graph_breaks", "limit_hits", "events")
#: CUDA graph action -> its total.
GRAPH_TOTALS = {
    "record": "graph_records",
    "rerecord": "graph_rerecords",
    "user_capture": "graph_records",
    "skip": "graph_skips",
    "limit": "graph_skips",
}


class Totals:
    """Counts: compiles, recompiles, graph_breaks, limit_hits, events, dropped, kernels, tuning_runs (measured now,
    not taken from a cache), tuning_choices, tuning_failed, graph_records (first captures), graph_rerecords,
    graph_skips, graph_replays (None if they were not counted).

    cache_hits: compiled graphs that a cache gave, cache_misses: those that none had; by_cache: the hits, misses and
    seconds saved of each cache by itself. compile_s: seconds of all compiles; lost_s: of those that recompiles
    caused; cache_saved_s: that hits saved, by torch's account; tuning_s: that went into compiling and timing
    choices; own_s: that our hooks and writer took; own_share: own_s / compile_s.
    """

    def __init__(self) -> None:
        self._counts = Counter(dict.fromkeys(COUNTS, 0))
        self._compile_s = 0.0
        self._caches = _CacheTotals()
        self._tuning = _TuningTotals()
        self._graphs = Counter(dict.fromkeys(GRAPH_TOTALS.values(), 0))
        self._replays: int | None = None

    def add(self, table: str, cells: Cells) -> None:
        self._counts["events"] += 1
        if table in ("recompiles", "graph_breaks", "kernels"):
            self._counts[table] += 1
        elif table == "compiles":
            self._counts["compiles"] += 1
            self._counts["limit_hits"] += cells["limit"] is not None
            self._compile_s += cells["duration_s"] or 0
        elif table == "cache_lookups":
            self._caches.add(cells)
        elif table == "autotune":
            self._tuning.add(cells)
        elif table == "cudagraphs":
            self._add_graph(cells)

    def _add_graph(self, cells: Cells) -> None:
        if cells["action"] == "replays":
            self._replays = (self._replays or 0) + (cells["count"] or 0)
        elif cells["action"] in GRAPH_TOTALS:
            self._graphs[GRAPH_TOTALS[cells["action"]]] += 1

    def as_dict(self, lost: dict[int, float], sources: Iterable[tuple[int, Cells]]) -> dict[str, Any]:
        states = [cells for _, cells in sources]
        own_s = sum(cells["overhead_s"] or 0 for cells in states)
        return {
            **{name: self._counts[name] for name in (*COUNTS, "kernels")},
            **self._caches.as_dict(),
            **self._tuning.as_dict(),
            **self._graphs,
            "graph_replays": self._replays,
            "compile_s": self._compile_s,
            "lost_s": sum(lost.values()),
            "own_s": own_s,
            "own_share": own_s / self._compile_s if self._compile_s else None,
            "dropped": sum(cells["dropped"] or 0 for cells in states),
        }


class _CacheTotals:
    """What the caches of compiled graphs gave, and each cache by itself.

    AOTAutogradCache's hit holds those of FxGraphCache beneath it, so of one compile FxGraphCache's look-ups count,
    AOTAutogradCache's where there were none, and of the seconds saved the larger sum. A graph that the local tier
    lacked and the remote one had is a hit.
    """

    def __init__(self) -> None:
        self._by_compile: dict[tuple[Any, ...], dict[str, Counter[str]]] = {}
        self._by_cache: dict[str, dict[str, float]] = {}
        self._saved: dict[tuple[Any, ...], dict[str, float]] = {}

    def add(self, cells: Cells) -> None:
        cache, counted = cells["cache"] or "?", COUNTED.get(cells["outcome"])
        own = self._by_cache.setdefault(cache, {"hits": 0, "misses": 0, "saved_s": 0.0})
        own["saved_s"] += cells["saved_s"] or 0.0
        if counted in ("hits", "misses"):
            own[counted] += 1
        if cache not in COMPILE_CACHES:
            return
        key = (cells["rank"], cells["pid"], cells["compile_id"])
        if counted in ("hits", "misses"):
            tier = "remote " if cells["tier"] == "remote" else ""
            self._by_compile.setdefault(key, {}).setdefault(cache, Counter())[tier + counted] += 1
        if cells["saved_s"]:
            saved = self._saved.setdefault(key, {})
            saved[cache] = saved.get(cache, 0.0) + cells["saved_s"]

    def as_dict(self) -> dict[str, Any]:
        graphs = [found.get("fx_graph") or found["aot_autograd"] for found in self._by_compile.values()]
        return {
            "cache_hits": sum(g["hits"] + g["remote hits"] for g in graphs),
            "cache_misses": sum(max(g["misses"] - g["remote hits"], g["remote misses"]) for g in graphs),
            "cache_saved_s": sum(max(saved.values()) for saved in self._saved.values()),
            "by_cache": {cache: dict(own) for cache, own in self._by_cache.items()},
        }


class _TuningTotals:
    """Each row of a run says what its whole stage, or the whole run, took: of those the largest counts."""

    def __init__(self) -> None:
        self._choices = 0
        self._failed = 0
        self._spent: dict[tuple[Any, ...], dict[str | None, float]] = {}
        self._measured: set[tuple[Any, ...]] = set()

    def add(self, cells: Cells) -> None:
        key = get_run_key(SimpleNamespace(**cells))
        self._choices += 1
        self._failed += cells["time_ms"] is None and cells["fail_reason"] is not None
        if cells["from_cache"] is None:
            self._measured.add(key)
        spent = self._spent.setdefault(key, {})
        for name, part in (("benchmark_s", cells["stage"]), ("precompile_s", "")):
            if part != UNTIMED:
                spent[part] = max(spent.get(part, 0.0), cells[name] or 0.0)

    def as_dict(self) -> dict[str, Any]:
        return {
            "tuning_runs": len(self._measured),
            "tuning_choices": self._choices,
            "tuning_failed": self._failed,
            "tuning_s": sum(sum(spent.values()) for spent in self._spent.values()),
        }
