"""Reads session files of older schemas: a copy gets today's columns and compile keys; the file itself is not changed.

Files before schema 4 name compiles by torch's id alone, which begins again after `torch._dynamo.reset()`. An attempt is
found from the times: it begins with a recompile, or with a compile of a frame that no recompile announced, and lasts
until the next one of its id in its process. What ended in between belongs to it.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import itertools
import sqlite3
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import NotASession
from ..events import KINDS, SCHEMA_VERSION, Calls, Compile, CudaGraphAction, GuardFailure, Recompile, SourceStatus
from .cells import MAX_SECONDS, MAX_TIME_NS
from .rows import own_fields
from .session_files import create_private, remove_temporary, temporary_file
from .store import SQL_TYPES, Store

#: Rank and pid of a process; with a compile id, what torch names a compile by.
Process = tuple[int | None, int | None]
CompileName = tuple[int | None, int | None, str]
#: Events of a compiled entry: those before its first attempt are of one that was there before the recording.
OF_AN_ENTRY = (Calls.kind, CudaGraphAction.kind)
NS_PER_S = 1e9
#: The first schema whose files have compile keys and codes of reasons.
KEYS_SINCE = 4
#: Status of a source, what the text of its reason begins with in older files, and its code. The first that fits counts.
REASON_CODES = (
    ("off", "not asked for", "not_requested"),
    ("off", "detail is ", "detail_level"),
    ("off", "nothing to watch", "nothing_to_watch"),
    ("off", "the watch has ended", "watch_ended"),
    ("unavailable", "torch's trace log does not tell", "not_in_logs"),
    ("unavailable", "", "missing_api"),
    ("failed", "", "errors"),
)


def open_current(path: Path) -> Store:
    """Open a session file to read it. If its schema is older, open an upgraded copy, which is removed with the store.

    NotASession or NewerSchema, in one line, if it can't be read.
    """
    store = Store.open(path)
    if store.schema_version == SCHEMA_VERSION:
        return store
    copy = temporary_file()
    create_private(copy)
    try:
        with contextlib.closing(sqlite3.connect(copy)) as target:
            store.connection.backup(target)
            upgrade(target, store.schema_version)
    except BaseException as error:
        remove_temporary(copy)
        if not isinstance(error, sqlite3.DatabaseError):
            raise
        raise NotASession(f"{path} was written by an older compilediag and is damaged ({error})") from None
    finally:
        store.connection.close()
    upgraded = Store.open(copy)
    weakref.finalize(upgraded, remove_temporary, copy)
    return upgraded


def upgrade(db: sqlite3.Connection, version: int) -> None:
    """Give the tables the columns that they lack, and every event of a compile the key of its attempt."""
    _add_columns(db, "events", {"compile_key": "TEXT"})
    for kind in KINDS:
        db.execute(f"CREATE TABLE IF NOT EXISTS {kind.table} (event_id INTEGER PRIMARY KEY)")
        _add_columns(db, kind.table, {f.name: SQL_TYPES[f.metadata["dtype"]] for f in own_fields(kind)})
    if version < KEYS_SINCE:
        _clear_misfits(db)
        _add_keys(db)
        _add_reason_codes(db)
    db.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(SCHEMA_VERSION),))
    db.commit()


def _clear_misfits(db: sqlite3.Connection) -> None:
    """Clear the values that keys are computed from where they are not of their type: a file can have anything."""
    db.execute(f"DELETE FROM events WHERE typeof(time_ns) <> 'integer' OR time_ns NOT BETWEEN 0 AND {MAX_TIME_NS}")
    numbers = f"typeof(duration_s) IN ('real', 'integer') AND duration_s BETWEEN 0 AND {MAX_SECONDS}"
    db.execute(f"UPDATE events SET duration_s = NULL WHERE NOT ({numbers})")
    db.execute("UPDATE events SET compile_id = NULL WHERE typeof(compile_id) <> 'text'")


def _add_keys(db: sqlite3.Connection) -> None:
    attempts = AttemptTimes(db)
    db.executemany("UPDATE events SET compile_key = ? WHERE id = ?", list(_find_keys(db, attempts)))
    for kind, name in ((Recompile, "closest"), (GuardFailure, "entry")):
        keys = list(_find_entry_keys(db, attempts, kind.table, f"{name}_compile_id"))
        db.executemany(f"UPDATE {kind.table} SET {name}_compile_key = ? WHERE event_id = ?", keys)


def _add_reason_codes(db: sqlite3.Connection) -> None:
    """Give the states of sources the code of their reason. Older files have only its text."""
    for status, beginning, code in REASON_CODES:
        db.execute(
            f"UPDATE {SourceStatus.table} SET reason_code = ? "
            "WHERE reason_code IS NULL AND status = ? AND coalesce(reason, '') LIKE ?",
            (code, status, f"{beginning}%"),
        )


def _add_columns(db: sqlite3.Connection, table: str, columns: dict[str, str]) -> None:
    stored = {name for _, name, *_ in db.execute(f"PRAGMA table_info({table})")}
    for name, sql_type in columns.items():
        if name not in stored:
            db.execute(f'ALTER TABLE {table} ADD COLUMN "{name}" {sql_type}')


class AttemptTimes:
    """The compile attempts of a file, by the times at which they began."""

    def __init__(self, db: sqlite3.Connection):
        self._created = dict(db.execute("SELECT key, value FROM meta")).get("created_ns")
        self._numbers: dict[Process, Iterator[int]] = defaultdict(lambda: itertools.count(1))
        self._tokens: dict[Process, str] = {}
        #: When the attempts of each name began, in order, and their keys.
        self._starts: dict[CompileName, list[int]] = {}
        self._keys: dict[CompileName, list[str]] = {}
        #: Keys of the entries that were there before the recording.
        self._earlier: dict[CompileName, str] = {}
        steps = _read_steps(db)
        begun = [(start, name) for name, of_it in steps.items() for start in _find_starts(sorted(of_it))]
        for start, name in sorted(begun, key=lambda found: found[0]):
            self._starts.setdefault(name, []).append(start)
            self._keys.setdefault(name, []).append(self._make_key(name))

    def find_key(self, name: CompileName, time_ns: int, kind: str) -> str:
        """The key of the attempt that an event which ended at `time_ns` belongs to."""
        at = bisect.bisect_right(self._starts.get(name, ()), time_ns)
        if at == 0 and (kind in OF_AN_ENTRY or name not in self._keys):
            return self._find_earlier(name)
        return self._keys[name][max(at - 1, 0)]

    def find_entry(self, name: CompileName, time_ns: int) -> str:
        """The key of the entry that a recompile at `time_ns` was compared with: the last one that began before it."""
        at = bisect.bisect_left(self._starts.get(name, ()), time_ns)
        return self._keys[name][at - 1] if at else self._find_earlier(name)

    def _find_earlier(self, name: CompileName) -> str:
        if name not in self._earlier:
            self._earlier[name] = self._make_key(name)
        return self._earlier[name]

    def _make_key(self, name: CompileName) -> str:
        process = name[:2]
        if process not in self._tokens:
            text = f"{self._created} {process}"
            self._tokens[process] = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()[:8]
        return f"{self._tokens[process]}.{next(self._numbers[process])}"


def _read_steps(db: sqlite3.Connection) -> dict[CompileName, list[tuple[float, int, bool]]]:
    """What begins attempts: of each recompile and each compile of a frame when it was recorded, when it began, and
    whether it is a recompile.
    """
    query = f"""
        SELECT e.rank, e.pid, e.compile_id, e.time_ns, coalesce(e.duration_s, 0), e.kind = '{Recompile.kind}'
        FROM events e LEFT JOIN {Compile.table} c ON c.event_id = e.id
        WHERE e.compile_id IS NOT NULL
        AND (e.kind = '{Recompile.kind}' OR e.kind = '{Compile.kind}' AND coalesce(c.trigger, 'dynamo') = 'dynamo')
    """
    steps: dict[CompileName, list[tuple[float, int, bool]]] = defaultdict(list)
    for rank, pid, compile_id, time_ns, seconds, is_recompile in db.execute(query):
        recorded = time_ns if is_recompile else time_ns + seconds * NS_PER_S
        steps[rank, pid, compile_id].append((recorded, time_ns, bool(is_recompile)))
    return steps


def _find_starts(steps: Iterable[tuple[float, int, bool]]) -> list[int]:
    """When the attempts of one name began. A recompile begins one, and the compile that is recorded next is its own."""
    starts: list[int] = []
    is_announced = False
    for _, begin_ns, is_recompile in steps:
        if is_recompile or not is_announced:
            starts.append(begin_ns)
        else:
            # A recompile is found a moment after its compile began.
            starts[-1] = min(starts[-1], begin_ns)
        is_announced = is_recompile
    return starts


def _find_keys(db: sqlite3.Connection, attempts: AttemptTimes) -> Iterator[tuple[str, int]]:
    query = """
        SELECT id, rank, pid, compile_id, time_ns, coalesce(duration_s, 0), kind FROM events
        WHERE compile_id IS NOT NULL ORDER BY id
    """
    for event_id, rank, pid, compile_id, time_ns, seconds, kind in db.execute(query):
        end_ns = time_ns + round(seconds * NS_PER_S)
        yield attempts.find_key((rank, pid, compile_id), end_ns, kind), event_id


def _find_entry_keys(
    db: sqlite3.Connection, attempts: AttemptTimes, table: str, column: str
) -> Iterator[tuple[str, int]]:
    query = f"""
        SELECT e.id, e.rank, e.pid, t.{column}, e.time_ns FROM {table} t JOIN events e ON e.id = t.event_id
        WHERE t.{column} IS NOT NULL ORDER BY e.id
    """
    for event_id, rank, pid, entry_id, time_ns in db.execute(query):
        yield attempts.find_entry((rank, pid, entry_id), time_ns), event_id
