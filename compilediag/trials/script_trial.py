"""Runs a program in fresh processes, interleaved, and compares what they did: without and with a plan, or with two
interpreters, such as those of two environments with other versions of torch.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..diagnosis.diff import CAUSES, Change, find_changes
from ..diagnosis.evidence import group_by
from ..diagnosis.plan import Plan, make_plan
from ..diagnosis.plan.plan import Outcome
from ..diagnosis.rules.cudagraphs import CAPTURES
from ..diagnosis.source_edits import apply_edits
from ..errors import CompilediagError
from ..events import CudaGraphAction
from ..formatting import format_amount, format_function, format_line, format_names, format_seconds
from ..storage.data import SessionData
from ..system.source_files import SourceReader
from .fresh_process import ProcessRunner, ProgramJob
from .measured_run import OutputComparison, RunSummary, compare_outputs, explain_end, measure

_FOREIGN_CACHES = "the program sets its own cache folder, so later runs can find what earlier ones compiled"


@dataclass(frozen=True)
class ScriptTrial:
    """What `try_script` did. `problem` says in one line why nothing was compared; None if `outcome` is known.

    `session` is the recording of the first run without the plan. `is_clean`: nothing recompiled, so there is nothing
    to try.
    """

    plan: Plan | None
    session: Path
    outcome: Outcome | None = None
    problem: str | None = None
    is_clean: bool = False


def try_script(runner: ProcessRunner, job: ProgramJob, plan: Plan | None, runs: int) -> ScriptTrial:
    """Run `job` without and with the plan, `runs` times each, in turn.

    Without a plan, the plan of the first run is tried. CompilediagError if the program cannot be started, or an edit of
    the plan does not fit the files.
    """
    changed = None if plan is None else _change(job, plan)
    first = measure(runner, job, "without the plan")
    if first.run.exit_code is None:
        return ScriptTrial(plan, first.run.session, problem=explain_end(first.run))
    if plan is None:
        data = SessionData(first.run.session)
        data.is_ours = True  # It has recorded the files of the program that the user named.
        plan = make_plan(data)
    nothing = explain_nothing_to_try(plan)
    if nothing is None and job.backend is not None and not plan.recompiles_saved:
        nothing = "the plan saves compile time only, which --fast does not compare"
    stop = explain_end(first.run) if nothing or not first.run.is_torchs else None
    if stop or nothing:
        problem = stop or f"nothing to try: {nothing}"
        return ScriptTrial(plan, first.run.session, problem=problem, is_clean=not stop and not plan.recompiles)
    changed = changed or _change(job, plan)
    without, with_plan = [first], [measure(runner, changed, "with the plan")]
    for _ in range(runs - 1):
        without.append(measure(runner, job, "without the plan"))
        with_plan.append(measure(runner, changed, "with the plan"))
    return ScriptTrial(plan, first.run.session, judge(plan, without, with_plan, job.backend is not None))


def _change(job: ProgramJob, plan: Plan) -> ProgramJob:
    """The job with the plan applied. CompilediagError if a file is not read, or an edit does not fit it."""
    cells = {f"Cell In[{cell.number}]": cell.source for cell in job.cells}
    script = [] if job.is_module or job.cells else [os.path.abspath(job.script)]
    reader = SourceReader(plan.is_own, map(os.path.dirname, script), script)
    by_file = group_by((edit for step in plan.steps for edit in step.edits), lambda edit: edit.file)
    texts = {file: cells[file] if file in cells else reader.read(file) for file in by_file}
    edited = {file: apply_edits(texts[file], edits) for file, edits in by_file.items()}
    return replace(job, settings=plan.settings, files={file: (e.text, e.lines) for file, e in edited.items()})


def judge(plan: Plan, without: Sequence[RunSummary], with_plan: Sequence[RunSummary], is_fast: bool) -> Outcome:
    """Compare the runs with a plan with those without it."""
    output = OutputComparison(None)
    if not any(explain_end(one.run) for one in without):
        output = compare_outputs([one.run.stdout for one in without], [one.run.stdout for one in with_plan])
    harm = _find_difference(without, with_plan)
    before, after = min(one.recompiles for one in without), max(one.recompiles for one in with_plan)
    seconds_before, seconds_after = (min(one.compile_seconds for one in side) for side in (without, with_plan))
    useless = _find_useless(plan, without, with_plan)
    if useless is None and not (is_fast or plan.recompiles_saved) and seconds_after >= seconds_before:
        measured = f"{format_seconds(seconds_before)} without it and {format_seconds(seconds_after)} with it"
        useless = f"the plan saves no compile time: {measured}"
    objection = harm or (output.note if output.is_same is False else None) or useless
    fast = "the guards that a backend adds were not compared (--fast)" if is_fast else None
    unknown = output.note if output.is_same is None else None
    are_own = all(one.run.has_own_caches for one in (*without, *with_plan))
    notes = (describe_skipped_steps(plan), unknown, None if are_own else _FOREIGN_CACHES, fast)
    return Outcome(
        recompiles_before=before,
        recompiles_after=after,
        compile_seconds_before=seconds_before,
        compile_seconds_after=seconds_after,
        wall_seconds_before=min(one.run.wall for one in without),
        wall_seconds_after=min(one.run.wall for one in with_plan),
        exit_codes=(without[0].run.exit_code, with_plan[0].run.exit_code),
        same_output=output.is_same,
        backend="eager" if is_fast else None,
        note=objection or "; ".join(filter(None, notes)) or None,
        holds=objection is None,
        code=plan.code(),
        runs=len(without),
    )


def _find_difference(without: Sequence[RunSummary], with_plan: Sequence[RunSummary]) -> str | None:
    """What went wrong with the plan, or why the runs cannot be compared; None if nothing did."""
    ends = [explain_end(one.run) for one in with_plan]
    if any(ends):
        also = " too" if any(explain_end(one.run) for one in without) else ""
        return f"with the plan{also}, {next(filter(None, ends))}"
    codes = {one.run.exit_code for one in without}
    raised = any(one.run.raised for one in without)
    if len(codes) > 1:
        return f"the exit codes without the plan differ: {format_names(sorted(map(str, codes)))}"
    others = {one.run.exit_code for one in with_plan} - codes
    if others and not raised:
        return f"the exit code is {others.pop()} with the plan and {codes.pop()} without it"
    one, other = without[0], with_plan[0]
    lost = one.list_lost(other)
    if lost:
        return f"{format_function(*lost[0], None)} is no longer compiled with the plan"
    if other.graph_breaks > one.graph_breaks:
        return f"the plan adds graph breaks: {one.graph_breaks} -> {other.graph_breaks}"
    return None


def _find_useless(plan: Plan, without: Sequence[RunSummary], with_plan: Sequence[RunSummary]) -> str | None:
    """How the measured recompiles contradict the plan; None if they do not. An exception of torch that is gone is help
    enough.

    The session of the plan may be longer than the runs, so the plan's own rest is what may remain. A plan that saves no
    recompiles must not add any.
    """
    counts = {one.recompiles for one in without}
    before, after = min(counts), max(one.recompiles for one in with_plan)
    if any(one.run.raised for one in without) or max(x.limits for x in with_plan) < min(x.limits for x in without):
        return None
    if len(counts) > 1 and after >= before:
        return f"the recompiles without the plan differ by chance: {format_names(sorted(map(str, counts)))}"
    if not plan.recompiles_saved:
        return f"the plan adds recompiles: {before} -> {after}" if after > before else None
    if before == 0:
        return "nothing recompiled without the plan"
    if after >= before:
        return f"the plan does not help: {format_amount(before, 'recompile')} without it and {after} with it"
    rest = plan.recompiles - plan.recompiles_saved
    if not list_skipped_steps(plan) and after > rest:
        return f"the plan says that {rest} should remain, but {format_amount(after, 'recompile')} did"
    return None


# What can be tried


def explain_nothing_to_try(plan: Plan) -> str | None:
    """Why a plan cannot be tried, in one line; None if it can."""
    if not plan.recompiles and not plan.steps:
        return "nothing recompiled"
    if not plan.steps:
        return "the plan has no step; session.plan() gives the reasons"
    if not any(step.can_be_applied for step in plan.steps):
        return "the plan has only changes that a program cannot make; compilediag plan shows them"
    return None


def list_skipped_steps(plan: Plan) -> list[int]:
    """The numbers of the steps, from 1 on, that a program cannot make."""
    return [number for number, step in enumerate(plan.steps, 1) if not step.can_be_applied]


def describe_skipped_steps(plan: Plan) -> str | None:
    """Which steps were not part of the trial, in one line; None if all were."""
    skipped = list(map(str, list_skipped_steps(plan)))
    if len(skipped) > 1:
        return f"steps {', '.join(skipped)} were not tried: you have to make those changes"
    return f"step {skipped[0]} was not tried: you have to make that change" if skipped else None


# Two interpreters

#: The folder of our package.
_PACKAGE = Path(__file__).parents[1]
#: What an interpreter is asked before it runs the program. Each part that fails is a line of its own.
_PROBE = """
import json, platform, sys
if sys.version_info < (3, 11):
    sys.exit(f"is Python {platform.python_version()}, and compilediag needs 3.11 or later")
