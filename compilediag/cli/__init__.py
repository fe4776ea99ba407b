"""The `compilediag` command: one file a subcommand, each listed here.

Nothing of torch is imported before a subcommand needs it.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Sequence
from typing import Protocol

import compilediag
from compilediag.errors import CompilediagError

from .check import Check
from .diff import DiffCommand
from .doctor import Doctor
from .export import Export
from .ingest import Ingest
from .ranks import RanksCommand
from .report import Report
from .run import Run


class Command(Protocol):
    """A subcommand. Its docstring is its help."""

    name: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare what the command takes."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit code. CompilediagError for what the user has to mend."""


COMMANDS: tuple[Command, ...] = (Run(), Report(), Ingest(), RanksCommand(), DiffCommand(), Check(), Export(), Doctor())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; the exit code: 0, 2 for what the user has to mend, or the command's own."""
    args = make_parser().parse_args(argv)
    try:
        return args.command.run(args)
    except CompilediagError as error:
        print(f"compilediag: {error}", file=sys.stderr)
        return error.exit_code


def make_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="compilediag",
        description="Why torch.compile recompiled, what it cost and what to change.",
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
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(subparser)
        subparser.set_defaults(command=command)
    return parser
