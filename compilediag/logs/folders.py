"""A folder as one session: the session files of a job's ranks, or the partitions that a Dask cluster wrote.

Their rows are copied into a temporary session file; the folder itself does not change. Of session files that other
processes may be writing, all rows are copied when the folder is opened, and what is new whenever it is read, until no
process writes any more. No connection to them stays open: SQLite could not remove the side files of a session that
somebody has open. Whether a file has changed is seen from its size and time.
"""

from __future__ import annotations

import functools
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CompilediagError, NotASession
from ..events import SourceStatus
from ..storage.data import SessionData, find_last_id
from ..storage.merging import CopiedPart, add_part
from ..storage.session_files import remove_temporary, temporary_file
from ..storage.store import States, Store
from ..system.program import identify_process, is_of_this_machine, is_recorded_elsewhere, is_this_process
from ..version import __version__
from .log_session import MARKS

_NUMBER = re.compile(r"\d+")
#: The source that says which files were read.
SOURCE = "files"
#: Seconds between two looks at the files at least, and the share of the time that they may take.
INTERVAL_S, SHARE = 0.1, 10
#: What the session has of the first file's meta.
SHARED_META = ("torch_version", "python_version", "platform", "device", "my_code", "library_folders", "program")
#: inode, time and size of a file and of its -wal file.
Signature = tuple[tuple[int, int, int] | None, ...]


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
        # All partitions in a temporary session file, which is removed with what is returned.
        from .dask import add_partitions

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
    if not find_sessions(folder):
        raise NotASession(f"{folder} contains neither session files (*.cdiag) nor partitions")
    return FollowedFiles(title, functools.partial(find_sessions, folder))


def find_sessions(folder: Path) -> list[Path]:
    """Return the session files of a folder, rank-2 before rank-10."""
    found = [file for file in folder.glob("*.cdiag") if file.is_file() and not file.name.startswith(".")]
    return sorted(found, key=lambda file: ([int(n) for n in _NUMBER.findall(file.stem)], file.name))


# Session files that other processes may be writing


@dataclass
class FollowedFile:
    """One of the files: what its meta says, how far it is copied, and what its processes compile now."""

    path: Path
    signature: Signature = ()
    copied: CopiedPart = field(default_factory=CopiedPart)
    meta: dict[str, Any] = field(default_factory=dict)
    progress: dict[int, States] = field(default_factory=dict)
    #: Its processes, the ranks of those that have one, and those with events that have none.
    pids: set[int] = field(default_factory=set)
    ranks: dict[int, int] = field(default_factory=dict)
    unranked: set[int] = field(default_factory=set)
    #: True while the process that began it runs and has not ended its recording.
    is_live: bool = False

    @property
    def pid(self) -> int | None:
        """The process that began the file."""
        return self.meta.get("pid")

    @property
    def began_ns(self) -> int:
        """When its recording began, in ns since 1970; 0 if that is not known."""
        return self.meta.get("created_ns") or 0

    @property
    def ended_ns(self) -> int | None:
        """When its recording ended; None if it runs, or its process was killed."""
        return self.meta.get("stopped_ns")

    @property
    def was_killed(self) -> bool:
        """True if its process ended without ending its recording. What runs on another machine is not known here."""
        is_open = not self.is_live and self.meta.get("stopped_ns") is None
        return is_open and is_of_this_machine(self.meta) and not is_this_process(self.meta)