try:
    import torch
    from torch.version import __version__ as version
except ImportError as error:
    sys.exit(f"can't import torch: {error}")
try:
    import compilediag.trials.trial_process
except ImportError as error:
    sys.exit(f"can't import compilediag: {error}")
print(json.dumps([platform.python_version(), str(version), compilediag.__path__[0]]))
"""
_PROBE_S = 600.0
#: Changes of times, which differ from run to run. The table has them.
TIMES = ("slower", "faster")


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that can run the program: its path as it was given, and as it is started, its version, and that of
    its torch.
    """

    path: str
    program: str
    python: str
    torch: str

    def __str__(self) -> str:
        return f"torch {self.torch} ({self.path})"


@dataclass(frozen=True)
class InterpreterTrial:
    """What `try_interpreters` found. `runs` are those of each interpreter, `captures` the CUDA graphs that each of them
    captured in its first run, and `changes` the causes that differ, what got worse first.

    `problem` says in one line how the ends of the runs differ or why they can't be compared; None if they can.
    """

    interpreters: tuple[Interpreter, Interpreter]
    runs: tuple[Sequence[RunSummary], Sequence[RunSummary]]
    captures: tuple[int, int]
    changes: Sequence[Change]
    output: OutputComparison
    problem: str | None = None

    @property
    def notes(self) -> list[str]:
        """Interpreters whose own runs differ in their recompiles, so a difference between the two may be chance."""
        counts = [sorted({one.recompiles for one in own}) for own in self.runs]
        return [
            f"the runs with {interpreter} differ: {format_names([str(number) for number in own])} recompiles"
            for interpreter, own in zip(self.interpreters, counts, strict=True)
            if len(own) > 1
        ]

    @property
    def is_as_good(self) -> bool:
        """True if no cause is new or occurs more often with the second interpreter, and its results are the same."""
        is_worse = any(change.worse for change in self.changes)
        return self.problem is None and self.output.is_same is not False and not is_worse


