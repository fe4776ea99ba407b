"""The data of the session that this process records, also when its file is lost.

What was recorded so far is written before the file is read. The file is closed around a fork and around the end of the
recording. A session whose file is lost goes on in memory: what can be read of the file, what waited to be written, and
the last states of its sources.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..events import SourceStatus
from ..system.interrupts import ignore, pass_on
from ..system.own_errors import log_debug, log_warning
from .data import SessionData, find_last_id, read_rows
from .rows import insert_rows
from .session_writer import BUSY, Unwritten, append_batch, mark_lost
from .store import Store

#: Writes what was recorded so far; its argument is that of `SessionData.flush`. If the file is lost, it returns what
#: the file lacks.
Flush = Callable[[bool], Unwritten | None]


class RecordedData(SessionData):
    """The data of a session that this process records, and of one that it has recorded.

    `store` is read instead of the file, if the file can't be read.
    """

    is_ours = True

    def __init__(self, path: Path, flush: Flush, store: Store | None = None):
        super().__init__(path, store)
        self._application_id = self.store.application_id
        self._flush: Flush | None = flush
        self._last_states: Sequence[SourceStatus] = ()
        self._is_whole = True
        #: What could not be added to the session in memory yet, and facts.
        self._not_added: tuple[Unwritten, Mapping[str, Any]] | None = None
        self._when_ended: list[Callable[[], None]] = []
        #: Ends the warm-up of the recording, while it runs; its argument is that of `Session.end_warmup`.
        self.when_warm: Callable[[str], None] | None = None

    @property
    def state(self) -> str:
        """watching, stopped, or lost: recorded, but its file could not be written to the end."""
        if self._flush is not None:
            return "watching"
        return "lost" if self.store.is_in_memory else "stopped"

    @property
    def is_recorded_here(self) -> bool:
        """True while this process records the session."""
        return self._flush is not None

    def flush(self, statuses: bool = False) -> None:
        """Write everything that this process has recorded so far to the file. `statuses`: what the sources have counted
        too, which is otherwise written once a second.
        """
        flush = self._flush
        if flush is not None and not self._settled.active:
            unwritten = flush(statuses)
            if unwritten is not None:
                self.keep_in_memory(unwritten, {})
        if self._not_added is not None:
            with ignore(Exception):
                self.keep_in_memory(*self._not_added)

    def end_warmup(self, on_compile: str) -> None:
        """What compiles from here on is an incident; see `Session.end_warmup`."""
        if self.when_warm is None:
            super().end_warmup(on_compile)
        else:
            self.when_warm(on_compile)

    def set_meta(self, **values: Any) -> None:
        """Store facts about the session in its file, as JSON. CompilediagError if the file can't be written."""
        with self.lock:
            if self.store.is_in_memory:
                self.store.set_meta(**values)
                return
        super().set_meta(**values)

    # The end of the recording

    def end_recording(self) -> None:
        """The recording is over: from here on the file alone is read."""
        self._flush = self.when_warm = None

    def call_when_ended(self, function: Callable[[], None]) -> None:
        """Call a function once, in the thread of this process that ends the recording."""
        self._when_ended.append(function)

    def announce_end(self) -> None:
        """Call what waits for the end of the recording. An error there never reaches the program that is recorded."""
        while self._when_ended:
            function = self._when_ended.pop(0)
            try:
                function()
            except Exception as error:
                pass_on(error)
                log_warning("compilediag: what is shown was not updated at the end of the watch: %s", error)

    def add_states(self, states: Sequence[SourceStatus]) -> None:
        """Add states of sources after the recording: to the file, else to a copy of the session in memory."""
        try:
            with self.lock:
                if not self.store.is_in_memory:
                    with contextlib.closing(Store.open(self.path, writable=True)) as store:
                        store.append(states)
                    return
        except Exception as error:
            pass_on(error)
            log_debug("compilediag: %s does not have the last states: %s", self.path, error)
        self.keep_in_memory(Unwritten(tuple(states), deque()), {})

    # Around a fork of the process, and around the end of the recording

    def close_during(self, work: Callable[[], None]) -> None:
        """Call `work` while the file is closed here; other threads wait."""
        with self.lock:
            try:
                self.store.release()
            finally:
                try:
                    work()
                finally:
                    self._connect_again()

    def release(self) -> None:
        """Close the file; the caller holds the lock until `reopen`."""
        self.store.release()

    def reopen(self) -> None:
        """Open the file again, for all threads."""
        try:
            self._connect_again()
        finally:
            self.lock.release()

    def after_fork_in_child(self) -> None:
        """Open the file again, with a lock that no thread of the parent holds. What is shown is the parent's."""
        self.lock = threading.RLock()
        self._when_ended.clear()
        self._connect_again()

    def _connect_again(self) -> None:
        try:
            self.store.reopen()
        except Exception as error:
            pass_on(error)
            self._change_store(_reopen_or_empty(self.store, self._application_id))
            if not isinstance(error, (sqlite3.Error, OSError)):  # An error of ours, which is counted.
                raise

    # A lost file

    def keep_in_memory(self, unwritten: Unwritten, facts: Mapping[str, Any]) -> None:
        """The file is lost: go on in memory with what can be read of it, what it lacks, and `facts`."""
        with self.lock:
            self._not_added = unwritten, facts
            if not self.store.is_in_memory:
                memory, self._is_whole = _copy_to_memory(self.store, self._application_id, self._find_last_id())
                self._change_store(memory)
            if unwritten.states is not self._last_states or unwritten.batches or facts:
                _add_unwritten(self.store, unwritten, facts, self._is_whole)
                self._last_states = unwritten.states
            self._not_added = None

    def _find_last_id(self) -> int:
        """The highest event id that is known, also if the file can't be read any more."""
        known = [rows[-1].event_id for rows in self._rows.values() if rows]
        with contextlib.suppress(sqlite3.Error):
            known.append(find_last_id(self.store, "events"))
        return max(known, default=0)

    def _change_store(self, store: Store) -> None:
        self.store = store
        self.reread_rows()


