"""`compilediag live SESSION`: follow a running job in the terminal."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compilediag.errors import INTERRUPTED, CompilediagError, NewerSchema, NotASession, WrongInput

from .command import Command, print_text

if TYPE_CHECKING:
    from compilediag.logs.folders import FollowedFiles
    from compilediag.views.live_status import JobStatus

#: Seconds between two looks at the job.
INTERVAL_S = 0.5


class LiveCommand(Command):
    """Follow a running job: what each process compiles, for how long, and the plan so far.

    SESSION is the file that a job records to, or the folder that its ranks record to. The screen shows for each process
    the function and phase in flight, and whether the job compiles or stands still for another reason. It needs rich:
    pip install 'compilediag[live]'. Without a terminal, or with --plain, one line is printed per change, with its time;
    for a job that has ended, one line per compile.

    The command ends with the job and prints its summary; exit code 1 if a process was killed. Ctrl-C stops only the
    display (exit code 130). Examples:

      compilediag live run.cdiag
      compilediag live ranks/ --wait
      compilediag live ranks/ --plain > live.log
    """

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="a session file (.cdiag), or a folder of ranks")
        parser.add_argument("--plain", action="store_true", help="print lines, also on a terminal")
        parser.add_argument("--json", action="store_true", help="print a line of JSON (compilediag.live/1) per change")
        parser.add_argument("--wait", action="store_true", help="wait until the job begins to record")

    def run(self, args: argparse.Namespace) -> int:
        show_screen = sys.stdout.isatty() and not (args.plain or args.json)
        if show_screen and importlib.util.find_spec("rich") is None:
            raise CompilediagError("the live screen needs rich: pip install 'compilediag[live]', or use --plain")
        try:
            data = _open(Path(args.session), args.wait)
            job = _follow(data, args.session, show_screen, args.json)
        except KeyboardInterrupt:
            print("compilediag: stopped following; the job continues", file=sys.stderr)
            return INTERRUPTED
        from compilediag.views.summary import format_closing_line, format_summary, suggest_commands

        # The last line is the one that `compilediag run` ends with.
        file = sys.stderr if args.json else sys.stdout
        killed = [f"{process.name} {process.ending}" for process in job.processes if process.was_killed]
        print(format_summary(data, suggest_commands(args.session)), file=file)
        print_text(format_closing_line(data, args.session, ", ".join(killed) or None), file=file)
        return 1 if killed else 0


def _open(path: Path, wait: bool) -> FollowedFiles:
    """Open what is recorded at `path`; wait until there is something, if asked to."""
    from compilediag.logs.folders import FollowedFiles, find_sessions
    from compilediag.logs.inputs import InputKind, check_input, identify_input

    def find() -> list[Path]:
        return find_sessions(path) if path.is_dir() else [path]

    is_announced = False
    while True:
        try:
            found = identify_input(path)
            if found.kind in (InputKind.MISSING, InputKind.EMPTY, InputKind.FOLDER):
                raise NotASession(f"{path} {found.what}; --wait waits until the job begins to record")
            check_input(path, InputKind.SESSION)
            return FollowedFiles(path.name, find)
        except (WrongInput, NewerSchema):
            raise  # Waiting does not help.
        except CompilediagError as error:
            if not wait:
                raise
            if not is_announced:
                print(f"compilediag: waiting: {error}", file=sys.stderr)
            is_announced = True
            time.sleep(INTERVAL_S)


def _follow(data: FollowedFiles, title: str, show_screen: bool, as_json: bool) -> JobStatus:
    """Show the job until it ends; its last state. A state is printed if it differs from the one before."""
    from compilediag.views.json_documents import describe_job
    from compilediag.views.live_status import JobReader, LiveLines

    reader, lines, last = JobReader(data, title), LiveLines(), None
    with contextlib.ExitStack() as stack:
        screen = None
        if show_screen:
            from .live_screen import open_screen

            screen = stack.enter_context(open_screen())
        while True:
            job = reader.read(data.files.values())
            if screen is not None:
                screen(job)
            elif as_json:
                document = describe_job(job)
                if replace(document, time_ns=0) != last:
                    last = replace(document, time_ns=0)
                    print(json.dumps(document.to_dict()), flush=True)
            else:
                for line in lines.describe(job):
                    print_text(line)
                    sys.stdout.flush()
            if not job.is_live:
                return job
            time.sleep(INTERVAL_S)
