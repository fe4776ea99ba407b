"""`compilediag try SCRIPT [ARGS...]`: run a script without and with its plan, or with two interpreters, and compare."""

from __future__ import annotations

import argparse
import contextlib
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compilediag.document import wrap
from compilediag.errors import INTERRUPTED, CompilediagError
from compilediag.formatting import escape_lines, format_seconds
from compilediag.logs.inputs import InputKind, check_input, check_session_output

from .command import (
    Command,
    add_json_argument,
    add_program_arguments,
    drop_dashes,
    make_number_type,
    print_document,
    print_text,
)

if TYPE_CHECKING:
    from compilediag.diagnosis.plan import Plan
    from compilediag.diagnosis.plan.plan import Outcome
    from compilediag.trials.fresh_process import ProcessRunner, ProgramJob, TrialProgress
    from compilediag.trials.script_trial import ScriptTrial
    from compilediag.views.json_documents import InterpreterRun, InterpretersDocument

PROCESS = ("-m", "compilediag.cli.try_process")
#: The types of options.
COUNT = make_number_type(int, lambda number: 1 <= number <= 100, "a number from 1 to 100")
SECONDS = make_number_type(float, lambda number: 0 < number < math.inf, "a positive number of seconds")


class TryCommand(Command):
    """Run a script without and with its plan, and compare; or with two interpreters.

    The script runs in fresh processes with empty compile caches: without the plan, with it, and again. The plan is that
    of the first run, or of the session that --plan names. No file is changed: settings are applied when the process
    starts, and edits to a copy of the files that it imports. What the script prints is captured and compared.
    Standard input is given to each run unless it is a terminal. The plan of --plan is shown first, and tried once you
    confirm it: answer y, or give --yes.

    With --python, the script runs without a plan in two interpreters, which have torch and need no compilediag. Causes,
    compile time, CUDA graphs and output are compared:

      compilediag try --python old/bin/python --python new/bin/python train.py --epochs 1

    The exit code is 0 if the plan holds or nothing recompiles, 1 if not, and 2 if nothing could be run. With --python,
    it is 1 if something is worse with the second interpreter.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--plan", metavar="PATH", help="try the plan of this session file (.cdiag)")
        parser.add_argument(
            "--python",
            metavar="PYTHON",
            action="append",
            default=[],
            help="compare two interpreters; if it is given once, with the one that runs compilediag",
        )
        parser.add_argument("--yes", action="store_true", help="try the plan of --plan without a question")
        parser.add_argument(
            "--runs",
            metavar="N",
            type=COUNT,
            default=2,
            help="number of runs without the plan, and with it (default: 2)",
        )
        parser.add_argument("--fast", action="store_true", help="use the backend eager and compare only recompiles")
        parser.add_argument("--timeout", metavar="S", type=SECONDS, help="end each run after S seconds")
        parser.add_argument("--save", metavar="PATH", help="save the first run with the outcome to this file (.cdiag)")
        parser.add_argument(
            "--detail", choices=("lean", "full"), default="full", help="what to record (default: %(default)s)"
        )
        add_json_argument(parser, "trial/1")
        add_program_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        if args.save:
            check_session_output(args.save)
        if not args.is_module:
            check_input(args.script, InputKind.SCRIPT, InputKind.TEXT, InputKind.EMPTY)
        if args.python and (args.plan or args.save):
            raise CompilediagError("--python compares two interpreters without a plan; leave out --plan and --save")
        if len(args.python) > 2:
            raise CompilediagError(f"--python was given {len(args.python)} times; two interpreters can be compared")
        plan, detail = None, args.detail
        if args.plan:
            from compilediag.session import load

            session = load(args.plan)
            plan, detail = session.plan(), "lean" if session.meta.get("detail") == "lean" else "full"
        if plan is not None and not (args.yes or _confirm(args, plan)):
            print("compilediag: nothing was run", file=sys.stderr)
            return 2
        try:
            with tempfile.TemporaryDirectory(prefix="compilediag-try-", ignore_cleanup_errors=True) as folder:
                if args.python:
                    return _compare_interpreters(args, Path(folder))
                return _try_plan(args, plan, detail, Path(folder))
        except KeyboardInterrupt:
            print("compilediag: interrupted; nothing was compared", file=sys.stderr)
            return INTERRUPTED


def _try_plan(args: argparse.Namespace, plan: Plan | None, detail: str, folder: Path) -> int:
    """Run the job without and with the plan, print what was measured, and store it; 1 if the plan does not hold."""
    from compilediag.trials.script_trial import try_script

    with open_runner(args, PROCESS, folder, 2 * args.runs) as (runner, _):
        trial = try_script(runner, _make_job(args, detail), plan, args.runs)
    _store(args, trial)
    holds = trial.is_clean if trial.outcome is None else trial.outcome.holds
    if args.json:
        from compilediag.views.json_documents import PlanDocument, TrialDocument

        shown = None if trial.plan is None else PlanDocument(**trial.plan.to_dict())
        print_document(TrialDocument(holds, trial.problem, trial.outcome, shown), args.budget)
    elif trial.outcome is not None:
        print(_format_trial(trial.plan, trial.outcome))
    if trial.outcome is None:
        print(f"compilediag: {args.script}: {trial.problem}", file=sys.stderr)
    return 0 if holds else 1


@contextlib.contextmanager
def open_runner(
    args: argparse.Namespace,
    command: Sequence[str],
    folder: Path,
    runs: int,
    variables: Mapping[str, str] | None = None,
) -> Iterator[tuple[ProcessRunner, TrialProgress]]:
    """What runs the script that was named, so many times, and what shows its progress. CompilediagError if it can't."""
    from compilediag.trials.fresh_process import ProcessRunner, TrialProgress

    progress = TrialProgress(runs)
    try:
        yield ProcessRunner(command, folder, args.timeout, progress, variables=variables), progress
    except OSError as error:
        raise CompilediagError(f"can't run {args.script}: {error}") from None
    finally:
        progress.end()


