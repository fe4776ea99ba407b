"""A session's file: SQLite in WAL mode, append-only, one SQL table per kind of event.

The schema is derived from `events`. Every event has a row in `events` (what all kinds share) and one in the table of
its kind, joined by id. Each text is stored once, compressed. Nothing in a file is ever executed: columns contain
numbers, text and JSON.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import sqlite3
import struct
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..errors import NewerSchema, NotASession
from ..events import KINDS, SCHEMA_VERSION, Event

logger = logging.getLogger("compilediag")
#: Variables that SQLite (3.32 and later) takes in one statement.
MAX_VARIABLES = 32_766
#: Rows of one statement. With more, parsing the statement takes SQLite as long as inserting the rows.
MAX_ROWS = 150
#: Texts up to this number of bytes are stored uncompressed.
SHORT = 5 * 1024
#: The first bytes of every SQLite file.
SQLITE = b"SQLite format 3\0"
SQL_TYPES = {"string": "TEXT", "Int64": "INTEGER", "float64": "REAL", "boolean": "INTEGER", "json": "TEXT"}
#: A killed process loses nothing with NORMAL in WAL mode; only a machine that loses power could.
NORMAL, OFF = "PRAGMA synchronous=NORMAL", "PRAGMA synchronous=OFF"
#: Pages in the -wal file before they go into the file; small batches write the same last pages again and again.
CHECKPOINT = "PRAGMA wal_autocheckpoint=4000"
OWNER = ("rank", "pid")
COMMON = (*OWNER, "time_ns", "kind", "compile_id", "compile_key", "title", "duration_s")

#: The values of one row, in the order of the statement that inserts it.
Row = tuple[Any, ...]
#: Rank and pid of the process that an event happened in.
Owner = tuple[int | None, int | None]
#: Thread id -> what the thread compiles now.
States = dict[int, dict[str, Any]]


def own_fields(cls: type[Event]) -> list[dataclasses.Field[Any]]:
    """The fields that the SQL table of a kind has; those that all events share are in `events`."""
    return [f for f in dataclasses.fields(cls) if f.metadata]


def _schema() -> Iterable[str]:
    yield "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT)"
    yield (
        "CREATE TABLE events (id INTEGER PRIMARY KEY, time_ns INTEGER, kind TEXT, rank INTEGER, pid INTEGER,"
        " compile_id TEXT, compile_key TEXT, title TEXT, duration_s REAL)"
    )
    for cls in KINDS:
        own = "".join(f', "{f.name}" {SQL_TYPES[f.metadata["dtype"]]}' for f in own_fields(cls))
        yield f"CREATE TABLE {cls.table} (event_id INTEGER PRIMARY KEY{own})"
    yield "CREATE TABLE payloads (digest TEXT PRIMARY KEY, size INTEGER, body BLOB)"
    yield "CREATE TABLE progress (pid INTEGER, thread INTEGER, state TEXT, PRIMARY KEY (pid, thread))"


def is_session(file: Path) -> bool:
    """True if a file begins like a session, even if it is damaged. OSError if it can't be read."""
    return file.is_file() and _head(file) == SQLITE


def is_replaceable(file: Path) -> bool:
    """True for an earlier session and for an empty file; any other file is not overwritten."""
    return file.is_file() and _head(file) in (b"", SQLITE)


def _head(file: Path) -> bytes:
    with file.open("rb") as opened:
        return opened.read(len(SQLITE))


def temporary_file() -> Path:
    """An unused path for a temporary session."""
    handle, name = tempfile.mkstemp(prefix="compilediag-", suffix=".cdiag")
    os.close(handle)
    file = Path(name)
    file.unlink()
    return file


def remove(file: Path) -> None:
    """Remove a session's file and its WAL files, as far as they exist."""
    for name in (file, f"{file}-wal", f"{file}-shm"):
        Path(name).unlink(missing_ok=True)


