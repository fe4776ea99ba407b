"""The tables of a session file: as typed events, as rows for the live page, and as DataFrames.

Every table has `event_id, time, rank, pid, compile_id, compile_key`; its other columns are those of the kind in
`events`. Stored rows begin with the common columns. A DataFrame begins with `compile_id` and the columns that the kind
shows first. Reading goes through SQLite's JSON, in one step: that is three times faster than rows of Python objects,
and beside a busy compiler Python waits 5 ms a step for the interpreter. JSON keeps 15 digits of a float, which is a
nanosecond in eleven days. Where a file is damaged, the rows that can be read are read one by one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..events import BY_TABLE, ColumnSpec, Event, SourceStatus, columns, describe_column
from .cells import MAX_INT, MAX_TIME_NS, TIME, Check, find_check, find_range, keep_legible, make_checks, parse_json
from .rows import OWNER
from .store import Store

if TYPE_CHECKING:
    import pandas as pd

E = TypeVar("E", bound=Event)
Value = TypeVar("Value")
#: Strings and numbers of rows that are kept: names of functions, files and phases are the same in most of them.
Pool = dict[Any, Any]

#: The columns that every table has.
COMMON_COLUMNS: dict[str, ColumnSpec] = {
    "event_id": describe_column("Int64", "number of the event in its session"),
    "time": describe_column(TIME, "when it began"),
    "rank": describe_column("Int64", "rank in a distributed job; NA outside of one"),
    "pid": describe_column("Int64", "process that it happened in"),
    "compile_id": describe_column(
        "string", "torch's id of the compile, for display: 0/1, or !2/0/1 under compiled autograd; torch reuses ids"
    ),
    "compile_key": describe_column(
        "string",
        "key of the compile attempt, unique in the session; the backward compile of a frame has the key of the frame's",
    ),
}

#: The columns of `Session.events`, the list of all events of all kinds.
EVENT_COLUMNS: dict[str, ColumnSpec] = {
    "compile_id": COMMON_COLUMNS["compile_id"],
    "kind": describe_column("string", "kind of the event"),
    "title": describe_column("string", "the event in one line"),
    "duration_s": describe_column("float64", "duration; NA for an event without one", unit="s"),
    "time": COMMON_COLUMNS["time"],
    "id": COMMON_COLUMNS["event_id"],
    "rank": COMMON_COLUMNS["rank"],
    "pid": COMMON_COLUMNS["pid"],
    "compile_key": COMMON_COLUMNS["compile_key"],
}

#: The fields of every event that are stored in `events`, beside its id.
SHARED = ("time_ns", "compile_id", "compile_key", "duration_s", "rank", "pid")
#: dtype -> what makes the value of an event's field from a stored cell.
FROM_CELL: dict[str, Callable[[Any], Any]] = {"json": json.loads, "boolean": bool}
#: Rows that are read one by one before their size is looked at.
BATCH = 100
#: What SQLite reports for a file that is damaged or cut off, and not for one that is busy.
DAMAGE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}


def table_columns(table: str) -> dict[str, ColumnSpec]:
    """All columns of a table by name, in the order of its stored rows."""
    return {**COMMON_COLUMNS, **columns(BY_TABLE[table])}


def frame_columns(table: str) -> dict[str, ColumnSpec]:
    """All columns of a table by name, in the order of its DataFrame: the most useful ones first."""
    kind = BY_TABLE[table]
    spec = table_columns(table)
    names = dict.fromkeys(("compile_id", *kind.shown_first, *columns(kind), *COMMON_COLUMNS))
    return {name: spec[name] for name in names}


# Typed events and rows


def read_events_of(store: Store, kind: type[E], pool: Pool, after: int = 0) -> list[E]:
    """The events of a kind whose ids are above `after`, as they were recorded. Equal texts are one object of `pool`."""
    own = [name for name in columns(kind) if name != "duration_s"]
    names = ("event_id", *SHARED, *own)
    expressions = ["e.id", *(f"e.{name}" for name in SHARED), *(f't."{name}"' for name in own)]
    spec = {**table_columns(kind.table), "time_ns": COMMON_COLUMNS["time"], "duration_s": EVENT_COLUMNS["duration_s"]}
    spec = {name: spec[name] for name in names}
    source = f"{_join(kind.table)} WHERE t.event_id > {int(after)}"
    cells = keep_legible(read_columns(store, source, "t.event_id", expressions), make_checks(spec), 1)
    for at, (name, column) in enumerate(spec.items()):
        if convert := FROM_CELL.get(column["dtype"]):
            cells[at] = [None if cell is None else convert(cell) for cell in cells[at]]
        elif column["dtype"] == "string" or name in OWNER:
            cells[at] = [pool.setdefault(cell, cell) for cell in cells[at]]
    return [kind(**dict(zip(names, row, strict=True))) for row in zip(*cells, strict=True)]


# DataFrames


def read_table(store: Store, table: str) -> pd.DataFrame:
    """The whole table; of sources, the last state of each."""
    spec = frame_columns(table)
    frame = _read_frame(store, spec, _join(table), "t.event_id", [_stored_column(name) for name in spec])
    if table != SourceStatus.table:
        return frame
    last = frame.groupby(["rank", "pid", "name"], sort=False, dropna=False).tail(1)
    return last.sort_values(["pid", "name"]).reset_index(drop=True)


def read_events(store: Store) -> pd.DataFrame:
    """The list of all events of all kinds."""
    expressions = ["time_ns" if name == "time" else name for name in EVENT_COLUMNS]
    return _read_frame(store, EVENT_COLUMNS, "events", "id", expressions)


def _read_frame(
    store: Store, spec: dict[str, ColumnSpec], source: str, order: str, expressions: Sequence[str]
) -> pd.DataFrame:
    # A file can be made to have no end. Then this takes too long, which is an error; a part of it would be none. A
    # plain `count(*)` is one step of SQLite, which can't be ended.
    unless_damaged(lambda: store.connection.execute(f"SELECT count({order}) FROM {source}").fetchone(), None)
    return _make_frame(spec, read_columns(store, source, order, expressions))


def add_lost_seconds(recompiles: pd.DataFrame, compiles: pd.DataFrame) -> pd.DataFrame:
    """`recompiles` with `lost_s`: the seconds of all compiles of its key, backward included; NA before one ended. One
    without a step has that of its compile.
    """
    by_key = compiles.groupby("compile_key")
    keys = recompiles["compile_key"]
    found, steps = keys.map(by_key["duration_s"].sum(min_count=1)), keys.map(by_key["step"].first())
    return recompiles.assign(
        lost_s=recompiles["lost_s"].fillna(found).astype("float64"),
        step=recompiles["step"].fillna(steps.astype("Int64")),
    )


def find_stack(stacks: pd.DataFrame, key: str) -> list[str]:
    """The frames of a call stack as `file:line function`, the outermost first. KeyError if there is no such key."""
    names = ["stack", "caller", "file", "line", "function"]
    frames = {row[0]: row[1:] for row in stacks[names].astype(object).where(stacks[names].notna(), None).to_numpy()}
    lines = []
    following: str | None = key
    while following is not None:
        following, file, line, function = frames.pop(following)
        lines.append(f"{file}:{line} {function}")
    return lines[::-1]


def _join(table: str) -> str:
    return f"{table} t JOIN events e ON e.id = t.event_id"


def _stored_column(name: str) -> str:
    """The SQL of a column of a table: what all events share is in `events`."""
    shared = {"event_id": "e.id", "time": "e.time_ns", "duration_s": "e.duration_s"}
    return shared.get(name) or (f"e.{name}" if name in COMMON_COLUMNS else f't."{name}"')


def _make_frame(spec: dict[str, ColumnSpec], values: Sequence[Sequence[Any]]) -> pd.DataFrame:
    import pandas as pd

    columns = list(spec.values())
    try:
        arrays = [_make_array(column, cells) for column, cells in zip(columns, values, strict=True)]
    except (ValueError, TypeError, OverflowError, RecursionError):
        legible = keep_legible(values, make_checks(spec), list(spec).index("time"))
        arrays = [_make_array(column, cells) for column, cells in zip(columns, legible, strict=True)]
    return pd.DataFrame(dict(zip(spec, arrays, strict=True)))


def _make_array(column: ColumnSpec, values: Sequence[Any]) -> Any:
    """The values of a column as an array. ValueError or another error if one of them does not fit."""
    import numpy as np
    import pandas as pd

    dtype = column["dtype"]
    if dtype == "json":
        return pd.Series([None if v is None else _parse_list(v, find_check(column)) for v in values], dtype=object)
    if dtype == "float64":
        floats = np.array(values, dtype="float64")
        least, most = find_range(column)
        return _require(floats, np.isnan(floats) | ((floats >= least) & (floats <= most)))
    if dtype == TIME:
        times = np.array(values, dtype="int64")
        _require(times, (times >= 0) & (times < MAX_TIME_NS))
        return pd.DatetimeIndex(times.astype("datetime64[ns]")).tz_localize("UTC")
    if dtype == "string":
        # Kept as Python's strings whether or not pyarrow is installed: Arrow has no lone surrogates.
        return pd.array(np.array(values, dtype=object), dtype=pd.StringDtype("python"))
    return _make_masked_array(dtype, values)


def _parse_list(text: object, fits: Check) -> Any:
    """The list or dict of a column of JSON. ValueError if a cell is anything else."""
    value = parse_json(text)
    if isinstance(value, (list, dict)) and fits(value):
        return value
    raise ValueError("a cell does not fit its column")


def _require(values: Any, are_good: Any) -> Any:
    """`values`; ValueError unless all of them are good."""
    if are_good.all():
        return values
    raise ValueError("a number is out of the range of its column")


def _make_masked_array(dtype: str, values: Sequence[Any]) -> Any:
    """Integers or booleans with NA, made from a mask: pandas' own way through a list is five times slower."""
    import numpy as np
    import pandas as pd

    kind, array = ("int64", pd.arrays.IntegerArray) if dtype == "Int64" else ("bool", pd.arrays.BooleanArray)
    cells = np.array(values, dtype=object)
    missing = np.array([value is None for value in values], dtype=bool)
    cells[missing] = 0
    numbers = cells.astype(kind)
    return array(
        numbers if dtype == "boolean" else _require(numbers, (numbers >= -MAX_INT) & (numbers <= MAX_INT)), missing
    )


