"""Rows of a table as plain dicts: NA is None, a missing table has no rows, a missing column is None."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..events import BY_TABLE

if TYPE_CHECKING:
    import pandas as pd

Row = dict[str, Any]
#: function, file and line.
Place = tuple[str | None, str | None, int | None]


def rows_of(tables: Any, table: str, names: Iterable[str]) -> list[Row]:
    """The rows of `tables.<table>` in order of time, with `names` and the common columns."""
    frame = getattr(tables, table, None)
    wanted = ("event_id", "time", "rank", "pid", "compile_id", *names)
    if frame is None and hasattr(tables, "rows"):
        events = tables.rows(BY_TABLE[table])
        return [{n: event.time_ns if n == "time" else getattr(event, n) for n in wanted} for event in events]
    if frame is None or len(frame) == 0:
        return []
    columns = [_plain(frame[n]) if n in frame else [None] * len(frame) for n in wanted]
    rows = [dict(zip(wanted, values, strict=True)) for values in zip(*columns, strict=True)]
    return sorted(rows, key=row_order)


def _plain(column: pd.Series) -> list[Any]:
    return [None if missing else value for value, missing in zip(column.tolist(), column.isna(), strict=True)]


def row_order(row: Row) -> tuple[bool, Any, int]:
    time = row["time"]
    return (time is None, 0 if time is None else time, row["event_id"] or 0)


def seconds(values: Iterable[Any]) -> float:
    """The sum in s of those that were timed; 0.0 if none was."""
    return float(sum(v for v in values if is_timed(v)))


def is_timed(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def ids(rows: Iterable[Row]) -> tuple[int, ...]:
    return tuple(int(row["event_id"]) for row in rows if row["event_id"] is not None)


def compile_key(row: Row) -> tuple[Any, ...]:
    """What the rows of one compile have in common."""
    return row["rank"], row["pid"], row["compile_id"]


def place_in(row: Row) -> Place:
    return row["function"], row["file"], row["line"]


def place_of(places: Iterable[Place]) -> dict[str, Any]:
    """function, file and line where there is but one place."""
    found = set(places)
    return dict(zip(("function", "file", "line"), found.pop(), strict=True)) if len(found) == 1 else {}


def first(rows: Iterable[Row], name: str) -> Any:
    """The first value of a column that is not missing."""
    return next((row[name] for row in rows if row[name] is not None), None)
