"""A folder as one session: the session files of a job's ranks, or the partitions that a Dask cluster wrote.

Their rows are copied into a temporary session file; the folder itself does not change.
"""

from __future__ import annotations

import functools
import re
import weakref
from pathlib import Path

from ..errors import NotASession
from ..storage.data import SessionData
from ..storage.run_identity import identify_process
from ..storage.session_files import remove_temporary, temporary_file
from ..storage.store import Store
from ..version import __version__
from .followed_files import FollowedFiles
from .log_session import MARKS

_NUMBER = re.compile(r"\d+")


def has_sessions(folder: Path) -> bool:
    """Return True for a folder with session files or partitions in it."""
    return folder.is_dir() and (bool(find_sessions(folder)) or has_partitions(folder))


def has_partitions(folder: Path) -> bool:
    """Return True for a folder with at least one complete partition."""
    return next((folder / MARKS).glob("[0-9]*.json"), None) is not None and (folder / "events").is_dir()


def open_folder(folder: Path) -> SessionData:
    """Open all partitions, or all session files, of a folder as one session.

    While processes write the session files, the session keeps up with them and with files that appear later. A file
    that can't be read is skipped and reported in `sources`. CompilediagError, in one line, if nothing can be read.
    """
    title = " ".join(folder.absolute().name.split())
    if has_partitions(folder):
        return _read_partitions(folder, title)
    if not find_sessions(folder):
        raise NotASession(f"{folder} contains neither session files (*.cdiag) nor partitions")
    return FollowedFiles(title, functools.partial(find_sessions, folder))


def find_sessions(folder: Path) -> list[Path]:
    """Return the session files of a folder, rank-2 before rank-10."""
    found = [file for file in folder.glob("*.cdiag") if file.is_file() and not file.name.startswith(".")]
    return sorted(found, key=lambda file: ([int(n) for n in _NUMBER.findall(file.stem)], file.name))


def _read_partitions(folder: Path, title: str) -> SessionData:
    """Copy all partitions into a temporary session file, which is removed with what is returned."""
    from .dask.partitions import add_partitions

    file = temporary_file()
    try:
        meta = {"compilediag_version": __version__, "title": title, "detail": "full", **identify_process()}
        store = Store.create(file, meta)
        try:
            add_partitions(store, folder)
        finally:
            store.close()
        data = SessionData(file)
    except BaseException:
        remove_temporary(file)
        raise
    weakref.finalize(data, remove_temporary, file)
    return data
