"""A folder as one session: the session files of a job's ranks, or the partitions that a Dask cluster wrote.

Their rows are copied into a temporary session file, as they are at that moment; the folder itself does not change.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from ..errors import CompilediagError, NotASession
from ..events import SourceStatus
from ..storage.merging import add_part
from ..storage.store import Store, remove, temporary_file
from ..version import __version__
from .log_session import MARKS

#: The source that says which files were read.
SOURCE = "files"
_NUMBER = re.compile(r"\d+")


def has_sessions(folder: Path) -> bool:
    """Return True for a folder with session files or partitions in it."""
    return folder.is_dir() and (bool(_find_sessions(folder)) or has_partitions(folder))


def has_partitions(folder: Path) -> bool:
    """Return True for a folder with at least one complete partition."""
    return next((folder / MARKS).glob("[0-9]*.json"), None) is not None and (folder / "events").is_dir()


def read_folder(folder: Path) -> Path:
    """Copy all partitions, or all session files, of a folder into one temporary session file, which is returned.

    A session file that can't be read is skipped and reported in `sources`. CompilediagError, in one line, if nothing
    can be read.
    """
    parts = _find_sessions(folder)
    if not parts and not has_partitions(folder):
        raise NotASession(f"{folder} contains neither session files (*.cdiag) nor partitions")
    file = temporary_file()
    try:
        store = Store.create(file, _make_meta(folder))
        try:
            if has_partitions(folder):
                from .dask.partitions import add_partitions

                add_partitions(store, folder)
            else:
                _add_sessions(store, parts)
        finally:
            store.close()
    except BaseException:
        remove(file)
        raise
    return file


def _find_sessions(folder: Path) -> list[Path]:
    """Return the session files of a folder, rank-2 before rank-10."""
    found = [file for file in folder.glob("*.cdiag") if file.is_file() and not file.name.startswith(".")]
    return sorted(found, key=lambda file: ([int(n) for n in _NUMBER.findall(file.stem)], file.name))


def _add_sessions(store: Store, parts: list[Path]) -> None:
    """Add the session files that can be read. CompilediagError if none can."""
    metas: list[dict[str, Any]] = []
    unread: list[str] = []
    for part in parts:
        try:
            meta = _read_meta(part)
            add_part(store, part)
            metas.append(meta)
        except CompilediagError as error:
            unread.append(str(error))
    if not metas:
        raise CompilediagError(unread[0])
    now = time.time_ns()
    reason = f"read from {len(metas)} of {len(parts)} files" + "".join(f"; {why}" for why in unread)
    status, code = ("failed", "unread_files") if unread else ("active", None)
    state = SourceStatus(time_ns=now, name=SOURCE, status=status, reason_code=code, reason=reason, dropped=len(unread))
    store.append([state])
    store.set_meta(
        **{name: metas[0].get(name) for name in ("torch_version", "python_version", "platform", "device")},
        detail="lean" if any(meta.get("detail") == "lean" for meta in metas) else "full",
        created_ns=min((meta["created_ns"] for meta in metas if meta.get("created_ns")), default=now),
        stopped_ns=max((meta.get("stopped_ns") or now for meta in metas), default=now),
    )


def _read_meta(part: Path) -> dict[str, Any]:
    store = Store.open(part)
    try:
        return store.meta()
    finally:
        store.connection.close()


def _make_meta(folder: Path) -> dict[str, Any]:
    title = " ".join(folder.absolute().name.split())
    return {"compilediag_version": __version__, "title": title, "detail": "full", "pid": os.getpid()}
