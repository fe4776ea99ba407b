"""Incidents: what compiled after the warm-up, why, and which inputs the warm-up lacks.

Recorded is that the warm-up of a process ended (`WarmupEnd`), and what compiles, as always. All else is derived here. A
compile is one incident; the cache misses, captures and tunings that belong to it are rows that name it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..decode.guards.path import format_expression
from ..events import (
    AutotuneChoice,
    CacheLookup,
    Compile,
    CudaGraphAction,
    Event,
    GuardFailure,
    KernelCompile,
    Recompile,
    RefusedCall,
    Rows,
    WarmupEnd,
    describe_column,
)
from ..formatting import format_change, format_first_line, format_function, format_line, format_op, format_seconds
from .evidence import Evidence, find_first, group_by, kept_after, kept_of, sum_known
from .finding import Finding, make_fingerprint, name_file
from .rules.caches import MISSES
from .rules.recompiles import find_recompiles
from .rules.refused_calls import find_refused_calls
from .variants import find_inputs

if TYPE_CHECKING:
    import pandas as pd

#: What an incident can be. `refused`: `end_warmup("raise")` raised, and nothing was compiled.
KINDS = (
    "compile",
    "recompile",
    "refused",
    "cache_miss",
    "autotune",
    "capture",
    "rerecord",
    "triton_jit",
)
_CAPTURES = {"record": "capture", "user_capture": "capture", "rerecord": "rerecord"}
#: Recompiles of a running program whose compile is not over yet.
MAX_PENDING = 1_000
MAX_CHANGE = 200


@dataclass(frozen=True)
class Incident:
    """Something that was compiled, captured, tuned or looked up in vain after the warm-up; its fields are `COLUMNS`."""

    event_id: int | None
    time_ns: int
    kind: str
    rank: int | None = None
    pid: int | None = None
    compile_id: str | None = None
    compile_key: str | None = None
    step: int | None = None
    thread: int | None = None
    function: str | None = None
    file: str | None = None
    line: int | None = None
    seconds: float | None = None
    count: int = 1
    cause: str | None = None
    fingerprint: str | None = None
    change: str | None = None
    inputs: str | None = None
    part_of: int | None = None

    def __str__(self) -> str:
        """`recompile of forward (model.py:30) at step 412, 1.3 s: x.shape[0] was 4, then 6`."""
        what = self.kind.replace("_", " ")
        of = f" of {format_function(self.function, self.file, self.line)}" if self.function else ""
        when = f" at step {self.step}" if self.step is not None else ""
        took = f", {format_seconds(self.seconds)}" if self.seconds is not None else ""
        return f"{what}{of}{when}{took}: {self.change or self.cause or 'its cause is not known'}"


#: The columns of `Session.incidents`, beside those of all tables.
COLUMNS = {
    "kind": describe_column("string", "one of the kinds of incidents"),
    "function": describe_column("string", "name of the compiled code object, or of the kernel"),
    "step": describe_column("Int64", "the program's own step in which it began"),
    "seconds": describe_column("float64", "how long it took; NA if it was not timed", unit="s"),
    "change": describe_column("string", "what was new at this call"),
    "inputs": describe_column("string", "what to call the function with during the warm-up"),
    "cause": describe_column("string", "title of the finding on its cause"),
    "fingerprint": describe_column("string", "names the cause in every session: the fingerprint of the finding"),
    "part_of": describe_column("Int64", "number of the compile that this belongs to; NA if it stands on its own"),
    "count": describe_column("Int64", "how often; more than 1 for refused calls only"),
    "thread": describe_column("Int64", "thread of a compile: Python's identifier"),
    "file": describe_column("string", "file of the code object"),
    "line": describe_column("Int64", "first line of the code object"),
}
_COMMON = {"event_id": "Int64", "time": "Int64", "rank": "Int64", "pid": "Int64", "compile_key": "string"}


# What is an incident, and what its event alone says


def describe_guard(row: Recompile | RefusedCall) -> str | None:
    """`x.size(0) was 4, then 6`: the guard that failed; None if it is not known."""
    if not row.guard_source:
        return None if row.reason is None else format_first_line(row.reason, MAX_CHANGE)
    values = [value for value in (row.expected, row.actual) if value is not None]
    change = format_change(values) if len(values) > 1 else "changed"
    return format_line(f"{format_expression(row.guard_source)} {change}", MAX_CHANGE)


def read_incident(event: Event) -> Incident | None:
    """An event as the incident that it is after the warm-up; None for what compiles nothing."""
    match event:
        case Compile():
            first = "its first backward" if event.trigger == "lazy_backward" else "it was not compiled before"
            kind = "recompile" if event.is_recompile else "compile"
            return _make(event, kind, event.duration_s, None if event.is_recompile else first, thread=event.thread)
        case RefusedCall(refused_by="end_warmup"):
            change = describe_guard(event) or "it was not compiled before"
            return _make(event, "refused", None, change, count=event.count or 1)
        case CacheLookup(action="look_up") if event.outcome in MISSES and event.cache != "dynamo_code":
            differs = event.key_diff[0] if event.key_diff else event.reason
            return _make(event, "cache_miss", None, f"{event.cache} {event.tier or ''}: {differs or event.outcome}")
        case AutotuneChoice(from_cache=None, time_ms=float()):
            inputs = ", ".join(event.inputs or ())
            spent = sum_known((event.precompile_s, event.benchmark_s))
            return _make(event, "autotune", spent, f"{format_op(event.op)} {inputs}".strip())
        case CudaGraphAction() if event.action in _CAPTURES:
            seconds = None if event.duration_ms is None else event.duration_ms / 1e3
            why = event.mismatch or event.reason or (f"sizes {event.sizes}" if event.sizes else "no graph yet")
            return _make(event, _CAPTURES[event.action], seconds, why)
        case KernelCompile(language="triton", outcome="compiled", compile_key=None):
            return _make(event, "triton_jit", event.duration_s, event.title, function=event.name)
        case _:
            return None


def _make(event: Event, kind: str, seconds: float | None, change: str | None, **fields: Any) -> Incident:
    shared = ("event_id", "time_ns", "rank", "pid", "compile_id", "compile_key")
    place = {name: getattr(event, name, None) for name in ("step", "function", "file", "line")}
    known = {**{name: getattr(event, name) for name in shared}, **place, **fields}
    short = None if change is None else format_first_line(change, MAX_CHANGE)
    return Incident(kind=kind, seconds=seconds, change=short, **known)


class IncidentFinder:
    """Finds the incidents that stand on their own in the events of a running program, as they come.

    For listeners (`recording/recorder.py`), such as metrics and warnings. Causes are known later, from a session.
    """

    def __init__(self) -> None:
        self._recompiles: dict[str, Recompile] = {}
        self._seen: set[object] = set()

    def add(self, events: Iterable[Event], end: WarmupEnd | None) -> list[Incident]:
        """The incidents among these events. `end` is the end of the warm-up; None before."""
        found = []
        for event in events:
            if isinstance(event, Recompile) and event.compile_key is not None:
                if len(self._recompiles) >= MAX_PENDING:
                    self._recompiles.clear()
                self._recompiles[event.compile_key] = event
            incident = read_incident(event) if end is not None and event.time_ns >= end.time_ns else None
            if incident is not None and self._is_new(event, incident):
                found.append(incident)
        completed = []
        for incident in found:
            row = self._recompiles.pop(incident.compile_key or "", None)
            completed.append(incident if row is None else dataclasses.replace(incident, change=describe_guard(row)))
        return completed

    def _is_new(self, event: Event, incident: Incident) -> bool:
        """False for what belongs to a compile, and for another row of the same tuning."""
        if incident.kind == "cache_miss" and incident.compile_key is not None:
            return False
        key: object = incident.compile_key
        if isinstance(event, Compile):
            self._seen.add(key)
            return True
        if key is not None and key in self._seen and incident.kind != "refused":
            return False
        run = event.run_id if isinstance(event, AutotuneChoice) else None
        if run is not None and ("run", run) in self._seen:
            return False
        self._seen.add(("run", run))
        if len(self._seen) > 20 * MAX_PENDING:
            self._seen.clear()
        return True


# The incidents of a session


@kept_of(WarmupEnd)
def find_warmup_ends(evidence: Evidence) -> list[WarmupEnd]:
    """The end of the warm-up of each process that ended it, the earliest first."""
    ends = sorted(evidence.rows(WarmupEnd), key=lambda row: row.time_ns)
    return list({(row.rank, row.pid): row for row in reversed(ends)}.values())[::-1]


class _Ends:
    """When the warm-up of each process ended. A process that did not say so has the end of its rank, or of the job."""

    def __init__(self, ends: Sequence[WarmupEnd]):
        self._known: dict[object, int] = {}
        for row in ends:
            for key in ((row.rank, row.pid), row.rank, "all"):
                self._known.setdefault(key, row.time_ns)

    def is_after(self, event: Event) -> bool:
        keys = ((event.rank, event.pid), event.rank, "all")
        end = find_first(self._known.get(key) for key in keys)
        return end is not None and event.time_ns >= end


def list_cold_compiles(data: Rows) -> list[Compile]:
    """The compiles that began before the warm-up of their process ended; all of a process whose warm-up never ended."""
    evidence = Evidence.of(data)
    ends = _Ends(find_warmup_ends(evidence))
    return [row for row in evidence.rows(Compile) if not ends.is_after(row)]


@kept_of(WarmupEnd)
def list_incidents(evidence: Evidence) -> list[Incident]:
    """All incidents of a session in the order of their events, without their causes; none if no warm-up ended."""
    ends = _Ends(find_warmup_ends(evidence))
    kinds = (Compile, RefusedCall, CacheLookup, AutotuneChoice, CudaGraphAction, KernelCompile)
    events = [event for kind in kinds for event in evidence.rows(kind) if ends.is_after(event)]
    read = [(event, incident) for event in events if (incident := read_incident(event)) is not None]
    # Recompiles whose compile has not ended: it runs, or its process was killed.
    compiled = {row.compile_key for row in evidence.rows(Compile)}
    late = [row for row in evidence.rows(Recompile) if ends.is_after(row) and row.compile_key not in compiled]
    unfinished = [_make(row, "recompile", None, None, thread=row.thread) for row in late]
    found = sorted([*_join_rows(read), *unfinished], key=lambda incident: incident.event_id or 0)
    # A cache miss, a capture or a tuning belongs to a compile: to the forward of a forward and backward.
    wholes = [one for one in found if one.kind in ("compile", "recompile") and one.compile_key is not None]
    numbers = {one.compile_key: one.event_id for one in reversed(wholes)}
    alone = ("compile", "recompile", "refused")
    return [
        one if one.kind in alone else dataclasses.replace(one, part_of=numbers.get(one.compile_key)) for one in found
    ]


@kept_after(list_incidents, find_recompiles, find_refused_calls, find_inputs)
def find_incidents(evidence: Evidence) -> list[Incident]:
    """All incidents of a session with their causes, fingerprints, changes and inputs."""
    incidents = list_incidents(evidence)
    if not incidents:
        return []
    recompiles = {row.compile_key: row for row in evidence.rows(Recompile) if row.compile_key}
    refused = {row.event_id: row for row in evidence.rows(RefusedCall)}
    findings: dict[int | None, Finding] = {}
    for finding in (*find_recompiles(evidence), *find_refused_calls(evidence)):
        for number in finding.evidence:
            findings.setdefault(number, finding)
    found = []
    for one in incidents:
        row: Recompile | RefusedCall | None = refused.get(one.event_id)
        if one.kind in ("compile", "recompile"):
            row = recompiles.get(one.compile_key or "")
        change = (describe_guard(row) if row is not None else None) or one.change
        known = findings.get(row.event_id if row is not None else one.event_id)
        place = format_function(one.function, one.file, one.line)
        cause = f"{one.kind.replace('_', ' ')} of {place} after the warm-up: {change or 'first call'}"
        found.append(
            dataclasses.replace(
                one,
                cause=cause if known is None else known.title,
                fingerprint=make_incident_fingerprint(one) if known is None else known.fingerprint,
                change=change,
                inputs=_name_inputs(evidence, one, row),
            )
        )
    return found


def _join_rows(read: Sequence[tuple[Event, Incident]]) -> list[Incident]:
    """One incident per tuning, and per function and guard of refused calls."""

    def get_key(pair: tuple[Event, Incident]) -> object:
        event, incident = pair
        if isinstance(event, AutotuneChoice) and event.run_id is not None:
            return "autotune", event.rank, event.pid, event.run_id
        return ("refused", incident.compile_key) if incident.kind == "refused" else incident.event_id

    joined = []
    for group in group_by(read, get_key).values():
        incidents = [incident for _, incident in group]
        count = sum(one.count for one in incidents) if incidents[0].kind == "refused" else 1
        seconds = max((one.seconds for one in incidents if one.seconds is not None), default=None)
        joined.append(dataclasses.replace(incidents[0], count=count, seconds=seconds))
    return joined


def _name_inputs(evidence: Evidence, incident: Incident, row: Recompile | RefusedCall | None) -> str | None:
    """`x: f32[4, 16], n = 6`: the tensors of the graph, and the guarded values that differed, which are all that is
    known where the graph was not recorded.
    """
    tensors = find_inputs(evidence).get(incident.compile_key)
    failed: list[Recompile | RefusedCall | GuardFailure] = [] if row is None else [row]
    if row is not None and row.compile_key is not None:
        of_closest = evidence.by_compile(GuardFailure).get(row.compile_key, ())
        failed += [one for one in of_closest if one.entry_compile_key == row.closest_compile_key]
    kinds = ("value", "type", "length") if tensors else None
    values = [
        f"{format_expression(one.guard_source)} = {one.actual}"
        for one in failed
        if one.guard_source and one.actual is not None and (kinds is None or one.guard_kind in kinds)
    ]
    return format_line(", ".join(dict.fromkeys([*filter(None, (tensors,)), *values])), MAX_CHANGE) or None


def make_incident_fingerprint(incident: Incident) -> str:
    """The fingerprint of an incident that no finding explains."""
    return make_fingerprint(f"after_warmup:{incident.kind}", incident.function, name_file(incident.file))


@kept_after(find_recompiles)
def name_causes(evidence: Evidence) -> dict[str, str]:
    """The fingerprint of the finding on each recompile, by its compile key."""
    keys = {row.event_id: row.compile_key for row in evidence.rows(Recompile)}
    named = [(keys.get(number), one.fingerprint) for one in find_recompiles(evidence) for number in one.evidence]
    return {key: fingerprint for key, fingerprint in named if key is not None}


def count_incidents(incidents: Iterable[Incident]) -> int:
    """Those that stand on their own, and each refused call."""
    return sum(one.count for one in incidents if one.part_of is None)


def make_incident_frame(data: Rows) -> pd.DataFrame:
    """One row per incident, with the columns of `COLUMNS` and those of all tables."""
    import pandas as pd

    types = {"compile_id": "string", **{name: spec["dtype"] for name, spec in COLUMNS.items()}, **_COMMON}
    rows = [{**dataclasses.asdict(incident), "time": incident.time_ns} for incident in find_incidents(data)]
    frame = pd.DataFrame(rows, columns=list(types)).astype(types)
    return frame.assign(time=pd.to_datetime(frame["time"], unit="ns", utc=True))
