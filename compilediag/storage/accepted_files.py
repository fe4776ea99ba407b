"""Which files are accepted as sessions: regular files of SQLite with plain tables, of a schema that this version reads.

SQLite runs what a schema contains: triggers, views, virtual tables, expressions of columns and indexes. A session has
plain tables only, so a file with anything else is refused before its tables are read.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..errors import NewerSchema, NotASession, WrongInput
from ..events import BY_TABLE, SCHEMA_VERSION
from ..formatting import format_line
from ..interrupts import ignore

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


def check_file(path: Path, writable: bool) -> None:
    """NotASession if a path is not a file that can be opened."""
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "is not a regular file" if path.exists() else "does not exist"
        raise NotASession(f"{path} {what}")
    for ending in ("-wal", "-shm", "-journal"):
        _check_side_file(Path(f"{os.path.realpath(path)}{ending}"))
    if writable and Path(f"{os.path.realpath(path)}-journal").exists():
        # SQLite would apply it, and delete the file that it names.
        raise NotASession(f"{path} has a journal of an interrupted write ({path}-journal); choose another path")


def _check_side_file(file: Path) -> None:
    """NotASession if SQLite would open anything but a regular file beside a session: a pipe would never end."""
    is_regular = True
    # Mostly there is none. What is raised and caught keeps its frames alive if an interrupt comes just then.
    if os.path.lexists(file):
        with ignore(OSError):  # It is gone now.
            is_regular = stat.S_ISREG(os.lstat(file).st_mode)
    if not is_regular:
        raise NotASession(f"{file} is not a regular file; remove it")


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
    return dict(_read_tables(objects, path))


def _read_tables(objects: list[tuple[object, object, object]], path: Path) -> Iterator[tuple[str, frozenset[str]]]:
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
        yield found


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
