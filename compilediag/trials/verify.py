"""Tries fixes on the user's own workload: runs it without and with a fix, isolated, and compares the results."""

from __future__ import annotations

import dataclasses
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..diagnosis import Finding, count_occurrences, diagnose, find_causes, fix_code
from ..diagnosis.change import Edit
from ..diagnosis.plan import Plan, make_plan
from ..diagnosis.plan.outcome import Outcome
from ..errors import CompilediagError
from ..formatting import format_line, format_seconds, format_times
from .claims import describe_skipped_steps, explain_nothing_to_try, find_broken_claim, list_edits
from .progress import TrialProgress

Workload = Callable[[], Any]


@dataclass(frozen=True)
class Verification:
    """What a fix, or a plan, did to a workload.

    `recompiles_*` count all recompiles of one run, `strikes_*` those of the finding's own cause (for a limit: how
    often it was hit; for refused calls: those of its functions), `seconds_*` (s) what a run spent compiling from empty
    caches. `holds`: the cause struck less often, the workload recompiled less in all (except for refused calls,
    which do not recompile), the results were the same, and all that the workload changes could be restored between the
    runs. `note` says in one line why it does not hold, or what is not known. What was not run is None. `left` are the
    findings that stay with the fix. `plan` is the plan that was tried, or None.
    """

    finding: Finding | None
    fix: dict[str, Any] | None
    recompiles_before: int | None = None
    recompiles_after: int | None = None
    seconds_before: float | None = None
    seconds_after: float | None = None
    holds: bool = False
    note: str | None = None
    strikes_before: int | None = None
    strikes_after: int | None = None
    same_results: bool | None = None
    left: tuple[Finding, ...] = field(default=(), repr=False)
    plan: Plan | None = field(default=None, repr=False)
    wall_before: float | None = None
    wall_after: float | None = None

    @property
    def outcome(self) -> Outcome:
        """The same as `compilediag try` reports it."""
        return Outcome(
            recompiles_before=self.recompiles_before,
            recompiles_after=self.recompiles_after,
            compile_seconds_before=self.seconds_before,
            compile_seconds_after=self.seconds_after,
            wall_seconds_before=self.wall_before,
            wall_seconds_after=self.wall_after,
            same_output=self.same_results,
            note=self.note,
            holds=self.holds,
            code=self.plan.code() if self.plan is not None else fix_code(self.fix) or "",
        )

    def __str__(self) -> str:
        parts = ["holds" if self.holds else "does not hold"]
        if self.recompiles_before is not None and self.recompiles_after is not None:
            parts.append(f"{self.recompiles_before} recompiles -> {self.recompiles_after}")
        if self.seconds_before is not None and self.seconds_after is not None:
            parts.append(f"{format_seconds(self.seconds_before)} compiling -> {format_seconds(self.seconds_after)}")
        text = ", ".join(parts) + (f": {self.note}" if self.note else "")
        if self.plan is not None:
            return text
        code = fix_code(self.fix)
        return f"{text} [{code}]" if code else text

    __repr__ = __str__


@dataclass(frozen=True)
class WorkloadRun:
    """One run of a workload from an empty compile state. `raised` in one line; `result` and `changed` are copies."""

    recompiles: int
    seconds: float
    findings: tuple[Finding, ...]
    strikes: int
    result: Any
    changed: dict[str, Any]
    raised: str | None
    wall: float
    plan: Plan = field(default_factory=Plan, repr=False)


