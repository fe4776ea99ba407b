"""`compilediag try SCRIPT --python A --python B`: what compiles with another interpreter or version of torch."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from compilediag.errors import INTERRUPTED, CompilediagError
from compilediag.formatting import escape_lines, format_seconds

from .output import print_document, print_text

if TYPE_CHECKING:
    from compilediag.trials.fresh_process import ProgramJob
    from compilediag.trials.interpreter_trial import InterpreterTrial
    from compilediag.views.json_documents import InterpreterRun, InterpretersDocument

#: Causes that are listed.
SHOWN = 20


def run_with_interpreters(args: argparse.Namespace, job: ProgramJob, command: tuple[str, ...]) -> int:
    """Run the job with both interpreters and print the comparison; 1 if something is worse with the second one."""
    if args.plan or args.save:
        raise CompilediagError("--python compares two interpreters without a plan; leave out --plan and --save")
    if len(args.python) > 2:
        raise CompilediagError(f"--python was given {len(args.python)} times; two interpreters can be compared")
    try:
        with tempfile.TemporaryDirectory(prefix="compilediag-try-", ignore_cleanup_errors=True) as folder:
            trial = _try(args, job, command, Path(folder))
    except KeyboardInterrupt:
        print("compilediag: interrupted; nothing was compared", file=sys.stderr)
        return INTERRUPTED
    document = _make_document(trial)
    if args.json:
        print_document(document, args.budget)
    else:
        print_text(_format_document(document, args.fast))
    return 0 if document.is_as_good else 1


def _try(args: argparse.Namespace, job: ProgramJob, command: tuple[str, ...], folder: Path) -> InterpreterTrial:
    from compilediag.trials.fresh_process import ProcessRunner, TrialProgress
    from compilediag.trials.interpreter_trial import find_interpreter, make_variables, try_interpreters

    variables = make_variables(folder)
    paths = [sys.executable, *args.python][-2:]
    first, second = (find_interpreter(path, variables) for path in paths)
    progress = TrialProgress(2 * args.runs)
    try:
        runner = ProcessRunner(command, folder, args.timeout, progress, variables=variables)
        return try_interpreters(runner, (first, second), job, args.runs)
    except OSError as error:
        raise CompilediagError(f"can't run {args.script}: {error}") from None
    finally:
        progress.end()


def _make_document(trial: InterpreterTrial) -> InterpretersDocument:
    """What was measured. Counts are those of the first run of each side, and times those of the fastest."""
    from compilediag.views.json_documents import InterpreterRun, InterpretersDocument

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
    is_same = trial.output.is_same
    return InterpretersDocument(trial.is_as_good, trial.problem, tuple(sides), is_same, tuple(trial.changes), notes)


def _format_document(document: InterpretersDocument, is_fast: bool) -> str:
    """A table of what was measured, the causes that differ, and the verdict."""
    named = zip("AB", document.runs, strict=True)
    lines = [f"{name}: torch {run.torch} ({run.path}), Python {run.python}" for name, run in named]
    lines += ["", f"{'':24}{'A':>12}{'B':>12}"]
    one, other = document.runs
    lines += [
        f"{name:24}{write(one):>12}{write(other):>12}" for name, write in _ROWS if not (is_fast and name in _TIMES)
    ]
    if document.same_output is not None:
        lines.append(f"{'output':24}{'':>12}{'the same' if document.same_output else 'differs':>12}")
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
