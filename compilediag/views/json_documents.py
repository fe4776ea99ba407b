"""What commands print with `--json`, beside the findings (`findings_document.py`): one class per schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ..diagnosis.cold_start import ColdCause
from ..diagnosis.diff import Change
from ..diagnosis.gate import AcceptedCause, Broken
from ..diagnosis.plan.plan import Outcome
from ..diagnosis.rank_comparison import ColdRank, Divergence, RankRow
from ..diagnosis.rules.caches import LoadedArtifacts
from ..json_document import JsonDocument, described
from .findings_document import SessionValues
from .live_status import CompileInFlight, JobStatus, describe_activity


@dataclass(frozen=True)
class PlanDocument(JsonDocument):
    """The plan: `Plan.to_dict()`."""

    SCHEMA: ClassVar[str] = "compilediag.plan/1"

    headline: str = described("what the plan saves, in one line")
    leads: str | None = described("the kind of the largest cost, if that is more than what the steps save")
    steps: tuple[dict[str, Any], ...] = described("the changes, the one that saves most first")
    recompiles: int = described("number of recompiles")
    recompiles_saved: int = described("how many of them the plan saves")
    seconds: float = described("seconds of all compiles")
    seconds_saved: float = described("seconds that the plan saves")
    settings: dict[str, Any] = described("the configuration of all steps")
    settings_code: str = described("the same as code")
    code: str = described("the block to paste")
    unresolved: tuple[dict[str, Any], ...] = described("causes that no step resolves, with the reason")
    tried: dict[str, Any] | None = described("what running the program with the plan showed; null if it was not tried")
    searched: dict[str, Any] | None = described("what `compilediag fix` found; null if it was not used")
    notes: tuple[str, ...] = described("sentences about the plan as a whole")
    costs: tuple[dict[str, Any], ...] = described("where compile time goes even if nothing recompiles")
    specs: tuple[dict[str, Any], ...] = described("specifications of arguments that can replace some of the steps")


@dataclass(frozen=True)
class FixDocument(JsonDocument):
    """What the search of `compilediag fix` found."""

    SCHEMA: ClassVar[str] = "compilediag.fix/1"

    headline: str = described("the result in one line")
    exit_code: int = described("the exit code of the command")
    problem: str | None = described("why nothing could be tried")
    is_proven: bool = described("the change was proven with the script's own backend")
    patch: str = described("the smallest change that holds, as a unified diff; empty if there is none")
    lines: int = described("lines that the patch changes")
    changes: tuple[dict[str, Any], ...] = described("the changes, and the recompiles without each of them")
    search: dict[str, Any] = described("what the runs of the search measured")
    proof: dict[str, Any] | None = described("what the runs of the proof measured; null if there was none")
    left: tuple[dict[str, Any], ...] = described("causes that are left, whether they are needed, and what was tried")
    tried: tuple[dict[str, Any], ...] = described("each change that was tried, and the objection to it")
    runs: int = described("runs in all")
    seconds: float = described("seconds that the search took")
    notes: tuple[str, ...] = described("sentences about the search")


@dataclass(frozen=True)
class TrialDocument(JsonDocument):
    """What running a script without and with its plan showed."""

    SCHEMA: ClassVar[str] = "compilediag.trial/1"

    holds: bool = described("the plan holds, or there is nothing to try")
    problem: str | None = described("why nothing was compared")
    outcome: Outcome | None = described("what was measured; null if nothing was compared")
    plan: PlanDocument | None = described("the plan that was tried")


@dataclass(frozen=True)
class InterpreterRun:
    """What the script did with one interpreter."""

    path: str = described("the interpreter, as it was named")
    python: str = described("its version")
    torch: str = described("the version of its torch")
    compiles: int = described("frames that were compiled, or tried")
    recompiles: int = described("number of recompiles")
    graph_breaks: int = described("number of graph breaks")
    captures: int = described("CUDA graphs that were captured")
    guards_us: float = described("microseconds that one check of the guards of each entry takes")
    compile_s: float = described("seconds of all compiles, in the fastest run")
    wall_s: float = described("seconds of the fastest run")
    exit_code: int | None = described("the exit code of the script")


@dataclass(frozen=True)
class InterpretersDocument(JsonDocument):
    """What differs if a script runs with another interpreter."""

    SCHEMA: ClassVar[str] = "compilediag.interpreters/1"

    is_as_good: bool = described("nothing is worse with the second interpreter")
    problem: str | None = described("how the runs end otherwise")
    runs: tuple[InterpreterRun, ...] = described("those of both interpreters")
    same_output: bool | None = described("the script prints the same; null if that was not compared")
    changes: tuple[Change, ...] = described("the causes that differ, what got worse first")
    notes: tuple[str, ...] = described("sentences about the comparison")


@dataclass(frozen=True)
class DiffDocument(JsonDocument):
    """What is new, gone or changed in a session."""

    SCHEMA: ClassVar[str] = "compilediag.diff/1"

    before: str = described("the session or logs, as they were named")
    after: str = described("the session or logs that were compared with it")
    totals: tuple[str, ...] = described("the totals of both, in words")
    changes: tuple[Change, ...] = described("the differences, what got worse first")
    not_compared: dict[str, str] = described("tables that only one of them collected, with the reason")


@dataclass(frozen=True)
class BrokenLimit:
    """A limit that was not kept."""

    title: str = described("what was found")
    causes: tuple[str, ...] = described("why, in words")
    fingerprints: tuple[str, ...] = described("the causes to change, as far as they are known")


@dataclass(frozen=True)
class CheckDocument(JsonDocument):
    """Whether a session keeps the limits of `compilediag check`."""

    SCHEMA: ClassVar[str] = "compilediag.check/1"

    passed: bool = described("all limits are kept")
    script_exit_code: int | None = described("the exit code of the script; null if none was run")
    session: SessionValues = described("the session as a whole")
    broken: tuple[BrokenLimit, ...] = described("the limits that were not kept")
    fixed: tuple[AcceptedCause, ...] = described("causes of the baseline that did not occur")


def list_broken_limits(broken: Sequence[Broken]) -> tuple[BrokenLimit, ...]:
    """The broken limits of a check as they are written."""
    return tuple(
        BrokenLimit(one.title, tuple(one.causes), tuple(dict.fromkeys(each.fingerprint for each in one.findings)))
        for one in broken
    )


@dataclass(frozen=True)
class RanksDocument(JsonDocument):
    """Where the ranks of a job differ."""

    SCHEMA: ClassVar[str] = "compilediag.ranks/1"

    ranks: tuple[RankRow, ...] = described("the ranks, the one that compiled longest first")
    divergences: tuple[Divergence, ...] = described("steps at which ranks differ, in order")


@dataclass(frozen=True)
class ColdCauseValues:
    """Graphs that no cache served, for one reason."""

    kind: str = described("what differs")
    title: str = described("what differs, in words")
    advice: str = described("what to do")
    changes: tuple[str, ...] = described("the differences, as `name: good -> bad`")
    graphs: int = described("number of graphs")
    seconds: float = described("seconds of their compiles")
    evidence: tuple[str, ...] = described("compile keys")
    others: tuple[str, ...] = described("components that differ as well")


@dataclass(frozen=True)
class LoadedValues:
    """Artifacts of one cache that one process loaded with `torch.compiler.load_cache_artifacts`."""

    cache: str = described("the cache")
    loaded: int = described("number of artifacts")
    unused: tuple[str, ...] = described("keys of those that no lookup found")
    missed: int = described("lookups in this cache that found nothing")


@dataclass(frozen=True)
class ColdStartDocument(JsonDocument):
    """Why a start compiled what an earlier one found in its caches."""

    SCHEMA: ClassVar[str] = "compilediag.coldstart/1"

    good_s: float | None = described("seconds that the good start compiled; null if only its caches are known")
    bad_s: float | None = described("seconds that the bad start compiled")
    served: int = described("graphs of the bad start that came from a cache")
    environment: tuple[str, ...] = described("what differs around the program, as `name: good -> bad`")
    causes: tuple[ColdCauseValues, ...] = described("why graphs came from no cache, the most expensive first")
    artifacts: tuple[LoadedValues, ...] = described("what the bad start loaded as artifacts, by process and cache")


def list_cold_causes(causes: Sequence[ColdCause]) -> tuple[ColdCauseValues, ...]:
    """The causes of a cold start as they are written."""
    return tuple(
        ColdCauseValues(
            kind=cause.factor.code,
            title=cause.factor.text,
            advice=cause.advice,
            changes=cause.changes,
            graphs=cause.graphs,
            seconds=round(cause.seconds, 4),
            evidence=tuple(dict.fromkeys(row.compile_key for row in cause.compiles if row.compile_key)),
            others=cause.others,
        )
        for cause in causes
    )


def list_loaded_values(artifacts: Sequence[LoadedArtifacts]) -> tuple[LoadedValues, ...]:
    """The artifacts that a start loaded as they are written."""
    return tuple(
        LoadedValues(found.cache, len(found.loaded), tuple(row.key or "" for row in found.unused), len(found.missed))
        for found in artifacts
    )


@dataclass(frozen=True)
class SourceProbe:
    """A source of events, and whether it works with this torch."""

    name: str = described("the source")
    status: str = described("available, or why not")
    reason: str | None = described("why not, in words")


@dataclass(frozen=True)
class MissingPart:
    """What is not installed."""

    what: str = described("the part, and what it is for")
    install: str = described("how to install it")


@dataclass(frozen=True)
class DoctorDocument(JsonDocument):
    """Whether compilediag works here."""

    SCHEMA: ClassVar[str] = "compilediag.doctor/1"

    works: bool = described("recording works")
    problem: str | None = described("why it does not")
    python: str = described("version of Python")
    packages: dict[str, str | None] = described("versions; null for what is not installed")
    sources: tuple[SourceProbe, ...] = described("the sources of events")
    missing: tuple[MissingPart, ...] = described("what is not installed")


@dataclass(frozen=True)
class LiveProcess:
    """A process of the job, usually a rank."""

    name: str = described("the rank or process")
    pid: int | None = described("its process id")
    is_live: bool = described("it runs")
    was_killed: bool = described("it ended without the end of its recording")
    activity: str = described("what it does now, in words")
    in_flight: tuple[CompileInFlight, ...] = described("compiles that run")
    compiles: int = described("number of compiles that ended")
    recompiles: int = described("number of recompiles")
    compile_s: float = described("seconds of the compiles that ended")


@dataclass(frozen=True)
class LiveDocument(JsonDocument):
    """The state of a running job, one line of JSON per change; the last line has `is_live` false."""

    SCHEMA: ClassVar[str] = "compilediag.live/1"

    time_ns: int = described("when the job was looked at, in ns since 1970")
    is_live: bool = described("a process of the job runs")
    processes: tuple[LiveProcess, ...] = described("the processes of the job")
    plan: str = described("what the plan saves so far, in one line")
    incidents: int = described("compiles after the warm-up, and the like")
    cold_ranks: tuple[ColdRank, ...] = described("ranks whose caches lack graphs that those of another rank have")


def describe_job(job: JobStatus) -> LiveDocument:
    """The state of a job as it is written."""
    return LiveDocument(
        time_ns=job.now_ns,
        is_live=job.is_live,
        processes=tuple(
            LiveProcess(
                name=process.name,
                pid=process.pid,
                is_live=process.is_live,
                was_killed=process.was_killed,
                activity=describe_activity(process),
                in_flight=process.in_flight,
                compiles=len(process.compiles),
                recompiles=len(process.recompiles),
                compile_s=round(process.compile_s, 4),
            )
            for process in job.processes
        ),
        plan=job.plan.headline,
        incidents=len(job.incidents),
        cold_ranks=job.cold_ranks,
    )
