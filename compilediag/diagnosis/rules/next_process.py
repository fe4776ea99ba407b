"""What the next process finds in torch's caches, and what it pays again.

Dynamo traces in every process: `dynamo_s` outside `aot_s` is always paid again. What AOTAutogradCache keeps is found
with all that is below it. Without its entry AOTAutograd traces again, and FxGraphCache decides for each of the two
graphs. Kernels have files of their own, so a process that finds no graph still finds the kernels.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ...events import CacheLookup, Compile, Rows, SourceStatus
from ...formatting import format_function, format_line, format_seconds
from ..compile_cost import CompileCost
from ..evidence import Place, get_ids, get_place, group_by, is_timed, sum_seconds
from .break_even import MADE
from .cache_bypasses import advise_bypass
from .coverage import PARTS, map_collected

NO_BACKWARD = "torch stores the entry of AOTAutogradCache after the backward, and no backward was compiled"
NOT_STORED = "torch stored no entry"
FAILED = "the compile failed, so there is nothing to store"
#: Backends whose graphs torch caches.
CACHED_BACKEND = "inductor"
#: Compiles that the details list.
SHOWN = 20
#: Less is not worth a line.
WORTH_REPORTING_S = 0.1


@dataclass
class RepeatedTime:
    """The seconds (s) of one compile, its backward included, and what of them the next process pays again.

    `keys_s` computes the keys, `loading_s` is the time in which this process loaded what it found, and `saved_s`
    the time that this saved, as torch reports it. `uncached` maps the
    reason why no cache keeps a graph to the seconds of its compile.
    """

    place: Place
    evidence: tuple[int, ...]
    total_s: float
    dynamo_s: float = 0.0
    keys_s: float = 0.0
    loading_s: float = 0.0
    saved_s: float = 0.0
    uncached: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    @property
    def again_s(self) -> float:
        """s that the next process pays again."""
        return min(self.total_s, self.dynamo_s + self.keys_s + self.loading_s + sum(self.uncached.values()))

    @property
    def text(self) -> str:
        """`forward (train.py:31): 8.0 s of 20 s again: Dynamo 0.5 s, ...`."""
        times = f"{format_seconds(self.again_s)} of {format_seconds(self.total_s)} again"
        return f"{format_function(*self.place)}: {times}{_list_parts([self])}"


class CompileLookups:
    """The lookups and stores of one compile. `has_stores`: the session records stores; TORCH_TRACE logs do not."""

    def __init__(self, rows: Iterable[CacheLookup], has_stores: bool):
        self._rows = list(rows)
        self._has_stores = has_stores

    def select(self, cache: str, within: Compile | None = None) -> CompileLookups:
        """Those in one cache, during one of the compiles if it is given."""
        rows = (row for row in self._rows if row.cache == cache)
        if within is not None:
            rows = (row for row in rows if within.time_ns <= row.time_ns <= within.end_ns)
        return CompileLookups(rows, self._has_stores)

    @property
    def is_found(self) -> bool:
        """True if this process found the entry."""
        return any(row.outcome == "hit" for row in self._rows)

    @property
    def saved_s(self) -> float:
        """s that the hits saved."""
        return sum_seconds(row.saved_s for row in self._rows if row.outcome == "hit")

    @property
    def is_kept(self) -> bool:
        """True if the next process finds the entry that this one made."""
        outcomes = {row.outcome for row in self._rows}
        return "saved" in outcomes or (not self._has_stores and "miss" in outcomes)

    @property
    def is_looked_up(self) -> bool:
        """True if torch asked this cache at all."""
        return any(row.action == "look_up" for row in self._rows)

    @property
    def keys_s(self) -> float:
        """s of the lookups that found nothing: what was left to do was to compute the key."""
        return sum_seconds(row.duration_s for row in self._rows if row.action == "look_up" and row.outcome != "hit")

    @property
    def reason(self) -> str | None:
        """Why the next process finds nothing: the reason of a bypass or of a failed store."""
        ended = (row for row in self._rows if row.outcome in ("bypass", "disabled", "failed"))
        return next((format_line(row.reason or row.outcome, 160) for row in ended), None)


def find_repeated_time(data: Rows) -> list[RepeatedTime]:
    """What the next process pays again, per compile; empty if lookups were not collected."""
    states = data.rows(SourceStatus)
    if not map_collected(states).get("compile_caches", False) and not _watches_caches(states):
        return []
    has_stores = any(state.name == "dynamo_cache" and state.status == "active" for state in states)
    lookups = group_by(data.rows(CacheLookup), lambda row: row.compile_key)
    compiles = [row for row in data.rows(Compile) if is_timed(row.duration_s) and _is_paid_again(row)]
    return [
        _split(rows, CompileLookups(lookups.get(key, ()), has_stores))
        for key, rows in group_by(compiles, lambda row: row.compile_key).items()
    ]


def _is_paid_again(row: Compile) -> bool:
    """False for what was compiled ahead of time, to be saved, and for compiles of which nothing else is known."""
    return row.compile_key is not None and row.trigger != "aot_compile"


def _watches_caches(states: Iterable[SourceStatus]) -> bool:
    """True if lookups in the local tiers were collected; a remote cache that was not watched makes no difference."""
    return {*PARTS["compile_caches"][:2]} <= {state.name for state in states if state.status == "active"}


def _split(rows: Sequence[Compile], lookups: CompileLookups) -> RepeatedTime:
    time = RepeatedTime(get_place(rows[0]), get_ids(rows), sum_seconds(row.duration_s for row in rows))
    outer = lookups.select("aot_autograd")
    why = _explain_missing(rows, outer)
    for row in rows:
        if row.trigger == "lazy_backward":
            _add_backend(time, row, row.duration_s or 0.0, outer, why, lookups)
            continue
        aot_s = row.aot_s or 0.0
        time.dynamo_s += max(0.0, (row.duration_s or 0.0) - aot_s)
        _add_backend(time, row, aot_s, outer, why, lookups)
    if outer.is_kept:
        time.keys_s += outer.keys_s
    time.saved_s = outer.saved_s or lookups.select("fx_graph").saved_s
    return time


def _add_backend(
    time: RepeatedTime, row: Compile, spent_s: float, outer: CompileLookups, why: str, lookups: CompileLookups
) -> None:
    """Add what is paid again of the seconds below Dynamo of a forward or backward."""
    if outer.is_found:
        time.loading_s += spent_s
    elif not outer.is_kept and spent_s:
        inner_s = min(spent_s, row.inductor_s or 0.0)
        time.uncached[why] += spent_s - inner_s
        _add_graph(time, row, inner_s, lookups.select("fx_graph", row))


def _add_graph(time: RepeatedTime, row: Compile, inner_s: float, inner: CompileLookups) -> None:
    """Add what is paid again of the seconds in Inductor of one graph."""
    if inner.is_found:
        time.loading_s += inner_s
    elif inner.is_kept:
        time.keys_s += min(inner_s, inner.keys_s)
    elif inner_s:
        time.uncached[inner.reason or NOT_STORED] += max(0.0, inner_s - (row.triton_s or 0.0))


def _explain_missing(rows: Sequence[Compile], outer: CompileLookups) -> str:
    """Why the next process finds no entry in AOTAutogradCache."""
    backend = next((row.backend for row in rows if row.backend), None)
    if outer.reason:
        return outer.reason
    if any(row.outcome not in MADE for row in rows):
        return FAILED
    if backend is not None and CACHED_BACKEND not in backend:
        return f'the backend "{format_line(backend, 40)}" has no cache'
    has_backward = any(row.trigger == "lazy_backward" for row in rows)
    return NOT_STORED if has_backward or not outer.is_looked_up else NO_BACKWARD


def _format_part(again: float, total: float) -> str:
    part, whole = format_seconds(again), format_seconds(total)
    return f"all {whole}" if part == whole else f"{part} of these {whole}"


def find_next_process_cost(data: Rows) -> CompileCost | None:
    """What the next process pays again, in all; None if lookups were not collected, or it is next to nothing."""
    times = find_repeated_time(data)
    total, again = sum(time.total_s for time in times), sum(time.again_s for time in times)
    if again < WORTH_REPORTING_S:
        return None
    most = sorted(times, key=lambda time: -time.again_s)
    saved = sum(time.saved_s for time in times)
    hits = f"; caches saved {format_seconds(saved)} here" if saved >= WORTH_REPORTING_S else ""
    return CompileCost(
        kind="next_process",
        seconds=again,
        what=f"The next process pays {_format_part(again, total)} again{_list_parts(most)}{hits}",
        advice=_advise(most),
        evidence=tuple(number for time in most for number in time.evidence),
        details=tuple(time.text for time in most[:SHOWN] if time.again_s >= WORTH_REPORTING_S),
    )


def _list_parts(times: Sequence[RepeatedTime]) -> str:
    """`: Dynamo 4.0 s, graphs that no cache keeps 8.0 s`, without what is next to nothing."""
    parts = {
        "Dynamo": sum(time.dynamo_s for time in times),
        "cache keys": sum(time.keys_s for time in times),
        "loading cached graphs": sum(time.loading_s for time in times),
        "graphs that no cache keeps": sum(sum(time.uncached.values()) for time in times),
    }
    shown = [f"{name} {format_seconds(seconds)}" for name, seconds in parts.items() if seconds >= WORTH_REPORTING_S / 2]
    return f": {', '.join(shown)}" if shown else ""


def list_uncached(data: Rows) -> list[str]:
    """Why graphs are in no cache and what to do, one line per reason, most seconds first."""
    return _list_reasons(find_repeated_time(data))


def _list_reasons(times: Sequence[RepeatedTime]) -> list[str]:
    seconds: dict[str, float] = defaultdict(float)
    for time in times:
        for reason, spent in time.uncached.items():
            seconds[reason] += spent
    reasons = sorted((spent, reason) for reason, spent in seconds.items() if spent >= WORTH_REPORTING_S)
    return [f"{format_seconds(spent)}: {reason}. {_advise_reason(reason)}".strip() for spent, reason in reasons[::-1]]


def _advise(times: Sequence[RepeatedTime]) -> str:
    """Why graphs are in no cache; how to share caches if all are in one."""
    return " ".join(_list_reasons(times)) or (
        "Everything below Dynamo is in the caches of this machine. session.warmup(path) writes a script that saves "
        "them for another one. Dynamo traces again in every process: it takes less time for a smaller graph, such as "
        "one block of a model."
    )


def _advise_reason(reason: str) -> str:
    if reason == NO_BACKWARD:
        return "If no backward is needed, call the function under torch.no_grad(), and its entry is stored."
    return advise_bypass(reason)
