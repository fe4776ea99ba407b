"""One DataFrame a kind of event: the rows of a session's file with documented dtypes.

Every table begins with `event_id, time, rank, pid, compile_id, compile_key`; its other columns are those of the
kind in `events`. One thing is worked out here because it comes from more than one event: the seconds
that a recompile cost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd

from ..events import BY_TABLE, DURATION, Event, SourceStatus, columns
from .reader import TIME, fetch_rows, legible, read_columns
from .store import Store

#: The columns that every table begins with: name -> dtype and meaning.
COMMON_COLUMNS = {
    "event_id": {"dtype": "Int64", "doc": "number of the event in its session"},
    "time": {"dtype": "datetime64[ns, UTC]", "doc": "when it began"},
    "rank": {"dtype": "Int64", "doc": "rank in a distributed job; NA outside of one"},
    "pid": {"dtype": "Int64", "doc": "process that it happened in"},
    "compile_id": {"dtype": "string", "doc": "torch's id: 0/1, or !2/0/1 under compiled autograd"},
    "compile_key": {
        "dtype": "string",
        "doc": "key of one compile attempt, unique in the session: its backward has it too",
    },
}

#: The columns of `Session.events`, the list of all events of all kinds.
EVENT_COLUMNS = {
    "id": {"dtype": "Int64", "doc": "number of the event in its session"},
    "time": COMMON_COLUMNS["time"],
    "kind": {"dtype": "string", "doc": "kind of the event"},
    "rank": COMMON_COLUMNS["rank"],
    "pid": COMMON_COLUMNS["pid"],
    "compile_id": COMMON_COLUMNS["compile_id"],
    "compile_key": COMMON_COLUMNS["compile_key"],
    "title": {"dtype": "string", "doc": "the event in one line"},
    "duration_s": {"dtype": "float64", "doc": "s from begin to end; NA for an event without a length"},
}

#: What every event stores in `events`, beside its id.
SHARED = ("time_ns", "compile_id", "compile_key", "duration_s", "rank", "pid")
_CONVERTED: dict[str, Callable[[Any], Any]] = {"json": json.loads, "boolean": bool}


def table_columns(table: str) -> dict[str, dict[str, str]]:
    """All columns of a table, in order: name -> {"dtype", "doc"}."""
    return {**COMMON_COLUMNS, **columns(BY_TABLE[table])}


def read_table(store: Store, table: str) -> pd.DataFrame:
    """The whole table. Of a damaged file, the rows that can be read."""
    spec = table_columns(table)
    values = read_columns(store, _source(table), "t.event_id", [_sql(name) for name in spec])
    return _finish(table, _frame(spec, values))


def table_rows(store: Store, table: str, after: int = 0) -> list[tuple[Any, ...]]:
    """The rows of a table whose event ids are above `after`, as they are stored: times in ns, JSON as text."""
    spec = table_columns(table)
    source = f"{_source(table)} WHERE t.event_id > {int(after)}"
    rows = fetch_rows(store, [_sql(name) for name in spec], source, "t.event_id")
    return legible(rows, [column["dtype"] for column in spec.values()])


def read_events_of(store: Store, kind: type[Event], after: int = 0) -> list[Any]:
    """The events of a kind whose ids are above `after`, as they were recorded."""
    expressions = {"event_id": "e.id", **{name: f"e.{name}" for name in SHARED}}
    expressions.update({name: f't."{name}"' for name in columns(kind) if name != "duration_s"})
    source = f"{_source(kind.table)} WHERE t.event_id > {int(after)}"
    spec: dict[str, Any] = {"time_ns": {"dtype": TIME}, "duration_s": DURATION, **table_columns(kind.table)}
    dtypes = [spec[name]["dtype"] for name in expressions]
    rows = legible(fetch_rows(store, list(expressions.values()), source, "t.event_id"), dtypes)
    converted = [(at, _CONVERTED[dtype]) for at, dtype in enumerate(dtypes) if dtype in _CONVERTED]
    names = tuple(expressions)
    events = []
    for row in rows:
        values = list(row)
        for at, convert in converted:
            if values[at] is not None:
                values[at] = convert(values[at])
        events.append(kind(**dict(zip(names, values, strict=True))))
    return events


def read_events(store: Store) -> pd.DataFrame:
    stored = {"time": "time_ns"}
    expressions = [stored.get(name, name) for name in EVENT_COLUMNS]
    return _frame(EVENT_COLUMNS, read_columns(store, "events", "id", expressions))


def frame_from_events(cls: type[Event], events: Iterable[Event]) -> pd.DataFrame:
    """The table that a session of just these events would give; event ids count from 1."""
    get = attrgetter("time_ns", "rank", "pid", "compile_id", "compile_key", *columns(cls))
    rows = [(number, *get(event)) for number, event in enumerate(events, 1)]
    spec = table_columns(cls.table)
    return _frame(spec, list(zip(*rows, strict=True)) if rows else [()] * len(spec))


def with_lost_seconds(recompiles: pd.DataFrame, compiles: pd.DataFrame) -> pd.DataFrame:
    """`recompiles` with `lost_s`: the seconds of all compiles of its key, backward included; NA before one ended."""
    if compiles["compile_key"].notna().any():
        timed = compiles.dropna(subset=["compile_key", "duration_s"])
        seconds = recompiles["compile_key"].map(timed.groupby("compile_key")["duration_s"].sum())
        return recompiles.assign(lost_s=recompiles["lost_s"].fillna(seconds).astype("float64"))
    if recompiles.empty or compiles.empty:
        return recompiles
    by = ["compile_id", "pid", "rank"]
    ends = compiles["time"] + pd.to_timedelta(compiles["duration_s"].fillna(0), unit="s")
    done = compiles[[*by, "duration_s"]].assign(time=ends.astype("datetime64[ns, UTC]"))
    done, begun = (f.dropna(subset="time").sort_values("time") for f in (done, recompiles[[*by, "time", "event_id"]]))
    for frame in (done, begun):
        frame["compile_id"], frame["rank"], frame["pid"] = (
            frame["compile_id"].fillna(""),
            frame["rank"].fillna(-1),
            frame["pid"].fillna(-1),
        )
    owned = pd.merge_asof(done, begun, on="time", by=by).dropna(subset=["event_id"])
    lost = owned.groupby("event_id")["duration_s"].sum(min_count=1)
    return recompiles.assign(lost_s=recompiles["event_id"].map(lost).astype("float64"))


def whole_stack(stacks: pd.DataFrame, key: str) -> list[str]:
    """The frames of a call stack as `file:line function`, the outermost first. KeyError if there is no such key."""
    names = ["stack", "caller", "file", "line", "function"]
    frames = {row[0]: row[1:] for row in stacks[names].astype(object).where(stacks[names].notna(), None).to_numpy()}
    told = []
    following: str | None = key
    while following is not None:
        following, file, line, function = frames.pop(following)
        told.append(f"{file}:{line} {function}")
    return told[::-1]


def _source(table: str) -> str:
    return f"{table} t JOIN events e ON e.id = t.event_id"


def _sql(name: str) -> str:
    """The stored column behind a column of a table: what all events share is in `events`."""
    shared = {"event_id": "e.id", "time": "e.time_ns", "duration_s": "e.duration_s"}
    return shared.get(name) or (f"e.{name}" if name in COMMON_COLUMNS else f't."{name}"')


def _frame(spec: dict[str, dict[str, str]], values: Sequence[Sequence[Any]]) -> pd.DataFrame:
    dtypes = [column["dtype"] for column in spec.values()]
    try:
        made = [_column(dtype, v) for dtype, v in zip(dtypes, values, strict=True)]
    except (ValueError, TypeError, OverflowError):
        rows = legible(list(zip(*values, strict=True)), dtypes)
        made = [_column(dtype, [row[i] for row in rows]) for i, dtype in enumerate(dtypes)]
    return pd.DataFrame(dict(zip(spec, made, strict=True)))


def _column(dtype: str, values: Sequence[Any]) -> Any:
    if dtype == "json":
        return pd.Series([json.loads(v) if isinstance(v, str) else v for v in values], dtype=object)
    if dtype == "float64":
        return np.array(values, dtype="float64")
    if dtype == "datetime64[ns, UTC]":
        return pd.DatetimeIndex(np.array(values, dtype="datetime64[ns]")).tz_localize("UTC")
    if dtype == "string":
        # Kept as Python's strings whether or not pyarrow is installed: Arrow has no lone surrogates.
        return pd.array(np.array(values, dtype=object), dtype=pd.StringDtype("python"))
    return _masked(dtype, values)


def _masked(dtype: str, values: Sequence[Any]) -> Any:
    """Integers or booleans with NA, made from a mask: pandas' own way through a list is five times slower."""
    kind, array = ("int64", pd.arrays.IntegerArray) if dtype == "Int64" else ("bool", pd.arrays.BooleanArray)
    objects = np.array(values, dtype=object)
    missing = np.equal(objects, None).astype(bool)
    objects[missing] = 0
    return array(objects.astype(kind), missing)


def _finish(table: str, frame: pd.DataFrame) -> pd.DataFrame:
    if table == SourceStatus.table:
        who = ["rank", "pid", "name"]
        return frame.groupby(who, sort=False, dropna=False).tail(1).sort_values(["pid", "name"]).reset_index(drop=True)
    return frame
