"""`compilediag run SCRIPT [ARGS...]`: record a script that otherwise runs exactly as with `python SCRIPT`."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING, TextIO

from compilediag.errors import CompilediagError
from compilediag.logs.inputs import check_session_output
from compilediag.system.program import announce_program, record_children

from .command import (
    FINDINGS,
    Command,
    add_json_argument,
    add_program_arguments,
    claim_output,
    drop_unwritten,
    get_budget,
    print_document,
    print_text,
)
from .python_program import execute, find_module, find_script

if TYPE_CHECKING:
    from compilediag.session import Session


class RunCommand(Command):
    """Run a script, record what torch.compile does, and print a summary.

    The script runs as with `python SCRIPT ARGS...`: its output, its exit code and its exceptions are unchanged. When it
    ends, for whatever reason, the report is written and the summary goes to stderr. The last line says what happened
    and where the session is. Without --save, it is kept for `compilediag last`, with those of the 19 runs before, also
    if the process is killed.
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--report", metavar="PATH", help="write one offline HTML file at the end")
        parser.add_argument("--save", metavar="PATH", help="record to this session file (.cdiag) or folder of ranks")
        parser.add_argument(
            "--detail", choices=("lean", "full"), default="full", help="what to record (default: %(default)s)"
        )
        parser.add_argument("--replays", action="store_true", help="count the replays of each CUDA graph")
        parser.add_argument(
            "--calls",
            action="store_true",
            help="count calls of compiled code (Python 3.12 or later), and time checks of guards",
        )
        parser.add_argument("--tracing", action="store_true", help="time each function that Dynamo traces")
        parser.add_argument(
            "--my-code",
            metavar="PATH",
            action="append",
            default=[],
            help="a folder, file or module that is your own code; can be repeated "
            "(default: all code but torch, the standard library and installed packages)",
        )
        parser.add_argument(
            "--warmup-steps", metavar="N", type=int, help="after N calls of cd.step(), nothing should compile any more"
        )
        parser.add_argument(
            "--on-compile",
            choices=("count", "warn", "raise"),
            default="count",
            help="what happens if something compiles after the warm-up (default: %(default)s)",
        )
        parser.add_argument(
            "--console",
            action="store_true",
            help="show a line in the terminal while something compiles, which ends with its seconds",
        )
        parser.add_argument(
            "--console-always",
            dest="console",
            action="store_const",
            const="always",
            help="the same, also if stderr is a file or a pipe",
        )
        parser.add_argument("--redact", action="store_true", help="leave code, values and paths out of the report")
        parser.add_argument("--quiet", action="store_true", help="print neither the summary nor the last line")
        add_json_argument(parser, FINDINGS)
        add_program_arguments(parser)

    def run(self, args: argparse.Namespace) -> int:
        # Arguments are validated before the script starts.
        in_folder = bool(args.save) and (os.path.isdir(args.save) or args.save.endswith(("/", os.sep)))
        saved = os.path.join(args.save, "a rank's") if in_folder and os.path.isdir(args.save) else args.save
        if saved:
            check_session_output(saved)
        # The script may change the working directory. A slash at the end means a folder.
        args.named = args.save
        args.report, args.save = (path and os.path.abspath(path) for path in (args.report, args.save))
        args.save = os.path.join(args.save, "") if in_folder else args.save
        program = find_module(args.script) if args.is_module else find_script(args.script)

        from compilediag import sources
        from compilediag.session import keep_if_killed
        from compilediag.watch import start

        program.set_arguments(args.args)
        announce_program(args.script, args.script if args.is_module else None, args.args)
        watched = (args.detail, args.replays, args.calls, args.my_code)
        session = start(args.save, *watched, args.warmup_steps, args.on_compile, args.console, args.tracing)
        if not args.save and not sources.rank():
            keep_if_killed(session)
        record_children(args.save if in_folder else str(session.path), session.meta)
        # At exit, because the interpreter first waits for the script's threads, which may still compile.
        output = claim_output() if args.json else None
        raised: list[type[BaseException]] = []
        atexit.register(_finish, session, args, os.getpid(), output, raised)
        execute(program, lambda error: raised.append(type(error)))
        return 0


def _finish(
    session: Session,
    args: argparse.Namespace,
    owner: int,
    output: TextIO | None,
    raised: list[type[BaseException]],
) -> None:
    """Stop the watch, write the report, print the summary, and the findings to `output`. Does nothing in a forked
    child. `raised` has the type of the exception that ended the script, if one did.
    """
    if os.getpid() != owner:
        return
    from compilediag.watch import stop_all

    stop_all()
    from compilediag.views.summary import LAST, format_closing_line, format_summary, suggest_commands

    where, problem = (args.named, None) if args.save else (LAST, _keep(session))
    where = where if problem is None else None
    is_quiet = args.quiet or sys.stderr is None
    is_interrupted = any(issubclass(error, KeyboardInterrupt) for error in raised)
    if not is_quiet:
        _print_line(format_summary(session.data, suggest_commands(where)))
    if args.report:
        try:
            session.report(args.report, redact=args.redact)
        except (CompilediagError, OSError) as error:
            _print_line(f"compilediag: the report was not written: {error}")
    if not is_quiet:
        if args.report and os.path.exists(args.report):
            _print_line(f"compilediag: wrote {args.report}")
        # An exit code is the script's own matter: many programs end with one.
        ending = "interrupted" if is_interrupted else f"the script raised {raised[0].__name__}" if raised else None
        keep = f"{problem}; --save run.cdiag keeps it"
        _print_line(format_closing_line(session.data, where, ending, keep))
    if output is not None:
        _print_findings(session, args, output)
    if is_interrupted:
        # As Python itself does, so that a shell sees that it was interrupted.
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _print_findings(session: Session, args: argparse.Namespace, output: TextIO) -> None:
    """Print the findings as a document; of the ranks of a job, those of the first."""
    from compilediag import sources
    from compilediag.views.findings_document import make_findings_document

    if sources.rank():
        return
    try:
        print_document(make_findings_document(session.data, args.named, get_budget(args)), file=output)
        output.flush()
    except OSError:
        drop_unwritten(output)


def _keep(session: Session) -> str | None:
    """Keep the session for `compilediag last`; why it could not be kept, if so. Of the ranks of a job, the first is."""
    from compilediag import sources
    from compilediag.session import keep

    try:
        rank = sources.rank()
        if rank:
            return f"it is that of rank {rank}"
        keep(session)
        return None
    except Exception as error:  # A full disk, a home that can't be written to: the run is over, and its own.
        return str(error)


def _print_line(text: str) -> None:
    """Print to stderr. If nobody reads that any more, the exit code stays the script's."""
    try:
        print_text(text, file=sys.stderr)
    except OSError:
        drop_unwritten(sys.stderr)
