"""What a path that a user gives is: a session, logs, a script, or something else. Every command and function that reads
a file asks `check_input` first, so a wrong file is always the same one-line error, and nothing is read or written.

The content decides, because sessions and logs may have any name. Only files that name another format (`.py`, `.ipynb`,
`.html`) are believed by name.
"""

from __future__ import annotations

import enum
import os
import shlex
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CompilediagError, WrongInput
from ..storage.store import SESSION_FILE, SQLITE, is_session
from ..system.files import check_output
from ..system.interrupts import pass_on

if TYPE_CHECKING:
    # Imported where they are used: a script that is recorded starts without them.
    from ..decode.records.trace_log import Record
    from .log_files import LogStream

PathLike = str | os.PathLike[str]

#: The first record of a log is searched for in this many bytes: a log may begin in the middle of a long record.
MAX_SEARCHED = 256 << 20
#: Bytes at the start of a file that show which format it has.
HEAD = 4096
#: Names of the streams that a shell opens for a program, as in `compilediag run <(make_script)`.
STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/self/fd/")


class InputKind(enum.Enum):
    """What a path is."""

    #: A session file, or a folder with session files or partitions.
    SESSION = enum.auto()
    #: A log with at least one record, or a folder with at least one such log.
    LOGS = enum.auto()
    SCRIPT = enum.auto()
    #: Text of no known format: Python runs it as a script.
    TEXT = enum.auto()
    #: A pipe that the shell opened, which can be read once.
    STREAM = enum.auto()
    #: A file of no bytes: a script that does nothing, the log of a rank that compiled nothing, a session that begins.
    EMPTY = enum.auto()
    #: A folder with neither sessions nor logs.
    FOLDER = enum.auto()
    MISSING = enum.auto()
    OTHER = enum.auto()


#: How an error asks for what is read.
WANTED = {
    InputKind.SESSION: "a session (.cdiag)",
    InputKind.LOGS: "a TORCH_TRACE log",
    InputKind.SCRIPT: "a Python script",
}


@dataclass(frozen=True)
class FoundInput:
    """A path and what it is: `what` continues the sentence that begins with the path, `instead` says what to do."""

    path: PathLike
    kind: InputKind
    what: str
    instead: str = ""

    def make_error(self, *accepted: InputKind) -> WrongInput:
        """The error for a path that is none of the accepted kinds."""
        wanted = " or ".join(WANTED[kind] for kind in accepted if kind in WANTED)
        if self.kind is InputKind.FOLDER and InputKind.SCRIPT in accepted:
            return WrongInput(f"{os.fspath(self.path)} {self.what}; pass {wanted}")
        return WrongInput(f"{os.fspath(self.path)} {self.what}; {self.instead or f'pass {wanted}'}")


def check_input(path: PathLike, *accepted: InputKind) -> FoundInput:
    """Return what is at `path`. WrongInput, in one line, if it is of no accepted kind; CompilediagError if it can't be
    read.
    """
    found = identify_input(path)
    if found.kind in accepted:
        return found
    if found.kind is InputKind.SESSION and not Path(path).is_dir():
        from ..storage.store import Store

        Store.open(Path(path)).connection.close()  # Raises for a file of another program.
    raise found.make_error(*accepted)


def check_session_output(path: PathLike) -> None:
    """Check that a session can be written at `path`, without writing it; CompilediagError if it cannot."""
    check_output(path, SESSION_FILE)


def check_logs(paths: Iterable[PathLike]) -> None:
    """Check that each path is a log or a folder with logs. Empty logs pass beside others: a rank may compile nothing.

    WrongInput, in one line, if a path is something else, or if all are empty.
    """
    found = [check_input(path, InputKind.LOGS, InputKind.EMPTY) for path in paths]
    if found and all(one.kind is InputKind.EMPTY for one in found):
        raise found[0].make_error(InputKind.LOGS)


def identify_input(path: PathLike) -> FoundInput:
    """Return what is at `path`; never waits for a pipe, or reads a device. CompilediagError if it can't be read."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return FoundInput(path, InputKind.MISSING, "does not exist")
    except OSError as error:
        pass_on(error)
        raise _make_unreadable(path, error) from None
    if stat.S_ISDIR(mode):
        return _identify_folder(Path(path))
    if stat.S_ISREG(mode):
        return _identify_file(Path(path))
    if os.fspath(path).startswith(STREAMS) and not stat.S_ISBLK(mode):
        return FoundInput(path, InputKind.STREAM, "is a pipe, and its content can be read only once")
    names = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}
    return FoundInput(path, InputKind.OTHER, f"is {names.get(stat.S_IFMT(mode), 'a device')}")


def _identify_folder(folder: Path) -> FoundInput:
    from .folders import find_sessions, has_partitions
    from .log_files import walk_logs

    if find_sessions(folder) or has_partitions(folder):
        instead = f"`compilediag plan {_quote(folder)}` shows what to change"
        return FoundInput(folder, InputKind.SESSION, "is a folder with sessions", instead)
    logs = sorted(walk_logs(folder))
    if any(map(_has_records, logs)):
        instead = f"`compilediag ingest {_quote(folder)} -o run.cdiag` makes a session of them"
        return FoundInput(folder, InputKind.LOGS, "is a folder with TORCH_TRACE logs", instead)
    instead = f"run the program with TORCH_TRACE={_quote(folder)} to write logs, or with `compilediag run`"
    what = "has log files without records of TORCH_TRACE" if logs else "contains no logs and no sessions (*.cdiag)"
    return FoundInput(folder, InputKind.FOLDER, what, instead)


def _has_records(log: Path) -> bool:
    """False for a log that can't be read, too: which one that is, is reported when all of them are read."""
    from .log_files import open_log

    try:
        with open_log(log) as stream:
            return _find_record(stream) is not None
    except (CompilediagError, OSError) as error:
        pass_on(error)
        return False


