"""`compilediag fix SCRIPT [ARGS...]`: search for the smallest change of a script that runs have proven."""

from __future__ import annotations

import argparse
import ast
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compilediag.document import to_text
from compilediag.errors import CompilediagError
from compilediag.logs.inputs import InputKind, check_input
from compilediag.system.files import write_file

from .command import (
    Command,
    add_json_argument,
    add_program_arguments,
    drop_dashes,
    make_number_type,
    print_document,
    print_text,
)
from .try_command import COUNT, PROCESS, SECONDS, open_runner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compilediag.fix.search import Attempt, FixResult
    from compilediag.trials.fresh_process import ProgramJob


#: Two runs are unchanged, and one has a change.
_RUNS = make_number_type(int, lambda number: 3 <= number <= 100, "a number from 3 to 100")
_TORCHRUN, _RUN, _MODULE = "torchrun", "torch.distributed.run", ("-m", "--module")


class FixCommand(Command):
    """Search for the smallest change of a script that removes its recompiles, and prove it.

    The script runs in fresh processes with empty compile caches: unchanged, then with one change after the other. A
    change is rejected if the script ends otherwise, prints something else, if a compiled call returns something else,
    or if graph breaks are added. What is not needed is left out again. The rest is proven with the script's own
    backend, in two runs without and two with it. No file is changed without --write: edits apply to a copy.

    What the script does otherwise, such as writing checkpoints, happens in each run.

    The exit code is 0 if a change is proven and what is left is needed, or if there is nothing to fix; 1 if something
    is left that could be avoided, 2 if nothing was proven, 3 if the script cannot be tried, and 130 after Ctrl-C
    or SIGTERM: the best change so far is printed, and --write writes nothing.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help="apply the proven patch to your files")
        parser.add_argument("--patch", metavar="FILE", help="write the patch to this file")
        add_json_argument(parser, "fix/1")
        parser.add_argument(
            "--guards", action="store_true", help="also look for guards that are cheaper to check at each call"
        )
        parser.add_argument("--fast", action="store_true", help="skip the proof with the script's own backend")
        parser.add_argument(
            "--allow",
            metavar="KINDS",
            help="only these kinds of changes, separated by commas: dynamic, marks, settings, tensor, isolate, code",
        )
        parser.add_argument(
            "--calls", metavar="N", type=int, help="end each run after N outer calls into compiled code"
        )
        parser.add_argument("--seconds", metavar="S", type=SECONDS, help="end each run at the first call after S s")
        parser.add_argument(
            "--until", metavar="EXPR", type=_read_expression, help="end each run at the first call where EXPR is true"
        )
        parser.add_argument(
            "--jobs", metavar="N", type=COUNT, default=1, help="runs of the search at the same time (default: 1)"
        )
        parser.add_argument(
            "--max-runs",
            metavar="N",
            type=_RUNS,
            default=25,
            help="runs of the search (default: 25); a proof takes 4 to 8 more",
        )
        parser.add_argument(
            "--max-time", metavar="S", type=SECONDS, default=600.0, help="end the search after S seconds (default: 600)"
        )
        parser.add_argument("--timeout", metavar="S", type=SECONDS, help="end each run after S seconds")
        add_program_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.fix.report import describe_fix, get_exit_code, make_patch, to_values

        command, job = _find_program(args)
        if not job.is_module:
            check_input(job.script, InputKind.SCRIPT, InputKind.TEXT, InputKind.EMPTY)
        folder = os.getcwd()
        # `timeout` and the schedulers of clusters end a command with SIGTERM: what was found by then is printed too.
        previous = signal.signal(signal.SIGTERM, signal.default_int_handler)
        with tempfile.TemporaryDirectory(prefix="compilediag-fix-", ignore_cleanup_errors=True) as temporary:
            try:
                result = _search(args, Path(temporary), command, job)
            finally:
                signal.signal(signal.SIGTERM, previous)
            patch = make_patch(result, folder)
            if args.json:
                from compilediag.views.json_documents import FixDocument

                print_document(FixDocument(**to_values(result, folder)), args.budget)
            else:
                print_text(to_text(describe_fix(result, folder)))
        if args.patch and patch:
            write_file(Path(args.patch), patch)
            print(f"compilediag: wrote {args.patch}", file=sys.stderr)
        elif args.patch:
            print(f"compilediag: {args.patch} was not written: there is no patch", file=sys.stderr)
        if args.write and patch and result.is_interrupted:
            print("compilediag: no file was changed: the patch is not proven", file=sys.stderr)
        elif args.write and patch:
            _write(result)
        return get_exit_code(result)


def _search(args: argparse.Namespace, folder: Path, command: Sequence[str], job: ProgramJob) -> FixResult:
    from compilediag.fix.program import KINDS
    from compilediag.fix.report import format_attempt
    from compilediag.fix.search import MOST_PROOF_RUNS, Search, SearchLimits

    kinds = tuple(args.allow.split(",")) if args.allow else KINDS
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise CompilediagError(f"--allow: there is no kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    limits = SearchLimits(
        args.max_runs, args.max_time, args.calls, args.seconds, kinds, not args.fast, args.until, args.jobs, args.guards
    )
    most = args.max_runs + (0 if args.fast else MOST_PROOF_RUNS)
    print(
        f"compilediag: {job.script} runs up to {most} times; files that it writes, and what it sends, are "
        "written and sent in each run",
        file=sys.stderr,
    )
    with open_runner(args, command, folder, most) as (runner, progress):

        def report(result: FixResult, attempt: Attempt | None) -> None:
            progress.end()
            print_text(format_attempt(result, attempt), file=sys.stderr)

        return Search(runner, job, limits, report).run()


def _find_program(args: argparse.Namespace) -> tuple[Sequence[str], ProgramJob]:
    """The command that starts a run, and the program: the script that torchrun would start, where it is named."""
    from compilediag.trials.fresh_process import ProgramJob

    words = drop_dashes(args.args)
    if (args.is_module, args.script) not in ((False, _TORCHRUN), (True, _RUN)):
        return PROCESS, ProgramJob(args.script, tuple(words), args.is_module)
    from compilediag.trials.torch_api import parse_launch

    found = parse_launch(words)
    options = [word for word in words[: len(words) - len(found.training_script_args) - 1] if word not in _MODULE]
    if found.no_python:
        raise CompilediagError("--no-python of torchrun starts another program; name the script itself")
    job = ProgramJob(found.training_script, tuple(found.training_script_args), found.module, is_launched=True)
    return ("-m", _RUN, *options, *PROCESS), job


def _read_expression(text: str) -> str:
    try:
        ast.parse(text, mode="eval")
    except (SyntaxError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no expression: {getattr(error, 'msg', error)}") from None
    return text


def _write(result: FixResult) -> None:
    """Apply the changes to the files. CompilediagError, and nothing is written, if one was changed since the search."""
    program = result.program
    assert program is not None
    edited = program.apply(result.changes)
    for name in edited:
        if Path(name).read_bytes() != program.files[name].text.encode():
            raise CompilediagError(f"nothing was written: {name} was changed since the search began")
    for name, source in edited.items():
        write_file(Path(name), source.text)
        print(f"compilediag: wrote {name}", file=sys.stderr)
