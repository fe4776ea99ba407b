"""`compilediag last [report | plan | fix]`: the session of the last run, without its path."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from compilediag.errors import CompilediagError
from compilediag.system.arguments import SuggestingParser, suggest
from compilediag.system.program import describe_command, read_program

from .command_parser import Command
from .fix_command import FixCommand
from .output import print_text
from .session_commands import PlanCommand, ReportCommand

if TYPE_CHECKING:
    from compilediag.session import Session

ACTIONS: dict[str, Command] = {each.name: each for each in (ReportCommand(), PlanCommand(), FixCommand())}


class LastCommand:
    """Show the session of the last run, its report or plan, or fix its script.

    `compilediag run` keeps the sessions of the last 20 runs, unless it has --save. Without ACTION, the summary is
    printed. ACTION is one of these commands, with its options:

      compilediag last plan --patch > fix.diff
      compilediag last report -o run.html         the default is report.html
      compilediag last fix --write                the script with the same arguments, in the same folder
      compilediag last -n 2 plan                  the run before the last one

    The sessions are in compilediag/sessions in $XDG_STATE_HOME, or ~/.local/state, and readable by you only. In Python,
    `cd.last()` opens one. COMPILEDIAG_HISTORY=off keeps none.
    """

    name = "last"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("-n", metavar="N", dest="number", type=int, default=1, help="the Nth last run (default: 1)")
        parser.add_argument("action", metavar="ACTION", nargs="?", help="report, plan or fix")
        parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the options of the action")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.session import last

        if args.action is not None and args.action not in ACTIONS:
            raise CompilediagError(f"unknown action {args.action!r}; {suggest(args.action, ACTIONS)}")
        command = None if args.action is None else ACTIONS[args.action]
        # A wrong option, or --help, needs no session.
        options = None if command is None else _parse(command, args.args, ["SESSION"])
        session = last(args.number)
        created = time.localtime((session.meta.get("created_ns") or 0) / 1e9)
        ran = describe_command(session.meta) or "a program"
        line = f"compilediag: {ran}, recorded {time.strftime('%Y-%m-%d %H:%M', created)}"
        if command is None or options is None:
            from compilediag.views.summary import LAST, format_summary, suggest_commands

            print_text(line)
            print_text(format_summary(session.data, suggest_commands(LAST)), end="")
            return 0
        print_text(line, file=sys.stderr)
        if command.name == "fix":
            options = _parse(command, args.args, _find_program(session))
            options.patch = options.patch and os.path.abspath(options.patch)
            _change_folder(session)
        else:
            options.session = str(session.path)
        if command.name == "report":
            options.report = options.report or "report.html"
        return command.run(options)


def _parse(command: Command, options: list[str], rest: list[str]) -> argparse.Namespace:
    """The arguments of an action: its options, and what it works on."""
    name = f"compilediag last {command.name}"
    usage = f"{name} [options of compilediag {command.name}]"
    parser = SuggestingParser(name, usage, f"As `compilediag {command.name}`, for the last run.", allow_abbrev=False)
    command.add_arguments(parser)
    return parser.parse_args([*options, *rest])


def _find_program(session: Session) -> list[str]:
    program = read_program(session.meta)
    if program is None:
        raise CompilediagError("the session does not name its script; use `compilediag fix SCRIPT`")
    return ["-m", program.module, *program.arguments] if program.module else [program.script or "", *program.arguments]


def _change_folder(session: Session) -> None:
    program = read_program(session.meta)
    assert program is not None
    try:
        os.chdir(program.folder)
    except OSError as error:
        raise CompilediagError(f"can't enter {program.folder}, where it ran: {error.strerror}") from None