def _identify_file(file: Path) -> FoundInput:
    from .log_files import LogStream

    quoted = _quote(file)
    try:
        if is_session(file):
            instead = f"`compilediag plan {quoted}` shows what to change"
            return FoundInput(file, InputKind.SESSION, "is a compilediag session", instead)
        if (named := _identify_name(file)) is not None:
            return named
        with LogStream(file) as stream:
            first = stream.read(HEAD)
            is_log = stream.stopped is None and _find_record(stream, first) is not None
            is_packed, stopped = stream.is_compressed, stream.stopped
    except OSError as error:
        pass_on(error)
        raise _make_unreadable(file, error) from None
    if is_log:
        instead = f"`compilediag ingest {quoted} -o run.cdiag` makes a session of it"
        return FoundInput(file, InputKind.LOGS, "is a TORCH_TRACE log", instead)
    if is_packed:
        what = "is a compressed file without records of TORCH_TRACE"
        if first.startswith(SQLITE):
            return FoundInput(file, InputKind.OTHER, "is a compressed session", "unpack it first")
        return FoundInput(file, InputKind.OTHER, f"has {stopped}" if stopped else what)
    return _identify_content(file, first)


def _identify_name(file: Path) -> FoundInput | None:
    """What a file is by its suffix; None if that does not show it."""
    suffix = file.suffix.lower()
    if suffix in (".py", ".pyw"):
        return _make_script(file)
    if suffix == ".ipynb":
        instead = (
            "record its cells with `%load_ext compilediag` and `%compilewatch` in its first cell, or make a script of "
            f"it: jupyter nbconvert --to script {_quote(file)}"
        )
        return FoundInput(file, InputKind.OTHER, "is a Jupyter notebook", instead)
    if suffix == ".toml":
        return FoundInput(file, InputKind.TEXT, "is a TOML file")
    return _make_page(file) if suffix in (".html", ".htm") else None


def _identify_content(file: Path, head: bytes) -> FoundInput:
    """What a file is that has no records, by its first bytes."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not head:
        return FoundInput(file, InputKind.EMPTY, "is empty")
    if b"\0" in head:
        return FoundInput(file, InputKind.OTHER, "is a binary file")
    if text.startswith(b"#!") and b"python" in text.partition(b"\n")[0]:
        return _make_script(file)
    if text[:200].lower().startswith((b"<!doctype html", b"<html")):
        return _make_page(file)
    if text.startswith((b"{", b"[")):
        return FoundInput(file, InputKind.OTHER, "is a JSON file")
    return FoundInput(file, InputKind.TEXT, "is a text file without records of TORCH_TRACE")


def _make_page(file: Path) -> FoundInput:
    return FoundInput(file, InputKind.OTHER, "is an HTML page", "use the session (.cdiag) that a report is made from")


def _make_script(file: Path) -> FoundInput:
    return FoundInput(file, InputKind.SCRIPT, "is a Python script", f"record it with `compilediag run {_quote(file)}`")


def _find_record(stream: LogStream, first: bytes = b"") -> Record | None:
    """The first record of a log; None if there is none in what is searched."""
    from ..decode.records.trace_log import Record, parse_records

    return next((read for read in parse_records(_SearchedStream(stream, first)) if isinstance(read, Record)), None)


class _SearchedStream:
    """The beginning of a log whose first bytes were read already."""

    def __init__(self, stream: LogStream, first: bytes):
        self._stream, self._first, self._left = stream, first, MAX_SEARCHED

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, none at the end of what is searched."""
        data, self._first = self._first, b""
        data = data or self._stream.read(min(size, self._left))
        self._left -= len(data)
        return data


def _make_unreadable(path: PathLike, error: OSError) -> WrongInput:
    return WrongInput(f"{os.fspath(path)} can't be read: {error.strerror or error}; check its permissions")


def _quote(path: Path) -> str:
    return shlex.quote(os.fspath(path))