# Reading from SQLite


def read_columns(store: Store, source: str, order: str, expressions: Sequence[str]) -> list[Sequence[Any]]:
    """The values of each column, as they are stored, in one step of SQLite. `source` is what follows FROM."""
    names = [f"c{i}" for i in range(len(expressions))]
    inner = ", ".join(f"{expression} AS {name}" for expression, name in zip(expressions, names, strict=True))
    outer = ", ".join(f"json_group_array({name})" for name in names)
    rows = f"SELECT {inner} FROM {source} ORDER BY {order} LIMIT {store.connection.max_rows}"
    try:
        return [json.loads(text) for text in store.connection.execute(f"SELECT {outer} FROM ({rows})").fetchone()]
    except (sqlite3.DatabaseError, ValueError):  # ValueError: SQLite writes an infinity as no JSON has it
        found = read_rows(store, f"SELECT {order}, {', '.join(expressions)} FROM {source}", order)
        return [[row[at] for row in found] for at in range(1, len(expressions) + 1)]


def find_last_id(store: Store, table: str) -> int:
    """The highest event id of a table, 0 if it is empty; -1 where damage hides it."""
    number = "id" if table == "events" else "event_id"
    query = f"SELECT coalesce(max({number}), 0) FROM {table}"
    return unless_damaged(lambda: int(store.connection.execute(query).fetchone()[0]), -1)


