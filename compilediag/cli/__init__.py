"""The `compilediag` command: one class per subcommand, each listed here.

torch is not imported before a subcommand needs it.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Protocol

import compilediag
from compilediag.errors import INTERRUPTED, CompilediagError
from compilediag.system.files import HTML_PAGE, check_output, find_working_folder

from .doctor_command import DoctorCommand
from .fix_command import FixCommand
from .live_command import LiveCommand
from .output import ends_with_output, open_closed_streams
from .run_command import RunCommand
from .session_commands import (
    CheckCommand,
    DiffCommand,
    ExampleCommand,
    ExportCommand,
    IngestCommand,
    PlanCommand,
    RanksCommand,
    ReportCommand,
)
from .try_command import TryCommand

#: A paragraph that has lines like `csv:   a folder` or indented ones is an example or a list.
_IS_LAID_OUT = re.compile(r"^(?:\s+\S|\w+: +\S)", re.MULTILINE)


class Command(Protocol):
    """A subcommand. Its docstring is its help; the first line is its entry in the list of commands."""

    name: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Run the command; return its exit code. CompilediagError for what the user has to change."""
        ...


COMMANDS: tuple[Command, ...] = (
    RunCommand(),
    LiveCommand(),
    PlanCommand(),
    FixCommand(),
    TryCommand(),
    ReportCommand(),
    IngestCommand(),
    RanksCommand(),
    DiffCommand(),
    CheckCommand(),
    ExportCommand(),
    ExampleCommand(),
    DoctorCommand(),
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; return its exit code: its own, 2 for what the user has to change, 130 after Ctrl-C, or 141 if
    nobody reads its output any more.
    """
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
    parser = argparse.ArgumentParser(
        prog="compilediag",
        description="Why torch.compile recompiled, what it cost and what to change.",
        epilog="Start with `compilediag run train.py`. `compilediag COMMAND --help` explains a command.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"compilediag {compilediag.__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        text = inspect.getdoc(command) or ""
        subparser = subparsers.add_parser(
            command.name,
            help=text.partition("\n")[0].rstrip("."),
            description=text,
            formatter_class=CommandHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(command=command)
    return parser


class CommandHelpFormatter(argparse.HelpFormatter):
    """Fills the terminal with the paragraphs of a command's help; examples and lists stay as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = (
            textwrap.indent(paragraph, indent)
            if _IS_LAID_OUT.search(paragraph)
            else textwrap.fill(
                paragraph, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
            for paragraph in re.split(r"\n\n", text.strip("\n"))
        )
        return "\n\n".join(paragraphs)
