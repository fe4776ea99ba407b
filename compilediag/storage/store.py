"""A session's file: SQLite in WAL mode, append-only, one SQL table per kind of event.

The schema is derived from `events`. Every event has a row in `events` (what all kinds share) and one in the table of
its kind, joined by id. Each text is stored once, compressed. Nothing in a file is ever executed: columns contain
numbers, text and JSON.

Other people may have written a file. SQLite runs what a schema contains: triggers, views, virtual tables, expressions
of columns and indexes. A session has plain tables only, so a file with anything else is refused before its tables are
read.

A file can be made so that reading it never ends or fills the memory: pages that refer to each other, rows that share
one long text. Each statement may take as long, and each value be as large, as an honest file of that size can need.

A stored value that does not fit its column counts as missing: a value of another type, a number that is not finite,
negative where a quantity is measured, or larger than any that torch gives, JSON of another shape. A row without a
usable time is left out. So no view has to expect such values.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import json
import math
import os
import re
import secrets
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from ..errors import NewerSchema, NotASession, WrongInput
from ..events import BY_TABLE, KINDS, SCHEMA_VERSION, ColumnSpec, Event
from ..formatting import MAX_TEXT, bound_text, format_line
from ..system.files import OutputKind, create_private, open_into
from ..system.interrupts import finish, ignore, pass_on
from ..system.own_errors import log_debug
from ..system.program import is_recorded_elsewhere
from .rows import Owner, deflate, get_owner, insert_events, insert_rows, list_columns

try:
    import fcntl
except ImportError:  # On Windows. A session that is left there stays.
    fcntl = None  # type: ignore[assignment]

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
#: CPU seconds that a statement may take, and bytes of the file that add another one.
PATIENCE_S, BYTES_PER_S = 20.0, 2 << 20
#: A value, for example a whole table as JSON, has at most this many bytes, or this many times those of the file.
LEAST_LENGTH, LENGTH_RATIO = 64 << 20, 16
#: What SQLite allows itself.
MOST_LENGTH = 1_000_000_000
#: Steps of SQLite between two looks at the clock. A batch of a live session takes fewer: beside a busy compiler a look
#: waits for the interpreter lock.
STEPS = 20_000
#: No row of a session takes less.
ROW_BYTES = 8
#: Seconds that a statement waits for another process's lock. Nobody holds one for long, unless something is wrong.
LOCK_S = 5.0
#: Statements that a connection keeps parsed; Python's own number.
STATEMENTS = 128

#: Tables that a schema of ours can have at most, with those of later versions.
MAX_OBJECTS = 200
#: Ids of events are smaller: JavaScript has no larger integers.
MAX_ID = 1 << 53

_NAME = r'(?:[A-Za-z_]\w*|"[A-Za-z_]\w*")'
_COLUMN = rf"{_NAME} (?:INTEGER|TEXT|REAL|BLOB)(?: PRIMARY KEY)?"
_KEY = rf"PRIMARY KEY \({_NAME}(?:, {_NAME})*\)"
_TABLE = re.compile(rf"CREATE TABLE (?P<name>{_NAME}) \((?P<columns>{_COLUMN}(?:, {_COLUMN})*)(?:, {_KEY})?\)")

#: Table -> names of its columns.
Tables = Mapping[str, frozenset[str]]

#: The first bytes of every SQLite file.
SQLITE = b"SQLite format 3\0"
#: What the folders of temporary sessions begin with.
FOLDER_PREFIX = "compilediag-"
#: A temporary session, and the file that is locked while somebody uses it.
SESSION, IN_USE = "session.cdiag", "in-use"
TEMPORARY = re.compile(re.escape(FOLDER_PREFIX) + "[0-9a-f]{16}")
#: What the names of a session's files end with.
SIDE_FILES = ("", "-wal", "-shm", "-journal")
#: Device and inode of a file: what it is, whatever its name is.
FileKey = tuple[int, int]
#: The files that this process records to. They are not opened again: closing them would drop SQLite's locks.
RECORDED: set[FileKey] = globals().get("RECORDED", set())  # It outlives `importlib.reload`.


# Which files are sessions


def is_session(file: Path) -> bool:
    """True if a file begins like a session, even if it is damaged. OSError if it can't be read."""
    return file.is_file() and _read_head(file) == SQLITE


