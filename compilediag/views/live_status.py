"""The state of a running job: what each process compiles now, whether it is alive, what it compiled, and the plan."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

from ..diagnosis.evidence import group_by
from ..diagnosis.incidents import Incident, count_incidents, describe_guard, find_warmup_ends, list_incidents
from ..diagnosis.plan import Plan, make_plan
from ..diagnosis.rank_comparison import ColdRank, find_cold_ranks
from ..events import NS_PER_S, Compile, Event, Recompile, WarmupEnd
from ..events.words import format_phase
from ..formatting import format_amount, format_function, format_names, format_seconds
from ..json_document import described
from ..storage.data import SessionData
from ..system import clock
from .model import Pace

#: Seconds without a compile after which a job may hang outside of torch.compile.
QUIET_S = 30.0
Row = TypeVar("Row", bound=Event)
_RANK_FILE = re.compile(r"rank-(\d+)")
#: A compile, or the time without one, is reported again after so many seconds, then after twice as many, and so on.
FIRST_REPORT_S = 30.0
#: Recompiles that are shown.
SHOWN_RECOMPILES = 5


class LiveFile(Protocol):
    """A session file that a process may be writing."""

    path: Path
    progress: dict[int, dict[int, dict[str, Any]]]
    pids: set[int]
    ranks: dict[int, int]
    is_live: bool

    @property
    def pid(self) -> int | None: ...
    @property
    def began_ns(self) -> int: ...
    @property
    def ended_ns(self) -> int | None: ...
    @property
    def was_killed(self) -> bool: ...


@dataclass(frozen=True)
class CompileInFlight:
    """A compile that runs."""

    function: str = described("the function, with its place")
    phase: str | None = described("the innermost phase")
    started_ns: int = described("when it began, in ns since 1970")
    before_s: float | None = described("seconds that the last one of it took; null for the first one")

    @property
    def usual(self) -> str:
        """` (the last time: 1.3 s)`; "" if it is the first one."""
        return f" (the last time: {format_seconds(self.before_s)})" if self.before_s else ""


@dataclass(frozen=True)
class ProcessStatus:
    """One process, usually a rank, with its children. `quiet_since_ns` is when its last compile ended, or it began.
    `ended_ns` is None for a process that runs or was killed.
    """

    path: Path
    name: str
    pid: int | None
    is_live: bool
    was_killed: bool
    in_flight: tuple[CompileInFlight, ...]
    began_ns: int
    quiet_since_ns: int
    ended_ns: int | None
    compiles: tuple[Compile, ...]
    recompiles: tuple[Recompile, ...]

    @property
    def compile_s(self) -> float:
        """Seconds of its compiles."""
        return sum(row.duration_s or 0.0 for row in self.compiles)

    @property
    def ending(self) -> str:
        """`ended`, or `killed while it compiled forward (train.py:28)`."""
        if not self.was_killed:
            return "ended"
        return f"killed while it compiled {self.in_flight[0].function}" if self.in_flight else "killed"


@dataclass(frozen=True)
class JobStatus:
    """The job as a whole, at `now_ns`."""

    title: str
    processes: tuple[ProcessStatus, ...]
    plan: Plan
    now_ns: int
    is_live: bool
    warmup_ends: tuple[WarmupEnd, ...]
    incidents: tuple[Incident, ...]
    cold_ranks: tuple[ColdRank, ...]

    @property
    def recompiles(self) -> list[tuple[str, Recompile]]:
        """The last recompiles with the names of their processes, the latest first."""
        found = [(process.name, row) for process in self.processes for row in process.recompiles]
        return sorted(found, key=lambda pair: pair[1].time_ns, reverse=True)[:SHOWN_RECOMPILES]

    def measure(self, since_ns: int) -> float:
        """Seconds since then."""
        return max(0.0, (self.now_ns - since_ns) / NS_PER_S)


@dataclass
class JobReader:
    """Reads the state of a job again and again. The plan is made when there are new recompiles and time for it."""

    data: SessionData
    title: str
    _plan: Plan = field(default_factory=Plan)
    _planned: int = -1
    _pace: Pace = field(default_factory=Pace)

    def read(self, files: Collection[LiveFile]) -> JobStatus:
        """The state now; `files` are the session's."""
        with self.data.settled():
            compiles, recompiles = self.data.rows(Compile), self.data.rows(Recompile)
            is_live = self.data.state == "watching"
            ends, incidents = find_warmup_ends(self.data), list_incidents(self.data)
            cold = find_cold_ranks(self.data)
            if len(recompiles) != self._planned and (self._pace.begin() or not is_live):
                self._plan, self._planned = make_plan(self.data), len(recompiles)
                self._pace.end()
        timed = (row for row in compiles if row.duration_s is not None)
        before = {(row.function, row.file, row.line, row.trigger): row.duration_s for row in timed}
        by_pid = (group_by(compiles, lambda row: row.pid), group_by(recompiles, lambda row: row.pid))
        processes = [_describe(file, len(files), *by_pid, before) for file in files]
        processes.sort(key=lambda process: [int(n) for n in re.findall(r"\d+", process.name)])
        found = (tuple(ends), tuple(incidents), tuple(cold))
        return JobStatus(self.title, tuple(processes), self._plan, clock.now_ns(), is_live, *found)


