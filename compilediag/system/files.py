"""Check and write output files: reports, exports, diffs.

What is written can contain source code and values of the user's program, so files are readable by their owner alone
(mode 0600), and folders that are created can be entered by their owner alone (0700). Existing folders stay as they are.
So are the folders of the user where compilediag keeps something of a run for later ones.
"""

from __future__ import annotations

import functools
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..errors import CompilediagError
from .interrupts import ignore, pass_on

#: Bytes of a file that show what it is.
_HEAD = 4096


@dataclass(frozen=True)
class OutputKind:
    """A kind of file that compilediag writes. `is_own`: whether an existing file that is not empty is one."""

    name: str
    is_own: Callable[[Path], bool]


def _begins_with(pattern: bytes) -> Callable[[Path], bool]:
    expression = re.compile(pattern, re.DOTALL)

    def is_own(file: Path) -> bool:
        with file.open("rb") as opened:
            return expression.match(opened.read(_HEAD)) is not None

    return is_own


def _is_parquet_table(file: Path) -> bool:
    """The names of columns are at the end of a Parquet file."""
    with file.open("rb") as opened:
        opened.seek(-min(file.stat().st_size, 1 << 18), os.SEEK_END)
        end = opened.read()
    return end.endswith(b"PAR1") and b"event_id" in end


HTML_PAGE = OutputKind("an HTML page of compilediag", _begins_with(rb"<!doctype html>.{1,600}?<title>compilediag\b"))
WARMUP = OutputKind("a warm-up script of compilediag", _begins_with(rb'"""[^\n]+\n\nWritten by compilediag '))
REPRO = OutputKind("a script of compilediag", _begins_with(rb'"""The guard of recompile \d+ fails again'))
TRACE = OutputKind("a trace that compilediag exported", _begins_with(rb'{"otherData": {"writer": "compilediag'))
SPEEDSCOPE = OutputKind("a profile that compilediag exported", _begins_with(rb'{"exporter": "compilediag'))
MARKDOWN = OutputKind("Markdown that compilediag exported", _begins_with(rb"\*\*torch\.compile: "))
SKILL = OutputKind("instructions of compilediag", _begins_with(rb"---\nname: compilediag\n"))
SARIF = OutputKind("SARIF that compilediag exported", _begins_with(rb'\{.{1,200}"name": "compilediag"'))
CSV = OutputKind("a table that compilediag exported", _begins_with(rb"compile_id,[^\n]*\bevent_id,"))
PARQUET = OutputKind("a table that compilediag exported", _is_parquet_table)


def make_absolute(path: str | os.PathLike[str]) -> Path:
    """The absolute path. CompilediagError if it is relative and the working directory was deleted."""
    try:
        return Path(path).absolute()
    except FileNotFoundError as error:
        pass_on(error)
        raise CompilediagError(
            f"{path} is relative and the working directory was deleted; use an absolute path"
        ) from None


def find_working_folder() -> str | None:
    """The working directory of this process; None if it was deleted."""
    try:
        return os.getcwd()
    except OSError as error:
        pass_on(error)
        return None


def check_replaceable(path: str | os.PathLike[str], kind: OutputKind) -> None:
    """Check that what is written at `path` replaces nothing, an empty file, or a file of this kind. CompilediagError if
    another file is there, OSError if it can't be read. A folder is never replaced by a file.
    """
    file = Path(path)
    if not file.exists() or file.is_dir():
        return
    if not (file.is_file() and (file.stat().st_size == 0 or kind.is_own(file))):
        raise CompilediagError(f"{path} already exists and is not {kind.name}; choose another path")


def check_output(path: str | os.PathLike[str], kind: OutputKind) -> None:
    """Check that a file of this kind can be written at `path`, without writing it; CompilediagError if it cannot."""
    file = Path(path)
    if file.is_dir():
        raise CompilediagError(f"can't write {path}: it is a folder")
    if not file.parent.is_dir():
        raise CompilediagError(f"can't write {path}: there is no folder {file.parent}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise CompilediagError(f"can't write {path}: no permission")
    try:
        if not file.is_symlink():  # The link is replaced, and the file stays.
            check_replaceable(path, kind)
    except OSError as error:
        pass_on(error)
        raise CompilediagError(f"can't write {path}: {error.strerror}") from None


def create_folder(folder: Path) -> None:
    """Create a folder for its owner alone, unless it exists. CompilediagError if it can't be created."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        pass_on(error)
        raise CompilediagError(f"can't write {folder}: {error.strerror}") from None


def open_private(path: str, flags: int) -> int:
    """An `opener` for `open`: a file that it creates is readable by its owner alone, and no link is followed."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def write_file(target: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, for its owner alone: an existing file, or link, is replaced only when the new
    one is complete. CompilediagError if it can't be written.
    """
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=".compilediag-", delete=False) as file:
            temporary = Path(file.name)
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        pass_on(error)
        raise CompilediagError(f"can't write {target}: {error.strerror or error}") from None


# What is taken is noted where its owner finds it, in one call that runs no Python code: no interrupt comes between.


def create_private(file: Path, made: list[object] | None = None) -> None:
    """Create an empty file that only its owner can read. FileExistsError if the path exists, also as a link.

    Once there is one, `made` is not empty.
    """
    opened = map(os.open, (file,), (os.O_RDWR | os.O_CREAT | os.O_EXCL,), (0o600,))
    (made if made is not None else []).extend(map(os.close, opened))


def open_into(descriptors: list[int], file: Path, flags: int, folder: int | None = None) -> None:
    """Open a file and add its descriptor to a list. `folder`: the open folder that a relative path begins in."""
    descriptors.extend(map(functools.partial(os.open, dir_fd=folder), (file,), (flags,)))


def close_all(descriptors: list[int]) -> None:
    """Close descriptors. Called again after an interrupt, it goes on."""
    while descriptors:
        with ignore(OSError):
            next(map(os.close, map(descriptors.pop, (-1,))))


# The folders of the user

#: The variable that switches off what is kept in them.
HISTORY, OFF = "COMPILEDIAG_HISTORY", ("off", "0", "none")


def find_user_folder(variable: str, default: str) -> Path | None:
    """The folder `compilediag` in that of an XDG variable, or in `~/default`; None for a user without a home."""
    named = os.environ.get(variable, "")
    try:
        return Path(named if os.path.isabs(named) else Path.home() / default) / "compilediag"
    except RuntimeError:
        return None


def is_history_off() -> bool:
    """True if nothing of a run is to be kept for later ones."""
    return os.environ.get(HISTORY, "").lower() in OFF
