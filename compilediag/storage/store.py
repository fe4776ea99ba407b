"""A session's file: SQLite in WAL mode, append-only, one SQL table per kind of event.

The schema is derived from `events`. Every event has a row in `events` (what all kinds share) and one in the table of
its kind, joined by id. Each text is stored once, compressed. Nothing in a file is ever executed: columns contain
numbers, text and JSON.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import NotASession
from ..events import KINDS, SCHEMA_VERSION, Event
from ..system import own_log
from ..system.interrupts import finish, ignore, pass_on
from ..system.program import is_recorded_elsewhere
from .accepted import (
    STATEMENTS,
    GuardedConnection,
    Tables,
    check_file,
    check_ids,
    check_version,
    connect,
    forbid_schema_changes,
    has_unreadable_rows,
    is_process_id,
    read_facts,
    read_schema,
    read_state,
)
from .rows import Owner, deflate, get_owner, insert_events, insert_rows, list_columns
from .session_files import FileKey, create_private, find_file_key, hold_temporary, remove

#: A killed process loses nothing with NORMAL in WAL mode; only a machine that loses power could.
NORMAL, OFF = "PRAGMA synchronous=NORMAL", "PRAGMA synchronous=OFF"
#: Pages in the -wal file before they go into the file; small batches write the same last pages again and again.
CHECKPOINT = "PRAGMA wal_autocheckpoint=4000"
#: Facts about a session and their characters: the list of logs of a large job takes some MB.
MAX_FACTS, MAX_FACTS_SIZE = 1_000, 64 << 20
#: Threads that compile now, and the characters of what one of them compiles.
MAX_STATES, MAX_STATE = 10_000, 100_000
#: The URI of a session that has no file.
MEMORY = "file::memory:"
#: Thread id -> what the thread compiles now.
States = dict[int, dict[str, Any]]


class Store:
    """One connection to a session file. Used by one thread at a time; the caller holds the lock."""

    def __init__(self, uri: str, path: Path, is_guarded: bool = False, statements: int = STATEMENTS):
        self.uri = uri
        self.path = path
        self._is_guarded = is_guarded
        self._statements = statements
        #: First parts of the compile keys in the file; None where they are not known.
        self.key_tokens: set[str] | None = None
        self._holds: list[int] = []
        if uri != MEMORY:
            hold_temporary(path, self._holds)
        self._connection = connect(uri, path, is_guarded, statements)
        self._is_released = False
        self.file_key = self._find_file_key()
        self._is_bulk = False
        #: New events have ids above this one.
        self.last_id = 0

    def __del__(self) -> None:
        """Close the connection of a session that nobody holds any more: Python 3.13 warns of one that stays open."""
        if (connection := getattr(self, "_connection", None)) is not None:
            connection.close()
        for descriptor in getattr(self, "_holds", ()):
            os.close(descriptor)  # Nothing of ours is called here: Python drops what a signal handler raises then.

    @property
    def connection(self) -> GuardedConnection:
        """The connection; opened again if it was released and what was to open it again has failed."""
        if self._is_released:
            self.reopen()
        return self._connection

    @property
    def is_in_memory(self) -> bool:
        return self.uri == MEMORY

    @property
    def application_id(self) -> int:
        """A random number that tells sessions apart; 0 for files of older versions, -1 if it can't be read."""
        try:
            return int(self.connection.execute("PRAGMA application_id").fetchone()[0])
        except sqlite3.Error:
            return -1

    @property
    def is_in_place(self) -> bool:
        """False if the file was removed, moved away or replaced since it was opened."""
        return self.is_in_memory or self._find_file_key() == self.file_key

    def _find_file_key(self) -> FileKey | None:
        """What has the path now. A file that can't be looked at now is taken for the same."""
        try:
            return find_file_key(self.path)
        except OSError as error:
            pass_on(error)
            return getattr(self, "file_key", None)

    def release(self) -> None:
        """Close the connection to the file, also before a fork: a child must not inherit it, as SQLite's locks do not
        survive a fork.
        """
        if not self.is_in_memory:
            self._is_released = True
            self._connection.close()

    def reopen(self) -> None:
        """Connect again after a fork, in either process. sqlite3.OperationalError if the file is not in place."""
        if self.is_in_memory:
            return
        if not self.is_in_place:
            raise sqlite3.OperationalError(f"{self.path} was removed or replaced")
        self._connection.close()
        self._connection = connect(self.uri, self.path, self._is_guarded, self._statements)
        self._is_released = False
        self._connection.execute(NORMAL)
        self._connection.execute(CHECKPOINT)

    @classmethod
    def create(cls, path: Path, meta: dict[str, Any], passing: bool = False, statements: int = STATEMENTS) -> Store:
        """Make a new file that only its owner can read; `path` must not exist. OSError or sqlite3.DatabaseError if it
        can't be written.

        `passing`: the file is read once and then removed, so it need not survive a crash. `statements` are kept parsed.
        """
        made: list[object] = []
        store = None
        try:
            create_private(path, made)
            store = cls(f"{path.absolute().as_uri()}?mode=rw", path, statements=statements)
            # The tables are in the file before its WAL begins: a file that loses its -wal is still a session.
            for setting in ("PRAGMA journal_mode=MEMORY", OFF, f"PRAGMA application_id={secrets.randbits(31)}"):
                store.connection.execute(setting)
            store.make_tables(meta)
            if not passing:
                for setting in ("PRAGMA journal_mode=WAL", NORMAL):
                    store.connection.execute(setting)
            store.connection.execute(CHECKPOINT)
        except BaseException:
            finish(functools.partial(_undo, store, path if made else None))
            raise
        return store

    @classmethod
    def in_memory(cls, path: Path) -> Store:
        """A session in memory that has no tables yet, for a session whose file can't be read or written."""
        return cls(MEMORY, path)

    @classmethod
    def create_in_memory(cls, path: Path, meta: dict[str, Any]) -> Store:
        """An empty session in memory."""
        store = cls.in_memory(path)
        store.make_tables(meta)
        return store

    def begin_bulk(self) -> None:
        """Write many rows fast from now on. Until it is closed, the file survives a crash of the process alone."""
        self.connection.execute(OFF)
        self._is_bulk = True

    def make_tables(self, meta: dict[str, Any]) -> None:
        """Create the tables in an empty file."""
        with self.connection as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)")
            for table, columns in list_columns().items():
                (key, type_of_key), *others = columns.items()
                own = "".join(f', "{name}" {type_of_column}' for name, type_of_column in others)
                db.execute(f"CREATE TABLE {table} ({key} {type_of_key} PRIMARY KEY{own})")
            db.execute("CREATE TABLE progress (pid INTEGER, thread INTEGER, state TEXT, PRIMARY KEY (pid, thread))")
            insert_facts(db, {"schema_version": SCHEMA_VERSION, **meta})

    @classmethod
    def open(cls, path: Path, writable: bool = False, statements: int = STATEMENTS) -> Store:
        """Open an existing file. NotASession or NewerSchema, in one line, if it can't be opened."""
        check_file(path, writable)
        uri = path.absolute().as_uri()
        # A file in a folder that can't be written has no place for WAL's side files: `immutable` makes and reads none.
        modes = ["mode=rw"] if writable else ["mode=ro"] if has_unreadable_rows(path) else ["mode=ro", "immutable=1"]
        try:
            store, tables, version = _first_that_reads(path, [f"{uri}?{mode}" for mode in modes], statements)
        except (sqlite3.DatabaseError, ValueError) as error:
            pass_on(error)
            if modes == ["mode=ro"]:
                raise NotASession(
                    f"{path}: the newest rows are in {path}-wal, which can't be read here because the folder can't be "
                    "written; copy both files to another folder"
                ) from None
            raise NotASession(f"{path} is not a compilediag session ({error}); pass a session (.cdiag)") from None
        try:
            check_version(path, version, tables)
            check_ids(store.connection, path, tables)
        except BaseException:
            store.connection.close()
            raise
        if writable:
            store.connection.unguard()
        return store

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[None]:
        """In the block, all statements read the same state of the file, whatever other connections write."""
        if self.connection.in_transaction:
            yield
            return
        try:
            self.connection.execute("BEGIN")
            yield
        finally:
            # A damaged file can have ended the transaction already.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def meta(self) -> dict[str, Any]:
        """The facts about the session. Those that are not legible are missing."""
        rows, size = [], 0
        for key, value in self.connection.execute(f"SELECT key, value FROM meta LIMIT {MAX_FACTS}"):
            size += len(value) if isinstance(value, (str, bytes)) else 0
            if size > MAX_FACTS_SIZE:
                break  # Pages of a damaged file can refer to one long text many times.
            rows.append((key, value))
        return read_facts(rows)

    def is_recorded_elsewhere(self) -> bool:
        """True while another living process of this machine records to the file."""
        return is_recorded_elsewhere(self.meta())

    def set_meta(self, **values: Any) -> None:
        with self.connection as db:
            insert_facts(db, values)

    def set_rank(self, pid: int, rank: int) -> None:
        """Set the rank of the events of a process that have none."""
        with self.connection as db:
            db.execute("UPDATE events SET rank = ? WHERE pid = ? AND rank IS NULL", (rank, pid))

    def delete_events(self, after: int) -> None:
        """Delete the events with ids above `after`."""
        with self.connection as db:
            db.execute("BEGIN IMMEDIATE")
            for cls in KINDS:
                db.execute(f"DELETE FROM {cls.table} WHERE event_id > ?", (after,))
            db.execute("DELETE FROM events WHERE id > ?", (after,))

    def append(
        self,
        events: Sequence[Event],
        payloads: Iterable[tuple[str, str]] = (),
        progress: tuple[int, States] | None = None,
        packed: Sequence[tuple[str, int, bytes]] = (),
        owners: Iterable[Owner] | None = None,
    ) -> None:
        """Write events and the texts of their artifacts, as (digest, text) pairs, in one transaction.

        `owners`: rank and pid of each event; those that the events name if it is None.
        `packed`: texts that are deflated already, as (digest, size, body). `progress`: a pid and what compiles now in
        that process, one state per thread; they replace the process's earlier ones.
        """
        with self.connection as db:
            db.execute("BEGIN IMMEDIATE")
            encoded = [(digest, text.encode()) for digest, text in payloads]
            texts = [*((digest, len(data), deflate(data)) for digest, data in encoded), *packed]
            insert_rows(db, "OR IGNORE INTO payloads", ("digest", "size", "body"), texts, self._is_bulk)
            if events:
                last = db.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0]
                first = max(last, self.last_id) + 1
                insert_events(db, first, events, owners or map(get_owner, events), self._is_bulk)
            if progress is not None:
                pid, states = progress
                db.execute("DELETE FROM progress WHERE pid = ?", (pid,))
                db.executemany(
                    "INSERT INTO progress VALUES (?, ?, ?)", [(pid, t, json.dumps(s)) for t, s in states.items()]
                )

    def progress(self) -> list[dict[str, Any]]:
        """What compiles now, one dict per thread; empty after the recording has ended."""
        return [state for states in self.progress_by_process().values() for state in states.values()]

    def progress_by_process(self) -> dict[int, States]:
        """What compiles now, by process and thread; empty after the recording has ended."""
        ended = "SELECT 1 FROM meta WHERE key = 'stopped_ns' AND value <> 'null'"
        fits = f"length(state) < {MAX_STATE} AND NOT EXISTS ({ended}) LIMIT {MAX_STATES}"
        rows = self.connection.execute(f"SELECT pid, thread, state FROM progress WHERE {fits}")
        found: dict[int, States] = {}
        for pid, thread, text in rows:
            if is_process_id(pid) and isinstance(thread, int) and (state := read_state(text)) is not None:
                found.setdefault(pid, {})[thread] = state
        return found

    def set_progress(self, states: dict[int, States]) -> None:
        """Replace what compiles now, in all processes."""
        rows = [(pid, thread, json.dumps(s)) for pid, threads in states.items() for thread, s in threads.items()]
        with self.connection as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("DELETE FROM progress")
            db.executemany("INSERT INTO progress VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file and remove its WAL files, so that the session is a single file."""
        if not self.is_in_place:
            self.connection.close()  # The side files may be those of another session now.
            return
        try:
            self.connection.execute("PRAGMA busy_timeout=0")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.DatabaseError as error:
            # Another process has it open, or it can't be written: the side file stays, nothing is lost.
            own_log.debug("compilediag: %s keeps its -wal file: %s", self.path, error)
        self.connection.close()


def _undo(store: Store | None, made: Path | None) -> None:
    """Remove a file that was made in vain."""
    if store is not None:
        store.connection.close()
    if made is not None:
        with ignore(OSError):
            remove(made)


def insert_facts(db: sqlite3.Connection, facts: dict[str, Any]) -> None:
    """Write facts about a session into its meta, as JSON."""
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in facts.items()])


def _first_that_reads(path: Path, uris: list[str], statements: int) -> tuple[Store, Tables, object]:
    for cut_off in (False, True):
        for uri in uris:
            store = Store(uri, path, is_guarded=True, statements=statements)
            try:
                if cut_off:
                    # SQLite refuses a file that is shorter than its header says, unless writable_schema is set.
                    store.connection.execute("PRAGMA writable_schema=ON")
                else:
                    forbid_schema_changes(store.connection)
                store.connection.execute(NORMAL)
                store.connection.execute(CHECKPOINT)
                return store, read_schema(store.connection, path), store.meta().get("schema_version")
            except sqlite3.DatabaseError as error:
                store.connection.close()
                refused = error
            except BaseException:
                store.connection.close()
                raise
    raise refused