def _describe(
    file: LiveFile,
    count: int,
    compiles: Mapping[int | None, list[Compile]],
    recompiles: Mapping[int | None, list[Recompile]],
    before: Mapping[tuple[Any, ...], float | None],
) -> ProcessStatus:
    # A launcher named the rank before the first event had one.
    named = _RANK_FILE.fullmatch(file.path.stem)
    rank = int(named[1]) if named else file.ranks.get(file.pid or 0)
    name = f"process {file.pid}" if count == 1 else file.path.stem
    own = _join_processes(compiles, file.pids)
    states = [state for threads in file.progress.values() for state in threads.values()]
    return ProcessStatus(
        path=file.path,
        name=name if rank is None else f"rank {rank}",
        pid=file.pid,
        is_live=file.is_live,
        was_killed=file.was_killed,
        in_flight=tuple(_describe_state(state, before) for state in states if state.get("started_ns")),
        began_ns=file.began_ns,
        quiet_since_ns=max([file.began_ns, *(row.end_ns for row in own)]),
        ended_ns=None if file.is_live else file.ended_ns,
        compiles=own,
        recompiles=_join_processes(recompiles, file.pids),
    )


def _join_processes(groups: Mapping[int | None, list[Row]], pids: set[int]) -> tuple[Row, ...]:
    """The rows of these processes in the order of their ids."""
    rows = [row for pid in pids for row in groups.get(pid, ())]
    return tuple(sorted(rows, key=lambda row: row.event_id or 0) if len(pids) > 1 else rows)


def _describe_state(state: Mapping[str, Any], before: Mapping[tuple[Any, ...], float | None]) -> CompileInFlight:
    kind = tuple(map(state.get, ("function", "file", "line", "trigger")))
    phases = state.get("phases") or []
    return CompileInFlight(
        function=format_function(*kind[:3]),
        phase=format_phase(phases[-1]) if phases else None,
        started_ns=state["started_ns"],
        before_s=before.get(kind),
    )


# In words


def describe_compile(row: Compile) -> str:
    """`compiled forward (train.py:28) in 1.3 s`."""
    function = format_function(row.function, row.file, row.line)
    backward = ", backward" if row.trigger == "lazy_backward" else ""
    took = f" in {format_seconds(row.duration_s)}" if row.duration_s is not None else ""
    failed = "" if row.outcome in (None, "ok") else f" ({row.outcome})"
    return f"compiled {function}{backward}{took}{failed}"


def describe_recompile(row: Recompile) -> str:
    """`forward (train.py:28): x.size(0) was 4, then 6`."""
    function = format_function(row.function, row.file, row.line)
    return f"{function}: {describe_guard(row)}" if row.guard_source else function


def describe_activity(process: ProcessStatus) -> str:
    """What a process does now: `compiling forward (train.py:28)`, `no compile in flight`, `ended`."""
    if not process.is_live:
        return process.ending
    return f"compiling {process.in_flight[0].function}" if process.in_flight else "no compile in flight"


def describe_warmup(job: JobStatus) -> str:
    """`The warm-up ended at step 20; 3 incidents since.` Of ranks, that of the last one; "" if none has ended it."""
    if not job.warmup_ends:
        return ""
    last = job.warmup_ends[-1]
    when = f" at step {last.step}" if last.step is not None else ""
    ranks = len({process.pid for process in job.processes}) - len({row.pid for row in job.warmup_ends})
    late = f" in all but {format_amount(ranks, 'process', 'processes')}" if ranks > 0 else ""
    return f"The warm-up ended{when}{late}; {format_amount(count_incidents(job.incidents), 'incident')} since."


def describe_cold_ranks(job: JobStatus) -> str:
    """`Caches of ranks differ: rank 3 compiles 4 graphs that rank 0 found in a cache.`; "" if they do not."""
    if not job.cold_ranks:
        return ""
    more = format_amount(len(job.cold_ranks) - 1, "more rank") if len(job.cold_ranks) > 1 else ""
    return f"Caches of ranks differ: {job.cold_ranks[0].sentence}{f', and {more}' if more else ''}."


