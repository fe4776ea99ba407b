"""The totals of a session. Every view shows these totals and no others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from ..diagnosis import CallTotals, sum_calls
from ..diagnosis.rules.autotune import UNTIMED, RunKey, get_run_key
from ..diagnosis.rules.caches import COUNTED
from ..events import (
    COMPILE_CACHES,
    KINDS,
    AutotuneChoice,
    CacheLookup,
    Compile,
    CudaGraphAction,
    Event,
    GraphBreak,
    KernelCompile,
    RankMember,
    Recompile,
    RefusedCall,
    Rows,
    SourceStatus,
    VllmCompile,
)
from ..formatting import format_amount, format_seconds
from .page_types import SingleCacheTotals, TotalsDict

#: CUDA graph action -> its total. Replays are None if they were not counted.
GRAPH_TOTALS = {
    "record": "graph_records",
    "rerecord": "graph_rerecords",
    "user_capture": "graph_records",
    "skip": "graph_skips",
    "limit": "graph_skips",
}


def compute_totals(data: Rows) -> TotalsDict:
    """The totals of a session."""
    totals = Totals()
    for kind in KINDS:
        if kind is not SourceStatus:
            for event in data.rows(kind):
                totals.add(event)
    states = data.rows(SourceStatus)
    totals.count_events(len(states))
    return totals.to_dict(states, sum_calls(data))


def describe_totals(totals: TotalsDict) -> str:
    """The totals in a few words: `3 compiles, 2 recompiles, 0 graph breaks, 4.5 s compiling`."""
    parts = [
        format_amount(totals["compiles"], "compile"),
        format_amount(totals["recompiles"], "recompile"),
        format_amount(totals["graph_breaks"], "graph break"),
        f"{format_seconds(totals['compile_s'])} compiling",
    ]
    return ", ".join(parts)


class Totals:
    """Adds up events as they come. A recompile may come again, when its seconds are known."""

    def __init__(self) -> None:
        self._events = 0
        self._counts: Counter[type[Event]] = Counter()
        self._limit_hits = self._refused_calls = 0
        self._compile_s = 0.0
        self._lost_s: dict[int | None, float] = {}
        self._lost_sum = 0.0
        self._caches = _CacheTotals()
        self._tuning = _TuningTotals()
        self._graphs: Counter[str] = Counter()
        self._replays: int | None = None
        self._read_ranks: set[int | None] = set()
        self._vllm_s = 0.0
        self._adders: dict[type[Event], Callable[[Any], None]] = {
            Compile: self._add_compile,
            Recompile: self._add_recompile,
            RefusedCall: self._add_refused,
            CacheLookup: self._caches.add,
            AutotuneChoice: self._tuning.add,
            CudaGraphAction: self._add_graph,
            RankMember: self._add_member,
            VllmCompile: self._add_piece,
        }

    def add(self, event: Event) -> None:
        """Take an event."""
        self._events += 1
        self._counts[type(event)] += 1
        if type(event) in self._adders:
            self._adders[type(event)](event)

    def update_recompile(self, event: Recompile) -> None:
        """Take the seconds of a recompile that was added before."""
        self._add_recompile(event)

    def count_events(self, number: int) -> None:
        """Count events of which nothing but their number is needed."""
        self._events += number

    def _add_compile(self, event: Compile) -> None:
        self._limit_hits += event.limit is not None
        self._compile_s += event.duration_s or 0

    def _add_recompile(self, event: Recompile) -> None:
        if event.lost_s is not None:
            self._lost_sum += event.lost_s - self._lost_s.get(event.event_id, 0.0)
            self._lost_s[event.event_id] = event.lost_s

    def _add_refused(self, event: RefusedCall) -> None:
        self._refused_calls += event.count or 0

    def _add_graph(self, event: CudaGraphAction) -> None:
        if event.action == "replays":
            self._replays = (self._replays or 0) + (event.count or 0)
        elif event.action in GRAPH_TOTALS:
            self._graphs[GRAPH_TOTALS[event.action]] += 1

    def _add_member(self, event: RankMember) -> None:
        self._read_ranks.add(event.like)

    def _add_piece(self, event: VllmCompile) -> None:
        self._vllm_s += event.duration_s or 0

    def to_dict(self, states: Iterable[SourceStatus], calls: CallTotals) -> TotalsDict:
        """The totals so far, with the last states of the sources and the totals of calls."""
        states = list(states)
        own_s = sum(state.overhead_s or 0 for state in states)
        return {
            "events": self._events,
            "compiles": self._counts[Compile],
            "recompiles": self._counts[Recompile],
            "refused_calls": self._refused_calls,
            "graph_breaks": self._counts[GraphBreak],
            "limit_hits": self._limit_hits,
            "kernels": self._counts[KernelCompile],
            "cache_hits": self._caches.hits,
            "cache_misses": self._caches.misses,
            "cache_saved_s": self._caches.saved_s,
            "by_cache": {cache: {**own} for cache, own in self._caches.by_cache.items()},
            "tuning_runs": len(self._tuning.measured),
            "tuning_choices": self._counts[AutotuneChoice],
            "tuning_failed": self._tuning.failed,
            "tuning_s": sum(sum(spent.values()) for spent in self._tuning.spent.values()),
            "graph_records": self._graphs["graph_records"],
            "graph_rerecords": self._graphs["graph_rerecords"],
            "graph_skips": self._graphs["graph_skips"],
            "graph_replays": self._replays,
            "compile_s": self._compile_s,
            "lost_s": self._lost_sum,
            "own_s": own_s,
            "own_share": own_s / self._compile_s if self._compile_s else None,
            "dropped": sum(state.dropped or 0 for state in states),
            "compiled_calls": calls.compiled_calls,
            "eager_calls": calls.eager_calls,
            "eager_s": calls.eager_s,
            "used_once": calls.used_once,
            "used_once_s": calls.used_once_s,
            "ranks": self._counts[RankMember] or None,
            "ranks_read": len(self._read_ranks) or None,
            "vllm_compiles": self._counts[VllmCompile],
            "vllm_s": self._vllm_s,
        }


class _CacheTotals:
    """What the caches of compiled graphs answered, and each cache by itself.

    A hit of AOTAutogradCache contains those of FxGraphCache. So the lookups of FxGraphCache count for a compile, those
    of AOTAutogradCache where there were none, and of the seconds saved the larger sum. A graph that the local tier
    lacked and the remote one had is a hit.
    """

    def __init__(self) -> None:
        self._by_compile: dict[object, _CompileLookups] = defaultdict(_CompileLookups)
        self.by_cache: dict[str, SingleCacheTotals] = {}
        self.hits = self.misses = 0
        self.saved_s = 0.0

    def add(self, event: CacheLookup) -> None:
        cache, counted = event.cache or "?", COUNTED.get(event.outcome or "")
        own = self.by_cache.setdefault(cache, {"hits": 0, "misses": 0, "saved_s": 0.0})
        own["saved_s"] += event.saved_s or 0.0
        own["hits"] += counted == "hits"
        own["misses"] += counted == "misses"
        if cache in COMPILE_CACHES:
            # Lookups outside of any compile count together, by process.
            lookups = self._by_compile[event.compile_key or (event.rank, event.pid, event.compile_id)]
            hits, misses, saved_s = lookups.hits, lookups.misses, lookups.saved_s
            lookups.add(event)
            self.hits += lookups.hits - hits
            self.misses += lookups.misses - misses
            self.saved_s += lookups.saved_s - saved_s


class _CompileLookups:
    """The lookups of one compile in the caches of compiled graphs."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {}
        self._saved: dict[str, float] = defaultdict(float)

    def add(self, event: CacheLookup) -> None:
        cache, counted = event.cache or "?", COUNTED.get(event.outcome or "")
        if counted in ("hits", "misses"):
            tier = "remote " if event.tier == "remote" else ""
            self._counts.setdefault(cache, Counter())[tier + counted] += 1
        self._saved[cache] += event.saved_s or 0.0

    @property
    def _graphs(self) -> Counter[str]:
        return self._counts.get("fx_graph") or self._counts.get("aot_autograd") or Counter()

    @property
    def hits(self) -> int:
        return self._graphs["hits"] + self._graphs["remote hits"]

    @property
    def misses(self) -> int:
        return max(self._graphs["misses"] - self._graphs["remote hits"], self._graphs["remote misses"])

    @property
    def saved_s(self) -> float:
        return max(self._saved.values(), default=0.0)


class _TuningTotals:
    """Every choice has the seconds of its whole stage, or of the whole run: the largest counts once."""

    def __init__(self) -> None:
        self.failed = 0
        self.spent: dict[RunKey, dict[str, float]] = {}
        self.measured: set[RunKey] = set()

    def add(self, event: AutotuneChoice) -> None:
        key = get_run_key(event)
        self.failed += event.time_ms is None and event.fail_reason is not None
        if event.from_cache is None:
            self.measured.add(key)
        spent = self.spent.setdefault(key, {})
        spent["precompile"] = max(spent.get("precompile", 0.0), event.precompile_s or 0.0)
        if event.stage != UNTIMED:
            stage = f"stage {event.stage}"
            spent[stage] = max(spent.get(stage, 0.0), event.benchmark_s or 0.0)