class Bench:
    """Runs a workload several times, each time from the same state of the user's objects.

    Saved before each run and restored after it, whatever happens: torch's compiled code and what it has learned of
    sizes, its settings, its counters, the caches (a run has folders of its own, so it compiles what a first run
    compiles), the random numbers, grad mode, default dtype, threads, and all modules, optimizers, tensors, containers
    and plain objects that the workload reaches by its closure, globals and attributes. A recording that runs sees
    none of it. Not restored: files, iterators, what is printed or sent, objects with `__slots__`, and the memory that
    the device's allocator took. No other thread may run compiled code meanwhile: what it compiles is dropped at the
    end of the run.
    """

    def __init__(self, workload: Workload, detail: str = "full", runs: int = 3):
        if not callable(workload):
            raise CompilediagError("workload has to be callable without arguments: a function that runs the code again")
        from .. import sources
        from . import snapshots, trial

        sources.require_torch()
        trial.require_isolation()
        self.workload = workload
        self.detail = detail
        self.progress = TrialProgress(runs)
        self.snapshot = snapshots.Snapshot(workload)

    @property
    def unrestored(self) -> str | None:
        """In one line why later runs may start from another state than the first; None if all could be restored."""
        problem = self.snapshot.problem
        return None if problem is None else f"the state before a run cannot be restored: {problem}"

    def run(
        self, fix: dict[str, Any] | None = None, finding: Finding | None = None, edits: tuple[Edit, ...] = ()
    ) -> WorkloadRun:
        """Run it once with `fix` and `edits`; when this returns, everything is as before, or `unrestored` says what is
        not.
        """
        from ..active_recording import record_aside
        from .edited_functions import edit_functions
        from .results import copy_value
        from .trial import isolate

        result, changed, raised = None, {}, None
        code = fix_code(fix) or ""
        self.progress.begin_run(f"with {format_line(code or 'the plan', 120)}" if fix or edits else "without changes")
        with record_aside(self.detail) as session:
            try:
                with isolate(fix or {}), edit_functions(edits):
                    begin = time.perf_counter()
                    try:
                        result = copy_value(self.workload())
                        changed = {name: copy_value(value) for name, value in self.snapshot.find_changes().items()}
                    except Exception as error:
                        raised = _describe_error(error)
                    wall = time.perf_counter() - begin
            finally:
                self.snapshot.restore()
        with session.settled():
            compiled = float(session.compiles["duration_s"].sum())
            causes = find_causes(session)
            count, found = len(session.recompiles), tuple(diagnose(session, causes))
            own = count_occurrences(finding, session) if finding is not None else 0
            plan = make_plan(session, causes)
        return WorkloadRun(count, compiled, found, own, result, changed, raised, wall, plan)


@dataclass(frozen=True)
class Baseline:
    """Two runs without a fix: what differs between them differs by chance."""

    first: WorkloadRun
    second: WorkloadRun

    @property
    def unsteady(self) -> str | None:
        """In one line why nothing can be compared with this workload; None if it can."""
        from .results import find_difference

        if self.first.raised is not None:
            return f"the workload raised without the fix, so nothing was compared: {self.first.raised}"
        if self.second.raised is not None:
            return f"the workload raised at its second run without the fix: {self.second.raised}"
        if self.first.recompiles != self.second.recompiles:
            counts = f"{self.first.recompiles} and {self.second.recompiles}"
            return f"two runs without the fix differ by chance: {counts} recompiles"
        differs = find_difference(self.first.result, self.second.result)
        return f"two runs without the fix differ by chance: {differs}" if differs else None

    def find_change(self, run: WorkloadRun) -> str | None:
        """Where the results of `run` differ, without what differs by chance."""
        from .results import find_difference

        found = find_difference(self.first.result, run.result)
        if found is not None:
            return found
        names = self.first.changed.keys() | self.second.changed.keys()
        first, second = self.first.changed, self.second.changed
        steady = [name for name in names if find_difference(first.get(name, _SAME), second.get(name, _SAME)) is None]
        for name in sorted(steady):
            found = find_difference(self.first.changed.get(name, _SAME), run.changed.get(name, _SAME), name)
            if found is not None:
                return found
        more = sorted(run.changed.keys() - names)
        return f"{more[0]} is changed with it only" if more else None

    @property
    def seconds(self) -> float:
        """The faster of the two: the first one also loads the compiler."""
        return min(self.first.seconds, self.second.seconds)


#: What a run leaves as it was.
_SAME = None


def verify(subject: Finding | Plan | None, workload: Workload, detail: str = "full") -> Verification:
    """Try the fix of a finding, or a plan, on `workload`; see `Bench` for what is isolated and what is not.

    Three runs: two without the fix, to know what differs by chance, and one with it. A workload that raises, or
    whose runs differ by chance, or whose objects cannot be restored, is named in `note`. `detail` is that of the
    finding's session: with another one, another guard may be named as the cause. The edits of a plan are applied to the
    functions that are loaded, for the run. None tries the plan of the first run. CompilediagError if fixes cannot be
    tried here at all.
    """
    bench = Bench(workload, detail)
    finding = subject if isinstance(subject, Finding) else None
    plan = subject if isinstance(subject, Plan) else None
    nothing = _explain_nothing(finding, plan)
    if nothing:
        return Verification(finding, None, note=nothing, plan=plan)
    try:
        first = bench.run(finding=finding)
        if finding is None and plan is None and first.raised is None:
            plan = first.plan
            nothing = _explain_nothing(None, plan)
        if nothing:
            return Verification(None, None, first.recompiles, note=nothing, plan=plan)
        baseline = Baseline(first, bench.run(finding=finding))
        fix = plan.settings if plan is not None else finding.fix if finding is not None else None
        return judge_fix(finding, dict(fix or {}), baseline, bench, plan)
    finally:
        bench.progress.end()


