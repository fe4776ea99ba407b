"""`compilediag run SCRIPT [ARGS...]`: a script under watch, otherwise just as `python SCRIPT` runs it."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

from compilediag.errors import CompilediagError
from compilediag.output_paths import check_output

from .program import Program, find_module, find_script

if TYPE_CHECKING:
    from compilediag.session import Session

_HERE = os.path.dirname(__file__)
#: The interrupt that ended the script, if one did.
_interrupted: list[BaseException] = []


class Run:
    """Run a script under watch and say what torch.compile did.

    The script runs as `python SCRIPT ARGS...` would run it: its output, its exit code and its exceptions are its own.
    At its end, however it ends, a summary goes to stderr and the report is written.
    """

    name = "run"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--report", metavar="PATH", help="write one offline HTML file at the end")
        parser.add_argument("--save", metavar="PATH", help="record into this session file (.cdiag) or folder of ranks")
        parser.add_argument("--detail", choices=("lean", "full"), default="full", help="what to record (%(default)s)")
        parser.add_argument("--replays", action="store_true", help="count how often each CUDA graph is replayed")
        parser.add_argument("--calls", action="store_true", help="count the calls of compiled code (Python 3.12)")
        parser.add_argument("--redact", action="store_true", help="keep code, values and paths out of the report")
        parser.add_argument("--quiet", action="store_true", help="no summary")
        parser.add_argument("-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module")
        parser.add_argument("script", metavar="SCRIPT", help="the script to run")
        parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="its own arguments")

    def run(self, args: argparse.Namespace) -> int:
        # What can be wrong is looked for before the script starts: a run of hours must not end without its report.
        in_folder = bool(args.save) and (os.path.isdir(args.save) or args.save.endswith(("/", os.sep)))
        written = os.path.join(args.save, "a rank's") if in_folder and os.path.isdir(args.save) else args.save
        for path in filter(None, (args.report, written)):
            check_output(path)
        # The script may change the working directory. A slash at the end says that a folder is meant.
        args.report, args.save = (path and os.path.abspath(path) for path in (args.report, args.save))
        args.save = os.path.join(args.save, "") if in_folder else args.save
        program = find_module(args.script) if args.is_module else find_script(args.script)

        from compilediag.watch import start

        program.take_over(args.args)
        session = start(args.save, args.detail, args.replays, args.calls)
        # At exit, because the interpreter first waits for the script's threads, which may still compile.
        atexit.register(_finish, session, args, os.getpid())
        _execute(program)
        return 0


def _execute(program: Program) -> None:
    """Run to the end or to the script's own exception, which is shown without our frames."""
    try:
        program.run()
    except SystemExit:
        raise
    except BaseException as error:
        from compilediag.watch import notice

        notice(error)
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_HERE):
            frames = frames.tb_next
        sys.excepthook(type(error), error.with_traceback(frames), frames)
        if isinstance(error, KeyboardInterrupt):
            _interrupted.append(error)
        raise SystemExit(1) from None


def _finish(session: Session, args: argparse.Namespace, owner: int) -> None:
    """End the watch, write the report, print the summary: in our process only, not in children that were forked."""
    if os.getpid() != owner:
        return
    from compilediag.watch import stop_all

    stop_all()
    if not args.quiet:
        print(session.summary(), file=sys.stderr)
    if args.report:
        try:
            session.report(args.report, redact=args.redact)
        except (CompilediagError, OSError) as error:
            print(f"compilediag: no report: {error}", file=sys.stderr)
    for path in filter(None, (args.report, args.save)):
        if not args.quiet and os.path.exists(path):
            print(f"compilediag: wrote {path}", file=sys.stderr)
    if _interrupted:
        _end_by_interrupt()


def _end_by_interrupt() -> None:
    """End as Python itself does after an interrupt, by the signal: so a shell knows that it was one."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)