# Damaged files


def read_rows(store: Store, select: str, order: str) -> list[tuple[Any, ...]]:
    """The rows in order; where a damaged page ends the reading, those before it and those after it."""
    store.connection.text_factory = _decode
    rows: list[tuple[Any, ...]] = []
    later: list[tuple[Any, ...]] = []
    with store.snapshot():
        if _read_into(rows, store, f"{select} ORDER BY {order}"):
            return rows
        _read_into(later, store, f"{select} ORDER BY {order} DESC")
    seen = {row[0] for row in rows}
    return rows + [row for row in reversed(later) if row[0] not in seen]


def _read_into(rows: list[tuple[Any, ...]], store: Store, query: str) -> bool:
    try:
        size, found = 0, store.connection.execute(f"{query} LIMIT {store.connection.max_rows}")
        while size < store.connection.max_length and (batch := found.fetchmany(BATCH)):
            rows.extend(batch)
            size += sum(len(cell) for row in batch for cell in row if isinstance(cell, (str, bytes)))
    except sqlite3.DatabaseError as error:
        store.connection.raise_if_over()
        if not _is_damage(error):
            raise
        return False
    return True


def unless_damaged(read: Callable[[], Value], otherwise: Value) -> Value:
    """What `read` returns; `otherwise` where the file is damaged."""
    try:
        return read()
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        return otherwise


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """True if the file is to blame, not somebody who has it locked."""
    return error.sqlite_errorcode & 0xFF in DAMAGE or "no such table" in str(error)


def _decode(stored: bytes) -> str:
    """A stored text, with replacement characters where damage has made it illegible."""
    return stored.decode("utf-8", "replace")