def clean(text: str) -> str:
    """The text as SQLite can store it: a lone surrogate, which UTF-8 cannot encode, becomes its escape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def deflate(text: str) -> bytes:
    """The text as a zlib stream; a short one is a stored block, without compression.

    zlib releases the interpreter lock for each text, and while the compiler is busy it takes 5 ms to get it back. Most
    texts are graphs of a few kB, and compressing those took longer than all other writing. (Up to `SHORT` bytes adler32
    keeps the lock.)
    """
    data = text.encode()
    if len(data) > SHORT:
        return zlib.compress(data, 1)
    head = struct.pack("<BBBHH", 0x78, 0x01, 0x01, len(data), len(data) ^ 0xFFFF)
    return head + data + struct.pack(">I", zlib.adler32(data))


def inflate(body: bytes) -> str:
    return zlib.decompress(body).decode()


def digest_of(text: str) -> str:
    """Key of a text: its length and Python's own 64-bit hash, which unlike those of hashlib keeps the interpreter lock.

    The key of a text differs between processes, so that several processes may store the same text.
    """
    return f"{hash(text) & 0xFFFF_FFFF_FFFF_FFFF:016x}{len(text):x}"


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value)


def _keep_rows(rows: list[Row]) -> list[Row]:
    return rows


def _clean_rows(rows: list[Row]) -> list[Row]:
    return [tuple(clean(value) if isinstance(value, str) else value for value in row) for row in rows]


class _Layout:
    """How the events of one kind become rows of its table."""

    def __init__(self, cls: type[Event]):
        fields = own_fields(cls)
        self.get = attrgetter(*(f.name for f in fields))
        self.json = [at for at, f in enumerate(fields) if f.metadata["dtype"] == "json"]
        names = "".join(f', "{f.name}"' for f in fields)
        self.insert = f"INSERT INTO {cls.table} (event_id{names})"

    def rows(self, events: Iterable[tuple[int, Event]]) -> list[Row]:
        """The rows of (id, event) pairs."""
        get = self.get
        if not self.json:
            return [(event_id, *get(event)) for event_id, event in events]
        return [(event_id, *self._as_json(get(event))) for event_id, event in events]

    def _as_json(self, values: Row) -> Row:
        converted = list(values)
        for at in self.json:
            converted[at] = _json(converted[at])
        return tuple(converted)


_LAYOUTS = {cls: _Layout(cls) for cls in KINDS}
_owner_of = attrgetter(*OWNER)
_common = attrgetter(*COMMON[len(OWNER) :])
_INSERT_EVENT = f"INSERT INTO events (id, {', '.join(COMMON)})"


def _insert(db: sqlite3.Connection, head: str, rows: Sequence[Row]) -> None:
    """Insert rows with few statements.

    Python releases the interpreter lock at every step of a statement, and while the compiler is busy it takes 5 ms to
    get it back: with one row per step, no more than 200 rows per second could be written.
    """
    if not rows:
        return
    marks = f"({', '.join('?' * len(rows[0]))})"
    step = min(MAX_ROWS, MAX_VARIABLES // len(rows[0]))
    for begin in range(0, len(rows), step):
        part = rows[begin : begin + step]
        db.execute(f"{head} VALUES {', '.join([marks] * len(part))}", list(chain.from_iterable(part)))


class Store:
    """One connection to a session file. Used by one thread at a time; the caller holds the lock."""

    def __init__(self, uri: str, path: Path):
        self.uri = uri
        self.path = path
        self.schema_version = SCHEMA_VERSION
        #: First parts of the compile keys in the file; None where they are not known.
        self.key_tokens: set[str] | None = None
        self.connection = _connect(uri)

    def release(self) -> None:
        """Close the connection before a fork: a child must not inherit it, as SQLite's locks do not survive a fork."""
        self.connection.close()

    def reopen(self) -> None:
        """Connect again after a fork, in either process. sqlite3.OperationalError if the file is gone."""
        self.connection = _connect(self.uri)
        self.connection.execute(NORMAL)
        self.connection.execute(CHECKPOINT)

    @classmethod
    def create(cls, path: Path, meta: dict[str, Any], passing: bool = False) -> Store:
        """Make a new file; `path` must not exist. OSError or sqlite3.OperationalError if it can't be written.

        `passing`: the file is read once and then removed, so it need not survive a crash.
        """
        store = cls(f"{path.absolute().as_uri()}?mode=rwc", path)
        settings = (f"PRAGMA journal_mode={'OFF' if passing else 'WAL'}", OFF if passing else NORMAL, CHECKPOINT)
        for setting in settings:
            store.connection.execute(setting)
        with store.connection as db:
            db.execute("BEGIN IMMEDIATE")
            for statement in _schema():
                db.execute(statement)
            db.executemany(
                "INSERT INTO meta VALUES (?, ?)",
                [(k, json.dumps(v)) for k, v in {"schema_version": SCHEMA_VERSION, **meta}.items()],
            )
        return store

    @classmethod
    def open(cls, path: Path, writable: bool = False) -> Store:
        """Open an existing file. NotASession or NewerSchema, in one line, if it can't be opened."""
        if not path.is_file():
            raise NotASession(f"{path} does not exist")
        uri = path.absolute().as_uri()
        try:
            # A file in a folder that can't be written has no place for WAL's side files: `immutable` needs none.
            modes = ["mode=rw"] if writable else ["mode=ro", "immutable=1"]
            store, version = _first_that_reads(path, [f"{uri}?{mode}" for mode in modes])
        except (sqlite3.DatabaseError, ValueError) as error:
            raise NotASession(f"{path} is not a compilediag session ({error})") from None
        if not isinstance(version, int):
            raise NotASession(f"{path} is not a compilediag session")
        if version > SCHEMA_VERSION:
            raise NewerSchema(
                f"{path} was written by a newer compilediag (schema {version}, this one reads up to {SCHEMA_VERSION});"
                " upgrade compilediag"
            )
        if writable and version < SCHEMA_VERSION:
            store.connection.close()
            raise NotASession(f"{path} was written by an older compilediag (schema {version}): choose another path")
        store.schema_version = version
        return store

    def meta(self) -> dict[str, Any]:
        return {key: json.loads(value) for key, value in self.connection.execute("SELECT key, value FROM meta")}

    def is_recorded_elsewhere(self) -> bool:
        """True while another living process of this machine records to the file."""
        meta = self.meta()
        pid = meta.get("pid")
        return meta.get("stopped_ns") is None and pid != os.getpid() and is_alive(pid)

    def set_meta(self, **values: Any) -> None:
        with self.connection as db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in values.items()])

    def set_rank(self, pid: int, rank: int) -> None:
        """Set the rank of the events of a process that have none."""
        with self.connection as db:
            db.execute("UPDATE events SET rank = ? WHERE pid = ? AND rank IS NULL", (rank, pid))

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
        `packed`: texts that are deflated already, as (digest, size, body). `progress`: with them (pid, what is
        compiling now in that process, a state a thread), for what was there.
        """
        owners = list(owners) if owners is not None else list(map(_owner_of, events))
        try:
            self._append(events, owners, payloads, progress, packed, _keep_rows)
        except UnicodeEncodeError:
            # Rare enough to look for in all texts only when SQLite has met one.
            self._append(events, owners, payloads, progress, packed, _clean_rows)

    def _append(
        self,
        events: Sequence[Event],
        owners: Sequence[Owner],
        payloads: Iterable[tuple[str, str]],
        progress: Any,
        packed: Sequence[tuple[str, int, bytes]],
        prepare: Callable[[list[Row]], list[Row]],
    ) -> None:
        with self.connection as db:
            db.execute("BEGIN IMMEDIATE")
            self._append_payloads(payloads, packed)
            if events:
                first = db.execute("SELECT coalesce(max(id), 0) + 1 FROM events").fetchone()[0]
                of_kind: dict[type[Event], list[tuple[int, Event]]] = defaultdict(list)
                common = []
                for event_id, (event, owner) in enumerate(zip(events, owners, strict=True), first):
                    of_kind[type(event)].append((event_id, event))
                    common.append((event_id, *owner, *_common(event)))
                _insert(db, _INSERT_EVENT, prepare(common))
                for kind, numbered in of_kind.items():
                    _insert(db, _LAYOUTS[kind].insert, prepare(_LAYOUTS[kind].rows(numbered)))
            if progress is not None:
                pid, states = progress
                db.execute("DELETE FROM progress WHERE pid = ?", (pid,))
                db.executemany(
                    "INSERT INTO progress VALUES (?, ?, ?)", [(pid, t, json.dumps(s)) for t, s in states.items()]
                )

    def _append_payloads(self, texts: Iterable[tuple[str, str]], packed: Sequence[tuple[str, int, bytes]]) -> None:
        rows = [(digest, len(text.encode()), deflate(text)) for digest, text in texts]
        _insert(self.connection, "INSERT OR IGNORE INTO payloads", [*rows, *packed])

    def progress(self) -> list[dict[str, Any]]:
        """What compiles now, one dict per thread; empty after the recording has ended."""
        return [state for states in self.progress_by_process().values() for state in states.values()]

    def progress_by_process(self) -> dict[int, States]:
        """What compiles now, by process and thread; empty after the recording has ended."""
        ended = "SELECT 1 FROM meta WHERE key = 'stopped_ns' AND value <> 'null'"
        rows = self.connection.execute(f"SELECT pid, thread, state FROM progress WHERE NOT EXISTS ({ended})")
        found: dict[int, States] = {}
        for pid, thread, state in rows:
            found.setdefault(pid, {})[thread] = json.loads(state)
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
        try:
            self.connection.execute("PRAGMA busy_timeout=0")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self.connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.DatabaseError as error:
            # Another process has it open, or it can't be written: the side file stays, nothing is lost.
            logger.debug("compilediag: %s keeps its -wal file: %s", self.path, error)
        self.connection.close()


def is_alive(pid: object) -> bool:
    """True for a process of this machine that runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(int(str(pid)), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    try:
        # The name is in parentheses and may contain anything, also parentheses.
        return Path(f"/proc/{int(str(pid))}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return True  # No such file system here, or a process of another user.


def _first_that_reads(path: Path, uris: list[str]) -> tuple[Store, Any]:
    for cut_off in (False, True):
        for uri in uris:
            store = Store(uri, path)
            try:
                if cut_off:
                    # SQLite refuses a file that is shorter than its header says, unless writable_schema is set.
                    store.connection.execute("PRAGMA writable_schema=ON")
                store.connection.execute(NORMAL)
                store.connection.execute(CHECKPOINT)
                return store, store.meta().get("schema_version")
            except sqlite3.DatabaseError as error:
                store.connection.close()
                refused = error
    raise refused


def _connect(uri: str) -> sqlite3.Connection:
    return sqlite3.connect(uri, uri=True, timeout=30, isolation_level=None, check_same_thread=False)
