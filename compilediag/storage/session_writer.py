"""Writes the batches of a recording to its session file. Nothing that the disk does is raised: it is described.

A batch that can't be written now (a full disk, another process's lock) waits for the next one, up to a limit of
memory. If it still waits at the end, or if the file was removed, replaced or destroyed, the session is lost: `lost`
says why, and what waits is for the copy of the session in memory.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import secrets
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..events import Event, SourceStatus
from ..system.files import close_all, open_into
from ..system.interrupts import ignore, pass_on
from ..system.own_errors import log_debug
from .rows import Owner
from .session_files import OF_THE_PATH
from .store import RECORDED, States, Store, find_file_key

logger = logging.getLogger("compilediag")
#: Where the header of a SQLite file has its application id. A session's is random: another session has another one.
APPLICATION_ID = slice(68, 72)
#: What SQLite reports for the file or the disk, and not for a value that it can't store.
OF_THE_FILE = {
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FULL),
    *(sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_NOTADB),
}
#: Statements that are kept parsed: those of every batch. The others have some kB of text each and are mostly never used
#: again, because they differ in the number of rows.
STATEMENTS = 24
#: Those after which the file is no session any more.
FINAL = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
#: Those of another process that uses the file.
BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
#: Seconds that a batch waits for a lock, and all that is left at the end together.
LOCK_S, END_S = 0.5, 5.0
#: At most so many events, and bytes of texts, wait in memory for a file that can't be written.
MAX_WAITING_EVENTS, MAX_WAITING_BYTES = 50_000, 64 << 20


class FilePlace:
    """The file of a recording, which SQLite has open, from `open` to `close`, which also cleans up a failed `open`.

    Closing any descriptor of a file drops all locks that the process has on it, also those of SQLite; another process
    could then remove the -wal file. So the file is opened once, and closed after SQLite has closed it.
    """

    def __init__(self, path: Path):
        self.path = path
        #: One, while the file is open.
        self._descriptors: list[int] = []
        self._is_known = False
        self.key = (-1, -1)
        self._application_id = b""
        self._wal = Path(f"{path}-wal")
        #: Inode and bytes of the -wal file when it was last noted.
        self._noted_wal: tuple[int, int] | None = None

    def open(self) -> None:
        """Open the file; OSError if it can't be opened."""
        open_into(self._descriptors, self.path, os.O_RDONLY)
        found = os.fstat(self._descriptors[0])
        self.key = (found.st_dev, found.st_ino)
        self._application_id = self._read_application_id()
        RECORDED.add(self.key)
        self._is_known = True

    @property
    def identity(self) -> tuple[object, ...]:
        """What the file is, whatever its name is: equal in all processes."""
        return (*self.key, self._application_id)

    def describe_absence(self) -> str | None:
        """Why the file is not at its path any more; None if it is."""
        if not self._is_known:
            return None
        try:
            key = find_file_key(self.path)
        except OSError as error:
            pass_on(error)
            return None  # It can't be looked up now; SQLite's next write shows whether it is there.
        if key is None:
            return f"{self.path} was removed"
        return None if key == self.key else f"{self.path} was replaced"

    @property
    def is_overwritten(self) -> bool:
        """True if the file has the content of another one."""
        return self._is_known and self._read_application_id() != self._application_id

    def is_wal_cut(self, connection: sqlite3.Connection) -> bool:
        """True if the -wal file has lost something since it was noted that is not in the file either.

        A process that closes the file empties the -wal file, after it has copied it into the file. SQLite can copy it
        then, as there is nothing to copy, and it cannot where pages are missing.
        """
        before = self._noted_wal
        self.note_wal()
        if before is None or self._noted_wal is None or self._noted_wal[1] >= before[1]:
            return False
        try:
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            return True
        if is_busy:
            self._noted_wal = before  # Another process copies it: the next look decides.
        return False

    def note_wal(self) -> None:
        """Note how much the -wal file has."""
        self._noted_wal = None
        with ignore(OSError):  # There is none yet, or it was removed, and SQLite still has it open.
            found = os.stat(self._wal)
            self._noted_wal = found.st_ino, found.st_size

    def forget_wal(self) -> None:
        """The -wal file is removed when the last connection is closed, and the next one begins another."""
        self._noted_wal = None

    # How the connection to a file that is lost is closed. By itself, SQLite copies what is in the -wal file then.

    def close_damaged(self, connection: sqlite3.Connection) -> None:
        """Leave the file and its -wal file as they are, for whoever opens them next: while the file has another name,
        SQLite copies nothing into it.
        """
        aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        is_moved = False
        with ignore(OSError):
            os.rename(self.path, aside)
            is_moved = True
        try:
            connection.close()
        finally:
            if is_moved:
                os.rename(aside, self.path)

    def close_overwritten(self, connection: sqlite3.Connection) -> None:
        """Write nothing to a file that has another one's content now: SQLite copies nothing from an empty -wal file."""
        with ignore(OSError):
            os.truncate(self._wal, 0)
        connection.close()
        self._remove_wal()

    def close_elsewhere(self, connection: sqlite3.Connection) -> None:
        """Complete the file where it is now, if it has a name."""
        with ignore(OSError, sqlite3.Error):
            if self._descriptors and os.fstat(self._descriptors[0]).st_nlink:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        connection.close()
        self._remove_wal()

    def _remove_wal(self) -> None:
        """Remove the side files that were left: SQLite would take them for those of the file that has the path now."""
        with ignore(OSError):
            if self._noted_wal is not None and os.stat(self._wal).st_ino == self._noted_wal[0]:
                self._wal.unlink()
                Path(f"{self.path}-shm").unlink()

    def close(self) -> None:
        """Close the file, after all connections to it were closed."""
        RECORDED.discard(self.key)
        close_all(self._descriptors)

    def _read_application_id(self) -> bytes:
        try:
            return os.pread(self._descriptors[0], APPLICATION_ID.stop, 0)[APPLICATION_ID]
        except (OSError, IndexError) as error:
            pass_on(error)
            return self._application_id