def _explain_nothing(finding: Finding | None, plan: Plan | None) -> str | None:
    """Why there is nothing to try, in one line; None if there is, or it is not known yet."""
    if finding is not None:
        return None if finding.fix else "no setting fixes this; change the code"
    why = explain_nothing_to_try(plan) if plan is not None else None
    return f"nothing to try: {why}" if why else None


def judge_fix(
    finding: Finding | None, fix: dict[str, Any], baseline: Baseline, bench: Bench, plan: Plan | None = None
) -> Verification:
    """Run the workload with `fix`, and compare with runs without; without a finding, judge the workload as a whole."""
    before = baseline.first
    without = Verification(
        finding,
        fix,
        recompiles_before=before.recompiles,
        seconds_before=baseline.seconds,
        strikes_before=before.strikes,
        note=bench.unrestored or baseline.unsteady,
        plan=plan,
        wall_before=min(before.wall, baseline.second.wall),
    )
    if without.note:
        return without
    after = bench.run(fix, finding, list_edits(plan) if plan is not None else ())
    harm = _find_harm(baseline, after)
    note = harm or bench.unrestored or _find_useless(finding, plan, before, after)
    return dataclasses.replace(
        without,
        recompiles_after=after.recompiles,
        seconds_after=after.seconds,
        strikes_after=after.strikes,
        holds=note is None,
        same_results=harm is None,
        note=note or _describe_rest(plan, after),
        left=after.findings,
        wall_after=after.wall,
    )


def _find_useless(finding: Finding | None, plan: Plan | None, before: WorkloadRun, after: WorkloadRun) -> str | None:
    """Why the change does not help; None if it does."""
    if plan is not None:
        return find_broken_claim(plan, before.recompiles, after.recompiles)
    return _find_no_help(before, after) if finding is None else _find_objection(finding, before, after)


def _describe_rest(plan: Plan | None, after: WorkloadRun) -> str | None:
    """What a change that holds leaves."""
    if plan is not None:
        return describe_skipped_steps(plan)
    return f"it still happened {format_times(after.strikes)}" if after.strikes else None


def count_limits(findings: Iterable[Finding]) -> int:
    return sum(finding.rule == "recompile_limit" for finding in findings)


def _find_harm(baseline: Baseline, after: WorkloadRun) -> str | None:
    """Why the fix must not be used, however much it helps."""
    if after.raised is not None:
        return f"with the fix the workload raises: {after.raised}"
    changed = baseline.find_change(after)
    return f"the fix changes the results: {changed}" if changed else None


def _find_no_help(before: WorkloadRun, after: WorkloadRun) -> str | None:
    """Why the workload as a whole is no better off; None if it is. A limit that is no longer hit is worth more."""
    was, now = ((count_limits(run.findings), run.recompiles) for run in (before, after))
    return None if now < was else "it does not help"


def _find_objection(finding: Finding, before: WorkloadRun, after: WorkloadRun) -> str | None:
    """Why the fix does not help against this finding; None if it does."""
    if before.strikes == 0:
        return "this workload does not show it: without the fix it did not happen"
    if finding.rule == "recompile_limit":
        return None if after.strikes < before.strikes else "the limit is hit with it as well"
    if after.strikes >= before.strikes:
        without, with_it = format_times(before.strikes), format_times(after.strikes)
        return f"the fix does not help: it happened {without} without and {with_it} with it"
    if finding.rule != "refused_calls" and after.recompiles >= before.recompiles:
        rest = next((f.title for f in after.findings if f.source is not None), "")
        return format_line(f"alone it does not help, the same calls recompile for another cause: {rest}", 240)
    return None


def _describe_error(error: BaseException) -> str:
    """An exception in one line, with the line of the user's that raised it; its own text may fail."""
    text = format_line("".join(traceback.format_exception_only(error)).strip().splitlines()[0], 200)
    frames = traceback.extract_tb(error.__traceback__)
    ours = sys.modules[__name__].__file__
    theirs = [f for f in frames if f.filename != ours]
    return f"{text} (line {theirs[-1].lineno} of {theirs[-1].filename.rpartition('/')[2]})" if theirs else text