def make_variables(folder: Path) -> dict[str, str]:
    """The variables with which any interpreter imports this compilediag, and nothing else of where it is installed: a
    folder that has only a link to it is searched first.
    """
    link = folder / "package"
    link.mkdir(mode=0o700)
    (link / _PACKAGE.name).symlink_to(_PACKAGE, target_is_directory=True)
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(link), os.environ.get("PYTHONPATH")]))}


def find_interpreter(path: str, variables: Mapping[str, str]) -> Interpreter:
    """Start an interpreter, which is named as for a shell, and ask for its versions. CompilediagError, in one line, if
    it can't run the program.
    """
    found = shutil.which(os.path.expanduser(path))
    if found is None:
        raise CompilediagError(f"{path} is not an interpreter that can be started; pass the path of a python")
    command = [found, "-c", _PROBE]
    environment = {**os.environ, **variables}
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PROBE_S
        )
        lines = done.stdout.splitlines()
        versions = json.loads(lines[-1]) if done.returncode == 0 and lines else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise CompilediagError(f"{path} can't be used: {format_line(error, 200)}") from None
    if versions is None:
        last = format_line(([*done.stderr.strip().splitlines()] or [f"it exited with {done.returncode}"])[-1], 300)
        raise CompilediagError(f"{path} can't be used: it {last.removeprefix('it ')}")
    python, version, package = versions
    if not os.path.samefile(package, _PACKAGE):
        raise CompilediagError(f"{path} can't be used: it imports another compilediag, {package}; run it elsewhere")
    return Interpreter(path, found, python, version)


def try_interpreters(
    runner: ProcessRunner,
    interpreters: tuple[Interpreter, Interpreter],
    job: ProgramJob,
    runs: int,
) -> InterpreterTrial:
    """Run `job` with both interpreters, `runs` times each, in turn. CompilediagError if it cannot be started."""
    sides: tuple[list[RunSummary], list[RunSummary]] = ([], [])
    for _ in range(runs):
        for interpreter, own in zip(interpreters, sides, strict=True):
            own_job = replace(job, python=interpreter.program, requests=("guard_checks",))
            own.append(measure(runner, own_job, f"with {interpreter}"))
            if own[-1].run.exit_code is None:
                raise CompilediagError(f"with {interpreter}, {explain_end(own[-1].run)}")
    sessions = [SessionData(own[0].run.session) for own in sides]
    first, second = (sum(row.action in CAPTURES for row in data.rows(CudaGraphAction)) for data in sessions)
    runs_of = [*zip(interpreters, sides, strict=True)]
    ends = [f"with {one}, {end}" for one, own in runs_of for run in own if (end := explain_end(run.run)) is not None]
    codes = [sorted({str(one.run.exit_code) for one in own}) for own in sides]
    differ = f"the exit code was {format_names(codes[0])}, then {format_names(codes[1])}"
    problem = ends[0] if ends else differ if codes[0] != codes[1] else None
    files = [[one.run.stdout for one in own] for own in sides]
    names = "with the first interpreter", "with the second interpreter"
    same = OutputComparison(None) if problem else compare_outputs(files[0], files[1], names=names)
    return InterpreterTrial(
        interpreters,
        sides,
        (first, second),
        [one for one in find_changes(*sessions) if one.kind in CAUSES and one.change not in TIMES],
        same,
        problem,
    )