def is_session_or_damaged(file: Path) -> bool:
    """True for a SQLite file, unless it can be read and has the tables of another program."""
    if _read_head(file) != SQLITE:
        return False
    if find_file_key(file) in RECORDED:
        return True
    try:
        # No locks are taken, and no side files are made.
        uri = f"{file.absolute().as_uri()}?immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return True
    return not tables or {"meta", "events"} <= tables


#: What a session replaces.
SESSION_FILE = OutputKind("a compilediag session", is_session_or_damaged)


def _read_head(file: Path) -> bytes:
    if find_file_key(file) in RECORDED:
        return SQLITE
    with file.open("rb") as opened:
        return opened.read(len(SQLITE))


def find_file_key(file: Path) -> FileKey | None:
    """Device and inode of the file that has this path now; None if there is none. OSError if it can't be looked up."""
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        pass_on(error)
        return None
    return found.st_dev, found.st_ino


#: The locks on the temporary sessions that this process has made. They outlive `importlib.reload`.
HELD: dict[Path, list[int]] = globals().get("HELD", {})


def share_lock(marker: Path, descriptors: list[int]) -> None:
    # Without a lock it is another user's, or on a disk without locks, where nobody removes it.
    with ignore(OSError):
        open_into(descriptors, marker, os.O_RDONLY | os.O_NOFOLLOW)
        fcntl.flock(descriptors[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)


def remove(file: Path) -> None:
    """Remove a session's file and its side files, as far as they exist: SQLite would apply a journal to a new file."""
    for ending in SIDE_FILES:
        Path(f"{file}{ending}").unlink(missing_ok=True)


# Which files are accepted


def check_file(path: Path, writable: bool) -> None:
    """NotASession if a path is not a file that can be opened."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not a regular file" if path.exists() else "does not exist"
        raise NotASession(f"{path} {what}")
    for ending in ("-wal", "-shm", "-journal"):
        # SQLite would open anything beside a session: a pipe would never end.
        file, is_regular = f"{os.path.realpath(path)}{ending}", True
        # Mostly there is none. What is raised and caught keeps its frames alive if an interrupt comes just then.
        if os.path.lexists(file):
            with ignore(OSError):  # It is gone now.
                is_regular = stat.S_ISREG(os.lstat(file).st_mode)
        if not is_regular:
            raise NotASession(f"{file} is not a regular file; remove it")
    if writable and Path(f"{os.path.realpath(path)}-journal").exists():
        # SQLite would apply it, and delete the file that it names.
        raise NotASession(f"{path} has a journal of an interrupted write ({path}-journal); choose another path")


def has_unreadable_rows(path: Path) -> bool:
    """True if the newest rows are in a file beside the session, for which SQLite has to make another one and can't. A
    process that was killed leaves such files, and a copy of them often lacks the one that can be made again.
    """
    file = os.path.realpath(path)
    with ignore(OSError):
        if os.stat(f"{file}-wal").st_size:
            return not os.path.exists(f"{file}-shm") and not os.access(os.path.dirname(file), os.W_OK)
    return False


def check_version(path: Path, version: object, tables: Tables) -> None:
    """NotASession or NewerSchema, in one line, if this compilediag can't read a file of this schema version."""
    if type(version) is not int or version < 1:
        raise NotASession(f"{path} is not a compilediag session; pass a session (.cdiag)")
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"{path} was written by a newer compilediag (schema {version}, this one reads up to {SCHEMA_VERSION});"
            " upgrade compilediag"
        )
    if version < SCHEMA_VERSION:
        raise NotASession(
            f"{path} was written by an older compilediag (schema {version}, this one reads schema {SCHEMA_VERSION}); "
            "record it again, or ingest its log again"
        )
    for table, kind in BY_TABLE.items():
        wanted = [field.name for field in dataclasses.fields(kind) if field.metadata]
        missing = [name for name in wanted if table in tables and name not in tables[table]]
        if missing:
            raise NotASession(f"{path} is damaged: its table {table} has no column {missing[0]}; ask for a new copy")


