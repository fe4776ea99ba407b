"""The file that a recording writes to: which one a path names, and whether another process records to it already.

A path at which no session can be (no such folder, a file that is no session, no permission) is an error. A disk that
fails is none: the program goes on, and its session is lost.
"""

from __future__ import annotations

import errno
import os
import platform
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from . import sources
from .errors import CompilediagError
from .files import check_replaceable, make_absolute
from .interrupts import pass_on
from .storage.session_files import (
    OF_THE_PATH,
    SESSION_FILE,
    Taken,
    make_temporary,
    name_temporary,
    remove,
    remove_abandoned,
)
from .storage.store import Store

#: The file of a session that has none: it was to be a temporary one.
NO_FILE = Path("session.cdiag")


@dataclass(frozen=True)
class TargetFile:
    """`is_joined`: another process records to it, and this one joins. `problem`: why it can't be written, in words."""

    path: Path
    is_joined: bool = False
    problem: str | None = None


def choose_file(path: str | os.PathLike[str] | None, taken: Taken) -> TargetFile:
    """The file to record to, free to be made. CompilediagError if no session can be meant to be there.

    Without a path it is a temporary one, which `taken` has before its folder is made.
    """
    file = NO_FILE
    remove_abandoned(taken.descriptors)
    try:
        if path is None:
            taken.temporary.append(name_temporary())
            make_temporary(taken.temporary[0])
        file = taken.temporary[0] if path is None else _find_file(path)
        if path is not None and is_recorded_by_another(file):
            return TargetFile(file, is_joined=True)
        remove(file)
        return TargetFile(file)
    except OSError as error:
        pass_on(error)
        if path is not None and error.errno in OF_THE_PATH:
            raise CompilediagError(f"{path} can't be written: {error.strerror}") from None
        return TargetFile(file, problem=error.strerror or str(error))


def _find_file(path: str | os.PathLike[str]) -> Path:
    """The file that a path names. OSError if it can't be looked up."""
    file = _file_in_folder(path) or make_absolute(path)
    if not file.parent.is_dir():
        raise CompilediagError(f"{file} can't be written: there is no folder {file.parent}")
    check_replaceable(file, SESSION_FILE)
    return file


def _file_in_folder(path: str | os.PathLike[str]) -> Path | None:
    """The file of this process where `path` is a folder, which is made if need be; None where it is none.

    It is named by the rank. Without a rank, because torch.distributed has not begun and no launcher set RANK, it is
    named by the host and the pid.
    """
    folder = make_absolute(path)
    if not folder.is_dir() and not os.fspath(path).endswith(("/", os.sep)):
        return None
    rank = sources.rank()
    file = folder / (f"{platform.node()}-{os.getpid()}.cdiag" if rank is None else f"rank-{rank}.cdiag")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        pass_on(error)
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
            raise CompilediagError(f"{folder} can't be made: {error.strerror}") from None
        raise
    return file


def is_recorded_by_another(file: Path) -> bool:
    """True if another living process records to this file: so a spawned worker watches into its parent's session."""
    try:
        store = Store.open(file)
    except CompilediagError:
        return False
    try:
        return store.is_recorded_elsewhere()
    except sqlite3.Error:
        return False  # A damaged session is replaced.
    finally:
        store.connection.close()
