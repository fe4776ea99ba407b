"""The totals of a session. Every view shows these totals and no others."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import Any, cast

from ..diagnosis import CallTotals, sum_calls
from ..diagnosis.incidents import count_incidents, find_warmup_ends, list_incidents
from ..diagnosis.rules.autotune import UNTIMED, RunKey, get_run_key
from ..diagnosis.rules.caches import COUNTED
from ..events import (
    COMPILE_CACHES,
    KINDS,
    NS_PER_S,
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
from ..system import clock
from .page_types import SingleCacheTotals, TotalsDict


def _one(event: Event) -> int:
    return 1


#: Kind of event -> the totals that are sums over its events, and what an event adds to each.
SUMS: dict[type[Event], dict[str, Callable[[Any], float]]] = {
    Compile: {
        "compiles": _one,
        "limit_hits": lambda event: event.limit is not None,
        "compile_s": lambda event: event.duration_s or 0,
    },
    Recompile: {"recompiles": _one},
    RefusedCall: {"refused_calls": lambda event: event.count or 0},
    GraphBreak: {"graph_breaks": _one},
    KernelCompile: {"kernels": _one},
    AutotuneChoice: {
        "tuning_choices": _one,
        "tuning_failed": lambda event: event.time_ms is None and event.fail_reason is not None,
    },
    CudaGraphAction: {
        "graph_records": lambda event: event.action in ("record", "user_capture"),
        "graph_rerecords": lambda event: event.action == "rerecord",
        "graph_skips": lambda event: event.action in ("skip", "limit"),
    },
    RankMember: {"ranks": _one},
    VllmCompile: {"vllm_compiles": _one, "vllm_s": lambda event: event.duration_s or 0},
}


#: A shorter recording says little about the share of time that compiling takes.
WORTH_A_SHARE_S = 60.0


def compute_totals(data: Rows) -> TotalsDict:
    """The totals of a session."""
    totals = Totals()
    for kind in KINDS:
        for event in data.rows(kind):
            totals.add(event)
    return totals.to_dict(data.rows(SourceStatus), sum_calls(data), Course.of(data))


@dataclass(frozen=True)
class Course:
    """How a recording went: how long it took, the program's last step, and how many incidents there are.

    None is what is not known, or if no warm-up ended.
    """

    wall_s: float | None = None
    end_step: int | None = None
    after_warmup: int | None = None

    @classmethod
    def of(cls, data: Rows) -> Course:
        """That of a session, until now while it runs."""
        meta = getattr(data, "meta", {})
        begin, end, step = meta.get("created_ns"), meta.get("stopped_ns"), meta.get("last_step")
        if end is None and getattr(data, "state", None) == "watching":
            end = clock.now_ns()
        wall_s = (end - begin) / NS_PER_S if begin is not None and end is not None and end > begin else None
        incidents = count_incidents(list_incidents(data)) if find_warmup_ends(data) else None
        return cls(wall_s, step if isinstance(step, int) else None, incidents)


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
        names = (name for sums in SUMS.values() for name in sums)
        self._sums: dict[str, float] = {name: 0.0 if name.endswith("_s") else 0 for name in names}
        self._events = 0
        self._lost_s: dict[int | None, float] = {}
        self._lost_sum = 0.0
        self._caches = _CacheTotals()
        self._tuning = _TuningTotals()
        #: None if replays were not counted.
        self._replays: int | None = None
        self._read_ranks: set[int | None] = set()
        #: Process -> begin and end of its compiles, in ns.
        self._compiling: dict[object, list[tuple[int, int]]] = defaultdict(list)
        self._last: Compile | None = None

    def add(self, event: Event) -> None:
        """Take an event."""
        self._events += 1
        for name, measure in SUMS.get(type(event), {}).items():
            self._sums[name] += measure(event)
        match event:
            case Compile():
                self._compiling[event.rank, event.pid].append((event.time_ns, event.end_ns))
                self._last = event if self._last is None else max(self._last, event, key=lambda row: row.time_ns)
            case Recompile():
                self.update_recompile(event)
            case CacheLookup():
                self._caches.add(event)
            case AutotuneChoice():
                self._tuning.add(event)
            case CudaGraphAction(action="replays"):
                self._replays = (self._replays or 0) + (event.count or 0)
            case RankMember():
                self._read_ranks.add(event.like)

    def update_recompile(self, event: Recompile) -> None:
        """Take the seconds of a recompile, also of one that was added before."""
        if event.lost_s is not None:
            self._lost_sum += event.lost_s - self._lost_s.get(event.event_id, 0.0)
            self._lost_s[event.event_id] = event.lost_s

    def to_dict(
        self,
        states: Collection[SourceStatus],
        calls: CallTotals,
        course: Course,
    ) -> TotalsDict:
        """The totals so far, with the last states of the sources, the totals of calls, and how the recording went."""
        own_s, compile_s = sum(state.overhead_s or 0 for state in states), self._sums["compile_s"]
        totals = {
            **self._sums,
            **asdict(calls),
            "events": self._events,
            "cache_hits": self._caches.hits,
            "cache_misses": self._caches.misses,
            "cache_saved_s": self._caches.saved_s,
            "by_cache": {cache: {**own} for cache, own in self._caches.by_cache.items()},
            "tuning_runs": len(self._tuning.measured),
            "tuning_s": sum(sum(spent.values()) for spent in self._tuning.spent.values()),
            "graph_replays": self._replays,
            "lost_s": self._lost_sum,
            "own_s": own_s,
            "own_share": own_s / compile_s if compile_s else None,
            **asdict(course),
            "wall_share": self._measure_share(course.wall_s),
            "last_step": None if self._last is None else self._last.step,
            "dropped": sum(state.dropped or 0 for state in states),
            "ranks": self._sums["ranks"] or None,
            "ranks_read": len(self._read_ranks) or None,
        }
        return cast(TotalsDict, {name: totals[name] for name in TotalsDict.__annotations__})

    def _measure_share(self, wall_s: float | None) -> float | None:
        """The share of time in which a process compiled, the mean of those that did: threads may compile at once. None
        for a short run without steps, such as a test.
        """
        if not wall_s or self._last is None or (wall_s < WORTH_A_SHARE_S and self._last.step is None):
            return None
        busy = []
        for spans in self._compiling.values():
            total, reached = 0, 0
            for begin, end in sorted(spans):
                total += max(0, end - max(begin, reached))
                reached = max(reached, end)
            busy.append(total / NS_PER_S)
        return sum(busy) / len(busy) / wall_s


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
            hits, misses, saved_s = lookups.answers
            lookups.add(event)
            more_hits, more_misses, more_s = lookups.answers
            self.hits += more_hits - hits
            self.misses += more_misses - misses
            self.saved_s += more_s - saved_s


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
    def answers(self) -> tuple[int, int, float]:
        """Hits, misses, and the seconds that hits saved."""
        graphs = self._counts.get("fx_graph") or self._counts.get("aot_autograd") or Counter()
        misses = max(graphs["misses"] - graphs["remote hits"], graphs["remote misses"])
        return graphs["hits"] + graphs["remote hits"], misses, max(self._saved.values(), default=0.0)


class _TuningTotals:
    """Every choice has the seconds of its whole stage, or of the whole run: the largest counts once."""

    def __init__(self) -> None:
        self.spent: dict[RunKey, dict[str, float]] = {}
        self.measured: set[RunKey] = set()

    def add(self, event: AutotuneChoice) -> None:
        key = get_run_key(event)
        if event.from_cache is None:
            self.measured.add(key)
        spent = self.spent.setdefault(key, {})
        spent["precompile"] = max(spent.get("precompile", 0.0), event.precompile_s or 0.0)
        if event.stage != UNTIMED:
            stage = f"stage {event.stage}"
            spent[stage] = max(spent.get(stage, 0.0), event.benchmark_s or 0.0)