def check_ids(connection: sqlite3.Connection, path: Path, tables: Tables) -> None:
    """NotASession if the ids of events are not those of a recording: they count from 1, and merging adds to them."""
    for table in tables.keys() & {"events", *BY_TABLE}:
        number = "id" if table == "events" else "event_id"
        # SQLite looks up one of the two, and scans the table for both.
        ends = ", ".join(f"(SELECT {end}({number}) FROM {table})" for end in ("min", "max"))
        try:
            least, most = connection.execute(f"SELECT {ends}").fetchone()
        except sqlite3.DatabaseError:
            continue  # What can be read of a damaged table is shown.
        if least is not None and not 1 <= least <= most <= MAX_ID:
            odd = most if most > MAX_ID else least
            raise NotASession(f"{path} has the event id {odd}, which compilediag does not write; ask for a new copy")


def read_schema(connection: sqlite3.Connection, path: Path) -> Tables:
    """The tables of a file. NotASession, in one line, if it has anything but plain tables."""
    query = f"SELECT type, name, sql FROM sqlite_master LIMIT {MAX_OBJECTS + 1}"
    objects = connection.execute(query).fetchall()
    if len(objects) > MAX_OBJECTS:
        raise NotASession(f"{path} has more tables than any compilediag session; it was not opened")
    if objects and not {"meta", "events"} & {name for _, name, _ in objects}:
        raise WrongInput(f"{path} is a SQLite file of another program; pass a session (.cdiag)")
    tables = {}
    for kind, name, sql in objects:
        if kind == "index" and sql is None:
            continue  # SQLite's own index of a primary key.
        found = _parse_table(sql) if kind == "table" and isinstance(sql, str) else None
        if found is None or found[0] != name:
            what = kind if kind in ("trigger", "view", "index") else "table"
            raise NotASession(
                f"{path} has the {what} {format_line(name, 60)}, which compilediag does not write; it was not opened, "
                "because SQLite could run code of its author"
            )
        tables[found[0]] = found[1]
    return tables


@functools.lru_cache(maxsize=500)
def _parse_table(sql: str) -> tuple[str, frozenset[str]] | None:
    """The name and the columns of a plain table; None for any other statement."""
    found = _TABLE.fullmatch(sql)
    if found is None:
        return None
    name, columns = found["name"].strip('"'), [column.split(" ", 1) for column in found["columns"].split(", ")]
    number = "id" if name == "events" else "event_id"
    if (name == "events" or name in BY_TABLE) and columns[0] != [number, "INTEGER PRIMARY KEY"]:
        return None
    return name, frozenset(column.strip('"') for column, _ in columns)


# How they are read