def _copy_to_memory(store: Store, application_id: int, last_id: int) -> tuple[Store, bool]:
    """A session in memory with what can be read of the file, and whether that is all. The connection of `store` is
    closed.

    `application_id`: that of the session; a file that has another one is not read. New events have ids above `last_id`,
    also if nothing can be read.
    """
    memory = _copy_pages(store, application_id)
    is_whole = memory is not None
    if memory is None:
        memory = Store.create_in_memory(store.path, {})
        # Opened again, SQLite looks at what is left of the -wal file.
        source = _open_again(store) if store.is_in_place else store
        if source is not None:
            memory = _copy_pages(source, application_id) or _copy_rows(source, application_id, memory)
            source.release()
    store.release()
    memory.last_id = last_id
    return memory, is_whole


def _reopen_or_empty(store: Store, application_id: int) -> Store:
    """The file, opened in whatever way can still read it; an empty session in memory if none can."""
    found = _open_again(store) if store.is_in_place else None
    if found is not None and found.application_id == application_id:
        return found
    return Store.create_in_memory(store.path, {})


def _add_unwritten(memory: Store, unwritten: Unwritten, facts: Mapping[str, Any], is_whole: bool) -> None:
    """Add what waited to be written, the states of the sources, and `facts` to the meta. Nothing compiles any more."""
    while unwritten.batches:
        batch = unwritten.batches.popleft()
        try:
            append_batch(memory, batch)
        except Exception as error:
            pass_on(error)
            log_debug("compilediag: a batch is added one by one: %s", error)
            for event in batch.events:
                with ignore(Exception):
                    append_batch(memory, dataclasses.replace(batch, events=[event]))
    why = next((state.reason for state in unwritten.states if state.reason_code == "lost"), None)
    memory.append([state if is_whole else mark_lost(state, why) for state in unwritten.states])
    memory.set_meta(**facts)
    memory.set_progress({})


def _open_again(store: Store) -> Store | None:
    store.release()
    try:
        return Store.open(store.path)
    except CompilediagError:
        return None


def _copy_pages(source: Store, application_id: int) -> Store | None:
    """A copy of the whole file; None if it is damaged or another one."""
    copy = Store.in_memory(source.path)
    try:
        source.connection.backup(copy.connection, progress=_raise_if_busy)
        is_whole = copy.connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        if is_whole and copy.application_id == application_id:
            return copy
    except sqlite3.Error:
        pass
    copy.connection.close()
    return None


def _raise_if_busy(status: int, remaining: int, total: int) -> None:
    """Python repeats a step of a copy for as long as another process has the file locked."""
    if status & 0xFF in BUSY:
        raise sqlite3.OperationalError("database is locked")


def _copy_rows(source: Store, application_id: int, memory: Store) -> Store:
    """Copy the rows that can be read of a damaged file, if it is not another one."""
    if source.application_id != application_id:
        return memory
    tables = memory.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        names = [f'"{name}"' for _, name, *_ in memory.connection.execute(f"PRAGMA table_info({table})")]
        with contextlib.suppress(sqlite3.Error):
            rows = read_rows(source, f"SELECT {', '.join(names)} FROM {table}", names[0])
            insert_rows(memory.connection, f"OR REPLACE INTO {table}", names, rows, is_bulk=False)
    return memory