def answer_hung_or_compiling(job: JobStatus) -> str:
    """One or two sentences on whether the job compiles, or stands still for another reason."""
    live = [process for process in job.processes if process.is_live]
    compiling = [process for process in live if process.in_flight]
    waiting = [process for process in live if not process.in_flight]
    killed = [process.name for process in job.processes if process.was_killed]
    first = [f"{format_names(killed)} {'was' if len(killed) == 1 else 'were'} killed."] if killed else []
    if compiling:
        longest = min(compiling, key=lambda process: process.in_flight[0].started_ns)
        frame = longest.in_flight[0]
        names = format_names([process.name for process in compiling])
        took = format_seconds(job.measure(frame.started_ns))
        first.append(f"Compiling: {names}; {frame.function} for {took}{frame.usual}.")
        if waiting:
            others = format_amount(len(waiting), "other process", "other processes")
            first.append(f"{others} may wait for {'it' if len(compiling) == 1 else 'them'}.")
    elif live:
        quiet = min(job.measure(process.quiet_since_ns) for process in live)
        since = f"no compile in flight for {format_seconds(quiet)}"
        hangs = "; if the job makes no progress, the reason is not a compile" if quiet >= QUIET_S else ""
        first.append(f"Not compiling: {since}{hangs}.")
    return " ".join(first)


# As plain lines, one per change: for logs, pipes and terminals without rich


class LiveLines:
    """Compares each state of a job with the one before it."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int | None], ProcessStatus] = {}
        self._headline = ""
        self._warmup = ""
        self._cold: set[int] = set()
        self._next_report_s = FIRST_REPORT_S
        self._reported_since = 0

    def describe(self, job: JobStatus) -> list[str]:
        """One line per change, each with the time of the change, and its date if that is not today."""
        lines = [
            (time_ns, f"{process.name}: {line}")
            for process in job.processes
            for time_ns, line in self._describe_process(process, job.now_ns)
        ]
        lines.sort(key=lambda line: line[0])
        now_ns = job.now_ns if job.is_live or not lines else lines[-1][0]
        if (text := describe_warmup(job)) != self._warmup:
            self._warmup = text
            lines.append((now_ns, text))
        if new := {one.rank for one in job.cold_ranks} - self._cold:
            self._cold |= new
            lines.append((now_ns, describe_cold_ranks(job)))
        if job.plan.steps and job.plan.headline != self._headline:
            self._headline = job.plan.headline
            lines.append((now_ns, f"plan: {self._headline}"))
        lines = lines or [(now_ns, line) for line in self._describe_silence(job)]
        today = time.localtime(job.now_ns / 1e9)[:3]
        shown = []
        for time_ns, line in lines:
            then = time.localtime(time_ns / 1e9)
            clock_time = time.strftime("%H:%M:%S" if then[:3] == today else "%Y-%m-%d %H:%M:%S", then)
            shown.append(f"{clock_time} {line}")
        return shown

    def _describe_process(self, process: ProcessStatus, now_ns: int) -> Iterator[tuple[int, str]]:
        key = (process.path, process.pid)
        before = self._known.get(key)
        self._known[key] = process
        if before is None:
            yield process.began_ns, f"process {process.pid} is recorded"
        recompiles = process.recompiles[len(before.recompiles) if before else 0 :]
        compiles = process.compiles[len(before.compiles) if before else 0 :]
        yield from ((row.time_ns, f"recompiles {describe_recompile(row)}") for row in recompiles)
        yield from ((row.end_ns, describe_compile(row)) for row in compiles)
        running = before.in_flight if before else ()
        begun = {(frame.function, frame.started_ns) for frame in running}
        if process.is_live:
            new = (frame for frame in process.in_flight if (frame.function, frame.started_ns) not in begun)
            yield from ((frame.started_ns, f"compiling {frame.function}{frame.usual}") for frame in new)
        elif before is None or before.is_live:
            yield process.ended_ns or (now_ns if before else process.quiet_since_ns), process.ending

    def _describe_silence(self, job: JobStatus) -> Iterator[str]:
        """Now and then, when nothing changes: whether the job compiles or stands still."""
        live = [process for process in job.processes if process.is_live]
        if not live:
            return
        since = max(max([p.quiet_since_ns, *(frame.started_ns for frame in p.in_flight)]) for p in live)
        if since != self._reported_since:
            self._reported_since, self._next_report_s = since, FIRST_REPORT_S
        if job.measure(since) >= self._next_report_s:
            self._next_report_s *= 2
            yield answer_hung_or_compiling(job)