class _Clock:
    """Measures the CPU time of a statement in the thread that runs it."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.is_over = False
        self.restart()

    def restart(self) -> None:
        """A statement begins."""
        self._thread, self._began = threading.get_ident(), time.thread_time()

    def look(self) -> bool:
        """True if the statement has to end."""
        if self._thread != threading.get_ident():
            self.restart()
        self.is_over = self.is_over or time.thread_time() - self._began > self.seconds
        return self.is_over


class GuardedConnection(sqlite3.Connection):
    """A connection that ends statements that take too long, once `guard` was called."""

    #: The most rows that a table of the file can have.
    max_rows = 1 << 62
    #: The most bytes of a value, and of the texts that are read from a damaged file at once.
    max_length = MOST_LENGTH
    _clock: _Clock | None = None
    _path: Path | None = None
    _size = -1

    def guard(self, path: Path) -> None:
        """Bound the time of statements and the size of values by the size of the file at `path`."""
        self._path, self._clock = path, _Clock(PATIENCE_S)
        self.set_progress_handler(self._clock.look, STEPS)

    def unguard(self) -> None:
        """End the bounds: the file was recognized, and this process writes to it."""
        self._path = self._clock = None
        self.set_progress_handler(None, 0)
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LENGTH)

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """As `sqlite3.Connection.execute`. NotASession if the file takes too long."""
        if self._clock is None or self._path is None:
            return super().execute(*args)
        if not self._clock.is_over:
            self._clock.restart()
            # The bounds are those of the file's present size: somebody may be recording to it.
            size = max(measure(self._path), self._size)  # A file that was removed is as large as it was.
            if size != self._size:
                self._size = size
                self._clock.seconds = PATIENCE_S + size / BYTES_PER_S
                self.max_rows = 1_000 + size // ROW_BYTES
                self.max_length = min(MOST_LENGTH, max(LEAST_LENGTH, LENGTH_RATIO * size))
                self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.max_length)
        try:
            return super().execute(*args)
        except sqlite3.OperationalError:
            self.raise_if_over()
            raise

    def raise_if_over(self) -> None:
        """NotASession if a statement took too long."""
        if self._clock is not None and self._clock.is_over:
            raise NotASession(
                f"reading {self._path} took more than {self._clock.seconds:.0f} s of CPU time, too long for its size; "
                "the file is damaged or was made to do this, ask for a new copy"
            )


def connect(uri: str, path: Path, is_guarded: bool, statements: int = STATEMENTS) -> GuardedConnection:
    """Connect to a session file; `is_guarded` if somebody else may have written it. `statements` are kept for later.

    sqlite3.DatabaseError if it can't be read.
    """
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=LOCK_S,
        isolation_level=None,
        check_same_thread=False,
        factory=GuardedConnection,
        cached_statements=statements,
    )
    try:
        if is_guarded:
            connection.guard(path)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA mmap_size=0")
    except BaseException:
        connection.close()
        raise
    return connection


def forbid_schema_changes(connection: sqlite3.Connection) -> None:
    """Switch on SQLite's defensive mode, where Python can (3.12)."""
    defensive = getattr(sqlite3, "SQLITE_DBCONFIG_DEFENSIVE", None)
    if defensive is not None:
        with contextlib.suppress(sqlite3.Error):
            connection.setconfig(defensive, True)  # type: ignore[attr-defined]


def measure(path: Path) -> int:
    """Bytes of a session file and of what is not yet in it."""
    size = 0
    for name in (path, f"{path}-wal"):
        # A -wal is often missing. What is raised and caught keeps its frames alive if an interrupt comes just then.
        if os.path.exists(name):
            with contextlib.suppress(FileNotFoundError):
                size += os.stat(name).st_size
    return size


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
            # A session that another process has made is not removed until `_holds` are closed.
            is_temporary = path.name == SESSION and TEMPORARY.fullmatch(path.parent.name) is not None
            if fcntl is not None and is_temporary and path.parent not in HELD:
                share_lock(path.parent / IN_USE, self._holds)
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
        # A known fact of another type is missing.
        facts = {key: (value, parse_json(value)) for key, value in rows if isinstance(key, str)}
        return {
            key: value
            for key, (text, value) in facts.items()
            if text == "null" or (value is not None and (key not in _FACTS or _FACTS[key](value)))
        }

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
            log_debug("compilediag: %s keeps its -wal file: %s", self.path, error)
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


# Which values fit their columns

TIME = "datetime64[ns, UTC]"
#: Times are between 1970 and 2116: with a duration they stay within 64 bits.
MAX_TIME_NS = 1 << 62
#: With another one of that size, an integer stays within 64 bits.
MAX_INT = 1 << 62
#: Integers in JSON stay below: some are hashes.
MAX_JSON_INT = 1 << 64
#: Larger floats, and longer durations in s (30 years), are not measurements.
MAX_FLOAT, MAX_SECONDS = 1e15, 1e9
#: Lists and dicts of JSON are nested no deeper.
MAX_DEPTH = 8

Check = Callable[[Any], bool]


def make_checks(spec: Mapping[str, ColumnSpec]) -> list[Check]:
    """One function per column that says whether a stored value that is not NULL fits it."""
    return [_make_check(column) for column in spec.values()]


def find_range(column: ColumnSpec) -> tuple[float, float]:
    """The least and the largest number of a column of floats: measurements are not negative."""
    return (-MAX_FLOAT if column["unit"] is None else 0.0), (MAX_SECONDS if column["unit"] == "s" else MAX_FLOAT)


