"""Reading tables of a session file: quickly by column, and by row what a damaged file still gives."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .store import Store

Found = TypeVar("Found")
TIME = "datetime64[ns, UTC]"
#: What the cells of a column are, as they are stored.
TYPES = {"string": str, "Int64": int, "float64": (float, int), "boolean": int, TIME: int}
#: What SQLite says of a file that is damaged or cut off, and not of one that is busy.
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}


def read_columns(store: Store, source: str, order: str, columns: Sequence[str]) -> list[Sequence[Any]]:
    """The values of each column, rows ordered by `order`, as they are stored.

    `source` is what follows FROM; `columns` are SQL expressions. They go through SQLite's JSON, which is three
    times faster than rows of Python objects and keeps 15 digits of a float: a nanosecond in eleven days. Of a
    damaged file: the rows that can be read.
    """
    try:
        return _by_column(store.connection, source, order, columns)
    except (sqlite3.DatabaseError, ValueError):  # ValueError: SQLite writes an infinity as no JSON has it
        rows = read_rows(store, f"SELECT {', '.join(columns)} FROM {source}", order)
        return list(zip(*rows, strict=True)) if rows else [()] * len(columns)


def _by_column(db: sqlite3.Connection, source: str, order: str, columns: Sequence[str]) -> list[Sequence[Any]]:
    rows, *counts = db.execute(f"SELECT count(*), {', '.join(f'count({e})' for e in columns)} FROM {source}").fetchone()
    filled = [expression for expression, count in zip(columns, counts, strict=True) if count]
    inner = ", ".join(f"{expression} AS c{i}" for i, expression in enumerate(filled))
    outer = ", ".join(f"json_group_array(c{i})" for i in range(len(filled)))
    found: dict[str, Sequence[Any]] = {}
    if filled:
        texts = db.execute(f"SELECT {outer} FROM (SELECT {inner} FROM {source} ORDER BY {order})").fetchone()
        found.update(zip(filled, map(json.loads, texts), strict=True))
    missing: Sequence[Any] = [None] * rows
    return [found.get(expression, missing) for expression in columns]


def fetch_rows(store: Store, columns: Sequence[str], source: str, order: str) -> list[tuple[Any, ...]]:
    """The rows in one step of SQLite, as JSON: beside a busy compiler Python waits 5 ms a step to go on.

    Of a damaged file: the rows that can be read, one by one.
    """
    names = [f"c{i}" for i in range(len(columns))]
    inner = ", ".join(f"{column} AS {name}" for column, name in zip(columns, names, strict=True))
    rows = f"SELECT {inner} FROM {source} ORDER BY {order}"
    query = f"SELECT json_group_array(json_array({', '.join(names)})) FROM ({rows})"
    try:
        return [tuple(row) for row in json.loads(store.connection.execute(query).fetchone()[0])]
    except (sqlite3.DatabaseError, ValueError):
        return read_rows(store, f"SELECT {', '.join(columns)} FROM {source}", order)


def read_rows(store: Store, select: str, order: str) -> list[tuple[Any, ...]]:
    """The rows in order; where a damaged page ends the reading, those before it and those after it."""
    store.connection.text_factory = _text
    rows: list[tuple[Any, ...]] = []
    if _read_into(rows, store, f"{select} ORDER BY {order}"):
        return rows
    rest: list[tuple[Any, ...]] = []
    _read_into(rest, store, f"{select} ORDER BY {order} DESC")
    seen = {row[0] for row in rows}
    return rows + [row for row in reversed(rest) if row[0] not in seen]


def _read_into(rows: list[tuple[Any, ...]], store: Store, query: str) -> bool:
    try:
        rows.extend(store.connection.execute(query))
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        return False
    return True


def last_id(store: Store, table: str, key: str) -> int:
    """The highest id of a table, 0 if it is empty; -1 where damage hides it."""
    query = f"SELECT coalesce(max({key}), 0) FROM {table}"
    return unless_damaged(lambda: store.connection.execute(query).fetchone()[0], -1)


def unless_damaged(read: Callable[[], Found], otherwise: Found) -> Found:
    """What `read` finds in a file; `otherwise` where damage hides it."""
    try:
        return read()
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        return otherwise


def legible(rows: list[tuple[Any, ...]], dtypes: Sequence[str]) -> list[tuple[Any, ...]]:
    """`rows`, without the cells that are not of their column's dtype and the rows without a time: damage only."""
    time = dtypes.index(TIME)
    for index, dtype in enumerate(dtypes):
        if not all(_fits(value, dtype) for value in {row[index] for row in rows}):
            rows = [(*row[:index], row[index] if _fits(row[index], dtype) else None, *row[index + 1 :]) for row in rows]
    return rows if all(row[time] is not None for row in rows) else [row for row in rows if row[time] is not None]


def _fits(value: Any, dtype: str) -> bool:
    if value is None:
        return dtype != TIME
    if dtype != "json":
        return isinstance(value, TYPES[dtype])
    try:
        return isinstance(value, str) and isinstance(json.loads(value), list | dict)
    except ValueError:
        return False


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """True if the file is to blame, not somebody who has it locked."""
    return error.sqlite_errorcode & 0xFF in DAMAGE or "no such table" in str(error)


def _text(stored: bytes) -> str:
    """Text as it is, and of what damage has made illegible that which is not."""
    return stored.decode("utf-8", "replace")