class FollowedFiles(SessionData):
    """The data of all session files that `find` lists, also of those that appear later.

    A file that can't be read is skipped and reported in `sources`. CompilediagError, in one line, if none can be read.
    """

    def __init__(self, title: str, find: Callable[[], Sequence[Path]]):
        self.files: dict[Path, FollowedFile] = {}
        self._find = find
        self._unread: dict[Path, tuple[Signature, Exception]] = {}
        self._reported: tuple[object, ...] = ()
        self._due = 0.0
        self._refreshing = threading.RLock()
        self.is_live = False
        file = temporary_file()
        weakref.finalize(self, remove_temporary, file)
        meta = {"compilediag_version": __version__, "title": title, "detail": "full", **identify_process()}
        self._writer = Store.create(file, meta)
        try:
            self._copy_news()
            if not self.files:
                why = next((error for _, error in self._unread.values()), f"{title} has no session files")
                raise why if isinstance(why, CompilediagError) else CompilediagError(str(why))
            if not self.is_live:
                self._writer.close()
            super().__init__(file)
        except BaseException:
            self._writer.close()
            raise

    @property
    def state(self) -> str:
        """watching while a process of this machine writes one of the files, then loaded."""
        return "watching" if self.is_live else "loaded"

    def flush(self, statuses: bool = False) -> None:
        """Copy what is new, if it was not just done and somebody still writes. While a thread reads in a settled block,
        nothing is.
        """
        if self._settled.active:
            return
        with self._refreshing:
            if not self.is_live or time.monotonic() < self._due:
                return
            began = time.monotonic()
            if self._copy_news():
                self.reread_rows()
            if not self.is_live:
                self._writer.close()
            took = time.monotonic() - began
            self._due = began + took + max(INTERVAL_S, SHARE * took)

    def _copy_news(self) -> bool:
        """Copy what is new in all files; True if earlier rows have got their rank."""
        before = self._list_progress()
        for file in self.files.values():
            file.is_live = False  # It stays so for a file that is gone.
        has_ranked = [self._copy_file(path) for path in self._find()]
        self.is_live = any(file.is_live for file in self.files.values())
        self._report_files()
        if self._list_progress() != before:
            self._writer.set_progress({pid: s for states in self._list_progress() for pid, s in states.items()})
        return any(has_ranked)

    def _list_progress(self) -> list[dict[int, States]]:
        return [file.progress for file in self.files.values() if file.is_live]

    def _copy_file(self, path: Path) -> bool:
        """Copy what is new in one file; True if its earlier rows have got their rank."""
        signature: Signature = (_stat(path), _stat(path.with_name(f"{path.name}-wal")))
        file = self.files.get(path)
        before, now = file.signature[0] if file is not None and file.signature else None, signature[0]
        # A rank that was started again begins a new file of the same name.
        if file is None or (before and now and before[0] != now[0]):
            file = FollowedFile(path)
        # This comes first: what a process wrote before it ended is then copied below.
        file.is_live = is_recorded_elsewhere(file.meta)
        is_known = path in self._unread and self._unread[path][0] == signature
        if is_known or signature == file.signature:
            return False
        try:
            self._read_file(file)
        except (CompilediagError, sqlite3.Error) as error:
            self._unread[path] = (signature, error)
            return False
        file.signature = signature
        self._unread.pop(path, None)
        self.files[path] = file
        # Events before torch.distributed began have no rank; they get that of their process.
        ranked = file.unranked & file.ranks.keys()
        for pid in ranked:
            self._writer.set_rank(pid, file.ranks[pid])
        file.unranked -= ranked
        return bool(ranked)

    def _read_file(self, file: FollowedFile) -> None:
        """Copy what is new in a file that has changed."""
        store = Store.open(file.path)
        try:
            with store.snapshot():
                meta, progress = store.meta(), store.progress_by_process()
        finally:
            store.connection.close()
        file.is_live = is_recorded_elsewhere(meta)
        last = find_last_id(self._writer, "events")
        file.copied = add_part(self._writer, file.path, file.copied)
        file.meta, file.progress = meta, progress
        query = "SELECT DISTINCT pid, rank FROM events WHERE id > ? AND pid IS NOT NULL"
        for pid, rank in self._writer.connection.execute(query, (last,)):
            file.pids.add(pid)
            if rank is None:
                file.unranked.add(pid)
            else:
                file.ranks[pid] = rank

    def _report_files(self) -> None:
        """Store which files were read, and what all of them have in common, if that has changed."""
        metas = [file.meta for file in self.files.values()]
        unread = [str(error) for _, error in self._unread.values()]
        count = len(self.files.keys() | self._unread.keys())
        report = (len(metas), *unread, self.is_live)
        if not metas or report == self._reported:
            return
        self._reported, now = report, time.time_ns()
        reason = f"read from {len(metas)} of {count} files" + "".join(f"; {why}" for why in unread)
        status, code = ("failed", "unread_files") if unread else ("active", None)
        state = SourceStatus(
            time_ns=now, name=SOURCE, status=status, reason_code=code, reason=reason, dropped=len(unread)
        )
        self._writer.append([state])
        self._writer.set_meta(
            **{name: metas[0].get(name) for name in SHARED_META},
            detail="lean" if any(meta.get("detail") == "lean" for meta in metas) else "full",
            created_ns=min((meta["created_ns"] for meta in metas if meta.get("created_ns")), default=now),
            stopped_ns=None if self.is_live else max((meta.get("stopped_ns") or now for meta in metas), default=now),
        )


def _stat(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
