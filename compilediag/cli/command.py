"""What a subcommand is, what the parsers of several have, and what a command prints.

Its output may not be written: its reader has ended, it was closed, or a disk is full.
"""

from __future__ import annotations

import abc
import argparse
import contextlib
import errno
import os
import re
import select
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO, TypeVar

from compilediag.document import escape_unprintable
from compilediag.json_document import JsonDocument

N = TypeVar("N", int, float)

#: A paragraph that has lines like `csv:   a folder` or indented ones is an example or a list.
_IS_LAID_OUT = re.compile(r"^(?:\s+\S|\w+: +\S)", re.MULTILINE)
#: The exit code after a closed pipe, as a shell reports it for programs that SIGPIPE ends: 128 and the signal's number.
CLOSED_PIPE = 141
#: The exit code if the output can't be written for another reason.
NOT_WRITTEN = 2
#: Errors of a disk: it is full, it fails, or the file is too large.
_OF_A_DISK = {errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT}
#: Characters of a JSON document if no --budget is given: a coding assistant reads so many at once.
BUDGET = 8_000
FINDINGS = "findings/1"


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


# What it prints


def add_json_argument(
    parser: argparse.ArgumentParser, schema: str, form: argparse._ActionsContainer | None = None
) -> None:
    """Add `--json`: the standard output is a document of this schema, and nothing else; and `--budget`. `form` is the
    group of options that exclude each other, if `--json` is one of them.
    """
    shown = f"print JSON (compilediag.{schema}), and nothing else"
    (form or parser).add_argument("--json", action="store_true", help=shown)
    usual = f"; default: {BUDGET}" if schema == FINDINGS else ""
    parser.add_argument(
        "--budget",
        metavar="CHARS",
        type=make_number_type(int, lambda number: 0 <= number < 10**9, "a number of characters"),
        help=f"most characters of the JSON: the least important items are left out, and counted{usual}",
    )


def print_document(document: JsonDocument, budget: int | None = None, file: TextIO | None = None) -> None:
    """Print a document for other programs. It is ASCII, and has nothing that a terminal would obey."""
    print(document.fit(budget).to_json(), file=file)


def claim_output() -> TextIO:
    """The standard output, for a document alone: what this process and its children print goes to the standard error
    from here on.
    """
    try:
        claimed = os.dup(1)
        os.dup2(2, 1)
    except OSError:  # One of them is closed.
        claimed = os.open(os.devnull, os.O_WRONLY)
    return os.fdopen(claimed, "w", encoding="utf-8")


def get_budget(args: argparse.Namespace) -> int | None:
    """The number of characters that was given; without one, text has all findings."""
    return args.budget or (BUDGET if args.json else None)


def print_text(text: str, end: str = "\n", file: TextIO | None = None) -> None:
    """Print a text that can have names, values or paths of a program, without what a terminal would obey."""
    stream = file or sys.stdout
    print(escape_unprintable(text, getattr(stream, "encoding", None)), end=end, file=stream)


def print_written(path: Path) -> int:
    """Say on stderr that a file was written; exit code 0."""
    print(f"compilediag: wrote {path}", file=sys.stderr)
    return 0


@contextlib.contextmanager
def ends_with_output() -> Iterator[None]:
    """Write all that the block prints before it is left. If its reader has ended, as in `compilediag plan x | head -1`,
    the process ends quietly with `CLOSED_PIPE`; if it can't be written otherwise, with one line and `NOT_WRITTEN`.
    """
    try:
        try:
            yield
        finally:
            _flush()
    except OSError as error:
        problem = _find_output_error(error)
        if problem is None:
            raise
        drop_unwritten(sys.stdout, sys.stderr)
        if isinstance(problem, BrokenPipeError):
            raise SystemExit(CLOSED_PIPE) from None
        print(f"compilediag: can't write the output: {problem.strerror or problem}", file=sys.stderr)
        raise SystemExit(NOT_WRITTEN) from None


def open_closed_streams() -> None:
    """Open the standard streams that were closed when the process began (`>&-`); what is written to them is lost.

    Otherwise the next file that is opened, such as a session, gets the number of the standard output.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        with contextlib.suppress(OSError):
            os.fstat(number)
            continue  # It is open.
        # The lowest free number is this one: those below it are open. Child processes inherit it.
        os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        mode = "w" if number else "r"
        setattr(sys, name, open(number, mode, encoding="utf-8", errors="replace", closefd=False))  # noqa: SIM115


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _find_output_error(error: OSError) -> OSError | None:
    """The error of a standard stream; None if `error` has another origin, such as the pipe of a worker process."""
    try:
        _flush()  # What could not be written is still in the buffer, if there is one (`python -u` has none).
    except OSError as found:
        return found
    if isinstance(error, BrokenPipeError):
        return error if any(map(_has_no_reader, (1, 2))) else None
    return error if error.errno in _OF_A_DISK and error.filename is None else None


def _has_no_reader(number: int) -> bool:
    poll = select.poll()
    poll.register(number, 0)
    return any(events & select.POLLERR for _, events in poll.poll(0))


def drop_unwritten(*streams: TextIO) -> None:
    """Let the interpreter, which writes all buffers when it ends, write those that can't be written to nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        with contextlib.suppress(OSError):
            try:
                stream.flush()
                is_lost = _has_no_reader(stream.fileno())
            except OSError:
                is_lost = True
            if is_lost:
                os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
