"""Session files that other people may have written: which are accepted, how they are read, and which values count.

SQLite runs what a schema contains: triggers, views, virtual tables, expressions of columns and indexes. A session has
plain tables only, so a file with anything else is refused before its tables are read.

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
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from ..decode.bounded_text import MAX_TEXT, bound_text
from ..errors import NewerSchema, NotASession, WrongInput
from ..events import BY_TABLE, SCHEMA_VERSION, ColumnSpec
from ..formatting import format_line
from ..system.interrupts import ignore

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


def read_facts(rows: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """The facts about a session from (key, JSON) rows. A known fact of another type is missing."""
    facts = {key: (value, parse_json(value)) for key, value in rows if isinstance(key, str)}
    return {
        key: value
        for key, (text, value) in facts.items()
        if text == "null" or (value is not None and (key not in _FACTS or _FACTS[key](value)))
    }


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