@dataclass(frozen=True)
class Batch:
    """What is written in one transaction: events, texts as (digest, text) pairs, and what compiles now if it changed.

    `owner` is the rank and the pid of all events.
    """

    events: Sequence[Event]
    texts: Sequence[tuple[str, str]]
    progress: tuple[int, States] | None
    owner: Owner


@dataclass(frozen=True)
class Unwritten:
    """What the file of a lost session lacks: the last states of its sources, and the batches that waited."""

    states: tuple[SourceStatus, ...]
    batches: deque[Batch]


class SessionWriter:
    """Writes to the file at `path`, which must not exist; if `meta` is None, to the file that another process records.

    `lost`: why it is not opened at all.
    """

    def __init__(self, path: Path, meta: dict[str, Any] | None, lost: str | None = None):
        self.path = path
        #: Why nothing can be written any more; None while the file is there.
        self.lost: str | None = None
        #: Why the last batch could not be written; None if it could.
        self.problem: str | None = None
        #: What could not be written yet, the oldest first. Nothing is added once the session is lost.
        self.waiting: deque[Batch] = deque()
        #: True if the session is lost, but each of its events is in the file or waits.
        self.is_complete = False
        self._is_busy = False
        self._has_refused = False
        self._end: float | None = None
        self.store: Store | None = None
        self._place: FilePlace | None = None
        self._meta = meta
        self._is_owner = meta is not None
        self._has_warned = False
        if lost is not None:
            self.lose(lost)

    def open(self) -> None:
        """Open the file. If the disk fails, the session is lost. OSError if no file can be made at this path."""
        if self.lost is not None:
            return
        try:
            if self._meta is None:
                self.store = Store.open(self.path, writable=True, statements=STATEMENTS)
            else:
                self.store = Store.create(self.path, self._meta, statements=STATEMENTS)
            self._set_patience()
            self._place = FilePlace(self.path)
            self._place.open()
        except (OSError, sqlite3.Error, CompilediagError) as error:
            pass_on(error)
            if self._place is not None:
                self._place.close()
            self._place = None
            if isinstance(error, OSError) and error.errno in OF_THE_PATH:
                raise
            self.lose(self._describe(error))

    def begin_end(self) -> None:
        """From now on, everything together waits `END_S` for locks."""
        if self._end is None:
            self._end = time.monotonic() + END_S

    def _set_patience(self) -> None:
        if self.store is not None:
            left = LOCK_S if self._end is None else max(0.0, self._end - time.monotonic())
            self.store.connection.execute(f"PRAGMA busy_timeout={int(left * 1000)}")

    def write(self, batch: Batch) -> list[tuple[int, BaseException]]:
        """Write a batch, after those that wait; if the file can't be written now, it waits as well. What can never be
        written: how many events, and the error.
        """
        failed: list[tuple[int, BaseException]] = []
        if self._has_room(batch):
            self.waiting.append(batch)
        elif batch.events:
            self._has_refused = True
            failed.append((len(batch.events), sqlite3.OperationalError(self.problem)))
        store = self.check()
        if store is None:
            return failed
        if store.connection.in_transaction:  # An error has left it open.
            store.connection.rollback()
        if self._end is not None:
            self._set_patience()
        while self.waiting and self.store is not None:
            # One that an error of ours interrupts is not written twice.
            oldest = self.waiting.popleft()
            self.problem = None
            problem = self._write_one(store, oldest, failed)
            if problem is not None:
                self.waiting.appendleft(oldest)
                self._note_failure(problem)
                return failed
        if self.store is not None and self._place is not None:
            self._place.note_wal()
        return failed

    def _has_room(self, batch: Batch) -> bool:
        if not self.waiting:
            return True
        events = sum(len(waiting.events) + 1 for waiting in (*self.waiting, batch))
        size = sum(len(text) for waiting in (*self.waiting, batch) for _, text in waiting.texts)
        return events <= MAX_WAITING_EVENTS and size <= MAX_WAITING_BYTES

    def _write_one(self, store: Store, batch: Batch, failed: list[tuple[int, BaseException]]) -> sqlite3.Error | None:
        """Write a batch; why it has to wait, if it has to. What can never be written is added to `failed`."""
        try:
            append_batch(store, batch)
        except sqlite3.Error as error:
            if _is_of_the_file(error):
                return error
            failed += self._write_singly(store, batch, error)
        except BaseException as error:
            pass_on(error)
            failed += self._write_singly(store, batch, error)
        return None

    def _write_singly(self, store: Store, batch: Batch, why: BaseException) -> list[tuple[int, BaseException]]:
        """One event with a value that its column can't hold must not take the batch with it."""
        log_debug("compilediag: a batch is written one by one: %s", why)
        failed: list[tuple[int, BaseException]] = []
        texts, progress = batch.texts, batch.progress
        parts: list[list[Event]] = [*([event] for event in batch.events), []]
        for part in parts:
            try:
                append_batch(store, Batch(part, texts, None if part else progress, batch.owner))
                texts = ()
            except BaseException as error:
                pass_on(error)
                failed.append((len(part), error))
                if isinstance(error, sqlite3.Error) and _is_of_the_file(error):
                    self._note_failure(error)
        count = sum(count for count, _ in failed)
        if failed and count == len(batch.events):
            self.note_error(why)
        if count:
            self._has_refused = True
            self._warn(f"{len(failed)} events could not be written to {self.path}: {failed[0][1]}")
        return failed

    def set_rank(self, rank: int) -> None:
        """Set the rank of this process's events that have none. sqlite3.Error if it can't be written."""
        if self.store is not None:
            self.store.set_rank(os.getpid(), rank)

    def mark_end(self, facts: dict[str, Any], stopped_ns: int) -> None:
        """Mark the end of the recording, if this process began the file. If the last batch or the mark could not be
        written, the session is lost.
        """
        store = self.check()
        if store is not None and self.problem is None and self._is_owner:
            self._set_patience()
            self._set_facts(store, {**facts, "stopped_ns": stopped_ns})
        if self.problem is not None and self.lost is None:
            self.is_complete = not self._has_refused
            count = sum(len(batch.events) for batch in self.waiting)
            kept = f"{count} events are only in the memory of this process (session.save() keeps them): "
            self.lose(f"{kept if count else ''}{self.problem}")

    def _set_facts(self, store: Store, facts: dict[str, Any]) -> None:
        try:
            store.set_meta(**facts)
        except sqlite3.Error as error:
            self._note_failure(error)
        except (TypeError, ValueError) as error:
            pass_on(error)
            log_debug("compilediag: %s does not have all facts: %s", self.path, error)
            self._set_facts(store, {"stopped_ns": facts["stopped_ns"]})

    def close(self) -> None:
        """Close the file."""
        store, self.store = self.store, None
        try:
            if store is not None:
                self._close_store(store.close)
        finally:
            if self._place is not None:
                self._place.close()

    def _close_store(self, close: Callable[..., None], *args: Any) -> None:
        try:
            close(*args)
        except (sqlite3.Error, OSError) as error:
            pass_on(error)
            log_debug("compilediag: %s could not be closed: %s", self.path, error)

    def give_up(self, why: str) -> None:
        """Write nothing any more: another thread hangs in it, and has the connection."""
        self.store = None
        self.lose(why)

    # Around a fork

    def prepare_fork(self) -> None:
        """Find out whether the file can be opened after the fork: not if the disk is full. A lock is no reason."""
        if self.check() is not None and self.problem is not None and not self._is_busy:
            self.lose(self.problem)

    def release(self) -> None:
        """Close the connection before a fork."""
        if self.store is not None:
            self._close_store(self.store.release)

    def reopen(self) -> None:
        """Connect again in the process that forked."""
        if self.store is None or self._place is None:
            return
        self._place.forget_wal()
        try:
            self.store.reopen()
            self._set_patience()
        except (sqlite3.Error, OSError) as error:
            pass_on(error)
            self.store = None
            self.lose(self._place.describe_absence() or self._describe(error))

    def leave_to_parent(self) -> None:
        """In a forked child: the connection is the parent's, and so is the end of the recording."""
        self.store, self._is_owner = None, False
        self.waiting.clear()

    def join(self) -> None:
        """In a forked child: connect to the file that the parent records to."""
        parents, self._place, self._meta = self._place, None, None
        if self.lost is not None or parents is None:
            return
        parents.close()
        try:
            self.open()
        except OSError as error:
            pass_on(error)
            self.lose(self._describe(error))
        if self._place is not None and self._place.identity != parents.identity:
            self.lose(f"{self.path} was replaced or overwritten", self._place.close_overwritten)

    # What went wrong

    def check(self) -> Store | None:
        """The connection, if the file is as SQLite left it. Otherwise the session is lost."""
        store, place = self.store, self._place
        if store is None or place is None:
            return None
        if why := place.describe_absence():
            self.lose(why, place.close_elsewhere)
        elif place.is_overwritten:
            self.lose(f"{self.path} was overwritten", place.close_overwritten)
        elif place.is_wal_cut(store.connection):
            self.lose(f"{self.path}-wal was cut off", place.close_damaged)
        return self.store

    def _describe(self, error: BaseException) -> str:
        return f"{self.path} can't be written: {error}"

    def note_error(self, error: BaseException) -> None:
        """The last batch could not be written. The next one is tried; if it is the last, the session is lost."""
        self.problem = self._describe(error)

    def _note_failure(self, error: sqlite3.Error) -> None:
        self.problem, self._is_busy = self._describe(error), _get_code(error) in BUSY
        if _get_code(error) in FINAL and self._place is not None:
            self.lose(self.problem, self._place.close_damaged)
        else:
            self._warn(f"{self.problem}; events wait in memory, and your program goes on")

    def lose(self, why: str, close: Callable[[sqlite3.Connection], None] | None = None) -> None:
        """Nothing is written any more. `close` closes the connection to a file that is not as SQLite left it."""
        if self.lost is None:
            self.lost = self.problem = why
            self._warn(f"{why}; this session is lost from here on, and your program goes on")
        store, self.store = self.store, None
        if store is not None and close is not None:
            self._close_store(close, store.connection)
        elif store is not None:
            self._close_store(store.close)

    def _warn(self, text: str) -> None:
        """Warn once for each session: the counts are in `sources`."""
        if self._has_warned:
            return
        self._has_warned = True
        try:
            logger.warning("compilediag: %s", text)
        except Exception as error:
            pass_on(error)
            self.problem = f"{self.problem}; the warning could not be shown: {error}"


def append_batch(store: Store, batch: Batch) -> None:
    """Write a batch in one transaction."""
    store.append(batch.events, batch.texts, batch.progress, owners=[batch.owner] * len(batch.events))


def mark_lost(state: SourceStatus, why: str | None) -> SourceStatus:
    """What an active source saw is lost with the file."""
    if state.status != "active":
        return state
    return dataclasses.replace(state, status="failed", reason_code="lost", reason=why)


def _get_code(error: sqlite3.Error) -> int | None:
    """The primary code of an error, None if it is not of SQLite's library."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_of_the_file(error: sqlite3.Error) -> bool:
    return _get_code(error) in OF_THE_FILE
