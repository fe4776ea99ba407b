"""A folder as one session: the files of a job's ranks, or the partitions that a cluster wrote (`logs.partitions`).

What is in it is copied into a temporary session, a file after the other, as it is at that moment; the folder stays as
it is.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompilediagError, NotASession
from ..events import SourceStatus
from ..storage.merging import add_part
from ..storage.store import Store, remove, temporary_file
from .partitions import add_partitions, has_partitions

if TYPE_CHECKING:
    from ..session import Session

#: The source that says which files were read.
SOURCE = "files"
_NUMBER = re.compile(r"\d+")


def is_of_sessions(folder: Path) -> bool:
    """True of a folder with sessions or partitions in it."""
    return folder.is_dir() and (bool(_sessions(folder)) or has_partitions(folder))


def load_folder(folder: Path) -> Session:
    """All partitions, or all sessions, of a folder as one. A session that can't be read is left out, and said to be.

    CompilediagError, in one line, if nothing can be read.
    """
    from ..session import Session

    parts = _sessions(folder)
    if not parts and not has_partitions(folder):
        raise NotASession(f"{folder} has neither sessions (*.cdiag) nor partitions in it")
    file = temporary_file()
    try:
        store = Store.create(file, _meta(folder))
        try:
            add_partitions(store, folder) if has_partitions(folder) else _add_sessions(store, parts)
        finally:
            store.close()
        session = Session(file)
    except BaseException:
        remove(file)
        raise
    weakref.finalize(session, remove, file)
    return session


def _sessions(folder: Path) -> list[Path]:
    """The session files of a folder, rank-2 before rank-10."""
    found = [file for file in folder.glob("*.cdiag") if file.is_file() and not file.name.startswith(".")]
    return sorted(found, key=lambda file: ([int(n) for n in _NUMBER.findall(file.stem)], file.name))


def _add_sessions(store: Store, parts: list[Path]) -> None:
    """Add what can be read. CompilediagError if nothing can."""
    metas: list[dict[str, Any]] = []
    unread: list[str] = []
    for part in parts:
        try:
            meta = _meta_of(part)
            add_part(store, part)
            metas.append(meta)
        except CompilediagError as error:
            unread.append(str(error))
    if not metas:
        raise CompilediagError(unread[0])
    now = time.time_ns()
    said = f"read from {len(metas)} of {len(parts)} files" + "".join(f"; {why}" for why in unread)
    status = "failed" if unread else "active"
    store.append([SourceStatus(time_ns=now, name=SOURCE, status=status, reason=said, dropped=len(unread))])
    store.set_meta(
        **{name: metas[0].get(name) for name in ("torch_version", "python_version", "platform")},
        detail="lean" if any(meta.get("detail") == "lean" for meta in metas) else "full",
        created_ns=min((meta["created_ns"] for meta in metas if meta.get("created_ns")), default=now),
        stopped_ns=max((meta.get("stopped_ns") or now for meta in metas), default=now),
    )


def _meta_of(part: Path) -> dict[str, Any]:
    store = Store.open(part)
    try:
        return store.meta()
    finally:
        store.connection.close()


def _meta(folder: Path) -> dict[str, Any]:
    from .. import __version__

    title = " ".join(folder.absolute().name.split())
    return {"compilediag_version": __version__, "title": title, "detail": "full", "pid": os.getpid()}
