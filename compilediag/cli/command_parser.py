"""What a subcommand is, and what the parsers of several have: its docstring is its help."""

from __future__ import annotations

import abc
import argparse
import re
import textwrap
from collections.abc import Callable
from typing import TypeVar

N = TypeVar("N", int, float)

#: A paragraph that has lines like `csv:   a folder` or indented ones is an example or a list.
_IS_LAID_OUT = re.compile(r"^(?:\s+\S|\w+: +\S)", re.MULTILINE)


class Command(abc.ABC):
    """A subcommand: `PlanCommand` is `compilediag plan`. Its docstring is its help; the first line is its entry in the
    list of commands.
    """

    @property
    def name(self) -> str:
        return type(self).__name__.removesuffix("Command").lower()

    @abc.abstractmethod
    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    @abc.abstractmethod
    def run(self, args: argparse.Namespace) -> int:
        """Run the command; return its exit code. CompilediagError for what the user has to change."""


def add_program_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the program to run, and its own."""
    parser.add_argument("-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module")
    parser.add_argument("script", metavar="SCRIPT", help="the script to run")
    parser.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER, help="the arguments of the script")


def make_number_type(convert: Callable[[str], N], fits: Callable[[N], bool], what: str) -> Callable[[str], N]:
    """The type of an argument that is a number for which `fits` is true. The error says that it is not `what`."""

    def read(text: str) -> N:
        try:
            number = convert(text)
        except ValueError:
            number = None
        if number is None or not fits(number):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return number

    return read


def drop_dashes(args: list[str]) -> list[str]:
    """The arguments of the script, without the `--` that separates them from ours."""
    return args[1:] if args[:1] == ["--"] else args


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