def keep_legible(columns: Sequence[Sequence[Any]], checks: Sequence[Check], time: int) -> list[Sequence[Any]]:
    """The columns with None for cells that do not fit and with bounded texts, without the rows that have no time.

    `time`: the column of times.
    """
    kept: list[Sequence[Any]] = []
    for cells, fits in zip(columns, checks, strict=True):
        values = set(cells) - {None}
        changed: dict[Any, str | None] = {value: None for value in values if not fits(value)}
        if fits is _is_text:
            changed.update((text, bound_text(text)) for text in values - changed.keys() if len(text) > MAX_TEXT)
        kept.append([changed.get(cell, cell) for cell in cells] if changed else cells)
    have_time = [cell is not None for cell in kept[time]]
    return kept if all(have_time) else [list(itertools.compress(cells, have_time)) for cells in kept]


def _make_check(column: ColumnSpec) -> Check:
    if column["dtype"] == "json":
        fits = find_check(column["shape"])
        return lambda text: (value := parse_json(text)) is not None and fits(value)
    if column["dtype"] == "float64":
        least, most = find_range(column)
        return lambda value: isinstance(value, (int, float)) and least <= value <= most
    return _CHECKS[column["dtype"]]


def is_time(value: object) -> bool:
    """True for a time in ns since 1970."""
    return type(value) is int and 0 <= value < MAX_TIME_NS


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and -MAX_INT <= value <= MAX_INT


_CHECKS: dict[str, Check] = {
    "string": _is_text,
    "Int64": _is_int,
    "boolean": lambda value: isinstance(value, int),
    TIME: is_time,
}


# JSON


def parse_json(text: object) -> Any:
    """The value of a JSON text; None if it is none, or is nested too deeply."""
    if not isinstance(text, str):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if _is_plain(value) else None


def _is_plain(value: object) -> bool:
    """True for a value of JSON with finite numbers that is not nested too deeply."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        nested: list[Any] = []
        for part in level:
            if isinstance(part, (list, dict)):
                nested.append(part)
            elif isinstance(part, (int, float)):
                limit = math.inf if isinstance(part, float) else MAX_JSON_INT
                if not abs(part) < limit:  # nan is not.
                    return False
        if not nested:
            return True
        level = []
        for one in nested:
            level += one.values() if isinstance(one, dict) else one
    return False


def is_text_list(value: object) -> bool:
    """True for a list of strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


@functools.cache
def find_check(shape: str | None) -> Check:
    """The function that says whether a list or dict fits a column of JSON. `shape`: the type as its field declares it,
    `list[...]` or `dict[str, ...]` of `_ITEMS`.
    """
    shape = shape or "dict[str, Any]"
    inner = shape[shape.index("[") + 1 : -1].removeprefix("str, ")
    allowed = {kind for name in inner.split(" | ") for kind in _ITEMS[name]}
    if shape.startswith("list["):
        return lambda value: isinstance(value, list) and ({*map(type, value)} <= allowed or inner == "Any")
    return lambda value: isinstance(value, dict) and ({*map(type, value.values())} <= allowed or inner == "Any")


_ITEMS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "None": (NoneType,),
    "Any": (),
}


# What is not a table


def is_process_id(value: object) -> bool:
    """True for a number that an operating system could give a process."""
    return type(value) is int and 0 < value < 1 << 31


_FACTS: dict[str, Check] = {
    **dict.fromkeys(("torch_version", "python_version", "compilediag_version", "platform", "device"), _is_text),
    **dict.fromkeys(("title", "detail", "host", "boot_id"), _is_text),
    **dict.fromkeys(("my_code", "library_folders", "asked_for"), is_text_list),
    **dict.fromkeys(("created_ns", "stopped_ns"), is_time),
    "pid": is_process_id,
    "last_step": _is_int,
}


def read_state(text: object) -> dict[str, Any] | None:
    """What one thread compiles, from its JSON; None if that is not legible."""
    found = parse_json(text)
    if not isinstance(found, dict):
        return None
    return {name: value if _STATE[name](value) else None for name, value in found.items() if name in _STATE}


_STATE: dict[str, Check] = {
    **dict.fromkeys(("compile_id", "compile_key", "function", "file", "trigger"), _is_text),
    "line": _is_int,
    "phases": is_text_list,
    "started_ns": is_time,
}
