"""The `compilediag` command: one class per subcommand, each listed here.

torch is not imported before a subcommand needs it.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence

import compilediag
from compilediag.errors import INTERRUPTED, CompilediagError
from compilediag.system.arguments import SuggestingParser
from compilediag.system.files import HTML_PAGE, check_output, find_working_folder
from compilediag.system.program import ignore_parent

from .assistant_commands import McpCommand, SkillCommand
from .command import Command, CommandHelpFormatter, ends_with_output, open_closed_streams
from .doctor_command import DoctorCommand
from .fix_command import FixCommand
from .live_command import LiveCommand
from .run_command import RunCommand
from .session_commands import (
    CheckCommand,
    ColdstartCommand,
    DiffCommand,
    ExampleCommand,
    ExportCommand,
    FindingsCommand,
    IngestCommand,
    LastCommand,
    PlanCommand,
    RanksCommand,
    ReportCommand,
    ReproCommand,
)
from .try_command import TryCommand

COMMANDS: tuple[Command, ...] = (
    RunCommand(),
    LastCommand(),
    LiveCommand(),
    PlanCommand(),
    FindingsCommand(),
    FixCommand(),
    TryCommand(),
    ReportCommand(),
    IngestCommand(),
    RanksCommand(),
    DiffCommand(),
    ColdstartCommand(),
    CheckCommand(),
    ExportCommand(),
    ReproCommand(),
    ExampleCommand(),
    McpCommand(),
    SkillCommand(),
    DoctorCommand(),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit code: its own, 2 for what the user has to change, 130 after Ctrl-C, or 141 if
    nobody reads its output any more.
    """
    ignore_parent()
    with ends_with_output():
        args = make_parser().parse_args(argv)
    if isinstance(args.command, RunCommand):
        return _run(args)  # The streams are the script's.
    open_closed_streams()
    with ends_with_output():
        return _run(args)


def _run(args: argparse.Namespace) -> int:
    command: Command = args.command
    try:
        if find_working_folder() is None:
            raise CompilediagError("the working directory was deleted; change to another folder and run it again")
        if getattr(args, "report", None):  # Checked first: a run of hours must not end without its report.
            check_output(args.report, HTML_PAGE)
        return command.run(args)
    except CompilediagError as error:
        print(f"compilediag: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("compilediag: interrupted", file=sys.stderr)
        return INTERRUPTED


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of the whole command line."""
    parser = SuggestingParser(
        prog="compilediag",
        description="Why torch.compile recompiled, what it cost and what to change.",
        epilog="Start with `compilediag run train.py`. `compilediag COMMAND --help` explains a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"compilediag {compilediag.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        text = inspect.getdoc(command) or ""
        own = subparsers.add_parser(
            command.name,
            help=text.partition("\n")[0].rstrip("."),
            description=text,
            formatter_class=CommandHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(own)
        own.set_defaults(command=command)
    return parser