def _confirm(args: argparse.Namespace, plan: Plan) -> bool:
    """Show the plan of a file, which may be somebody else's, and ask on the terminal whether to run the script with it.

    CompilediagError if nobody can be asked.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CompilediagError(f"nothing was run: read the plan (compilediag plan {args.plan}), then add --yes")
    print_text("\n\n".join(filter(None, (str(plan), plan.code()))), file=sys.stderr)
    print_text(f"\nRun {args.script} with this plan? [y/N] ", end="", file=sys.stderr)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _make_job(args: argparse.Namespace, detail: str) -> ProgramJob:
    from compilediag.trials.fresh_process import ProgramJob

    # The script sees its name as it was typed.
    backend = "eager" if args.fast else None
    return ProgramJob(args.script, tuple(drop_dashes(args.args)), args.is_module, detail=detail, backend=backend)


def _store(args: argparse.Namespace, trial: ScriptTrial) -> None:
    """Store the outcome in the session of the plan, and save the first run."""
    from compilediag.diagnosis.plan.plan import META_KEY
    from compilediag.session import load

    try:
        first = load(trial.session) if args.save else None
    except CompilediagError:  # The run was ended before or while its session was made.
        if trial.outcome is not None:
            raise
        print(f"compilediag: {args.save} was not written: the first run recorded nothing", file=sys.stderr)
        return
    values = {META_KEY: trial.outcome.to_dict()} if trial.outcome is not None else {}
    for session in filter(None, (load(args.plan) if args.plan else None, first)):
        try:
            session.data.set_meta(**values)
        except CompilediagError as error:
            print(f"compilediag: the outcome was not stored: {error}", file=sys.stderr)
    if first is not None:
        first.save(args.save)
        print(f"compilediag: wrote {args.save}", file=sys.stderr)


def _format_trial(plan: Plan | None, outcome: Outcome) -> str:
    """The plan, a table of what was measured, and the verdict."""
    text = str(plan).replace(plan.tried["text"], "").rstrip() if plan is not None and plan.tried else str(plan or "")
    table = _format_table(18, [("", "without", "with"), *_list_rows(outcome)], outcome.same_output)
    return "\n".join([text, "", *table, "", *wrap(str(outcome))])


def _format_table(width: int, rows: Iterable[tuple[str, str, str]], same_output: bool | None) -> Iterator[str]:
    """The lines of what was measured on two sides; the last one says whether the output is the same, if it is known."""
    last = [] if same_output is None else [("output", "", "the same" if same_output else "differs")]
    yield from (f"{name:{width}}{before:>12}{after:>12}" for name, before, after in (*rows, *last))


def _list_rows(outcome: Outcome) -> Iterator[tuple[str, str, str]]:
    timed = (
        ("compile time", outcome.compile_seconds_before, outcome.compile_seconds_after),
        ("wall time", outcome.wall_seconds_before, outcome.wall_seconds_after),
    )
    yield "recompiles", _format_cell(outcome.recompiles_before), _format_cell(outcome.recompiles_after)
    for name, before, after in timed if outcome.backend is None else ():
        yield name, format_seconds(before or 0), format_seconds(after or 0)
    yield "exit code", _format_cell(outcome.exit_codes[0]), _format_cell(outcome.exit_codes[1])


def _format_cell(value: int | None) -> str:
    return "timeout" if value is None else str(value)


# Two interpreters, without a plan

#: Causes that are listed.
SHOWN = 20


def _compare_interpreters(args: argparse.Namespace, folder: Path) -> int:
    """Run the job with both interpreters and print the comparison; 1 if something is worse with the second one."""
    from compilediag.trials.script_trial import find_interpreter, make_variables, try_interpreters
    from compilediag.views.json_documents import InterpreterRun, InterpretersDocument

    variables = make_variables(folder)
    first, second = (find_interpreter(path, variables) for path in [sys.executable, *args.python][-2:])
    with open_runner(args, PROCESS, folder, 2 * args.runs, variables) as (runner, _):
        trial = try_interpreters(runner, (first, second), _make_job(args, args.detail), args.runs)
    # Counts are those of the first run of each side, and times those of the fastest.
    sides = [
        InterpreterRun(
            path=found.path,
            python=found.python,
            torch=found.torch,
            compiles=runs[0].compiles,
            recompiles=runs[0].recompiles,
            graph_breaks=runs[0].graph_breaks,
            captures=captures,
            guards_us=min(run.guards_us for run in runs),
            compile_s=min(run.compile_seconds for run in runs),
            wall_s=min(run.run.wall for run in runs),
            exit_code=runs[0].run.exit_code,
        )
        for found, runs, captures in zip(trial.interpreters, trial.runs, trial.captures, strict=True)
    ]
    notes = tuple(filter(None, (trial.output.note, *trial.notes)))
    is_same, changes = trial.output.is_same, tuple(trial.changes)
    document = InterpretersDocument(trial.is_as_good, trial.problem, tuple(sides), is_same, changes, notes)
    if args.json:
        print_document(document, args.budget)
    else:
        print_text(_format_comparison(document, args.fast))
    return 0 if document.is_as_good else 1


def _format_comparison(document: InterpretersDocument, is_fast: bool) -> str:
    """A table of what was measured, the causes that differ, and the verdict."""
    named = zip("AB", document.runs, strict=True)
    lines = [f"{name}: torch {run.torch} ({run.path}), Python {run.python}" for name, run in named]
    one, other = document.runs
    rows = [(name, write(one), write(other)) for name, write in _ROWS if not (is_fast and name in _TIMES)]
    lines += ["", *_format_table(24, [("", "A", "B"), *rows], document.same_output)]
    for is_worse, head in ((True, "Worse with B:"), (False, "Better with B:")):
        own = [change for change in document.changes if change.worse is is_worse]
        lines += ["", head] if own else []
        lines += [f"  {change.fingerprint or '-':14}{change.title}" for change in own[:SHOWN]]
        lines += [f"  ... and {len(own) - SHOWN} more"] if len(own) > SHOWN else []
    notes = [*([document.problem] if document.problem else []), *document.notes]
    lines += ["", *notes] if notes else []
    verdict = "nothing is worse with B" if document.is_as_good else "B is worse, or differs"
    return escape_lines("\n".join([*lines, "", f"Compared by cause: {verdict}."]))


#: What is compared, and how it is written.
_ROWS: tuple[tuple[str, Callable[[InterpreterRun], str]], ...] = (
    ("compiles", lambda run: str(run.compiles)),
    ("recompiles", lambda run: str(run.recompiles)),
    ("graph breaks", lambda run: str(run.graph_breaks)),
    ("CUDA graphs", lambda run: str(run.captures)),
    ("a check of all guards", lambda run: format_seconds(run.guards_us / 1e6)),
    ("compile time", lambda run: format_seconds(run.compile_s)),
    ("wall time", lambda run: format_seconds(run.wall_s)),
    ("exit code", lambda run: str(run.exit_code)),
)
_TIMES = ("compile time", "wall time")
