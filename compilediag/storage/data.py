"""The data of one session file, read-only: typed rows, DataFrames and texts, and the properties of a session for them.

Every table has `event_id, time, rank, pid, compile_id, compile_key`; its other columns are those of the kind in
`events`. Stored rows begin with the common columns. A DataFrame begins with `compile_id` and the columns that the kind
shows first. Reading goes through SQLite's JSON, in one step: that is three times faster than rows of Python objects,
and beside a busy compiler Python waits 5 ms a step for the interpreter. JSON keeps 15 digits of a float, which is a
nanosecond in eleven days. Where a file is damaged, the rows that can be read are read one by one.
"""

from __future__ import annotations

import abc
import contextlib
import json
import os
import sqlite3
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CompilediagError
from ..events import (
    BY_TABLE,
    ColumnSpec,
    Compile,
    Event,
    LostSeconds,
    Recompile,
    SourceStatus,
    columns,
    describe_column,
    keep_last_states,
)
from ..system.files import check_replaceable, create_private
from ..system.interrupts import pass_on
from ..system.program import is_recorded_elsewhere
from .rows import OWNER, inflate
from .store import (
    MAX_INT,
    MAX_TIME_NS,
    SESSION_FILE,
    TIME,
    Check,
    Store,
    find_check,
    find_range,
    keep_legible,
    make_checks,
    parse_json,
)

if TYPE_CHECKING:
    import pandas as pd


class TableProperty(property):
    """The property of a session that is the table of that name, as a new DataFrame."""

    def __init__(self, doc: str):
        super().__init__(lambda session: session.table(self._name))
        self.__doc__ = doc

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    if TYPE_CHECKING:

        def __get__(self, session: Any, owner: type | None = None, /) -> pd.DataFrame: ...  # type: ignore[override]


class TableProperties(abc.ABC):
    """A DataFrame for each table; its columns are documented in `docs/tables.md`."""

    @abc.abstractmethod
    def table(self, name: str) -> pd.DataFrame:
        """The table with this name, as a new DataFrame."""

    events = TableProperty(
        "One row per event of any kind: id, time, kind, rank, pid, compile_id, compile_key, title, duration_s."
    )
    compiles = TableProperty("One row per compile of a frame, backward or autograd graph.")
    recompiles = TableProperty("One row per recompile, compared with the entry that has the fewest failing guards.")
    guard_failures = TableProperty("One row per failing guard of one earlier entry at one recompile.")
    refused_calls = TableProperty(
        "Calls that a stance, or `aot_compile`, kept from compiling: one row per function and failing guard, then "
        "counts of further calls."
    )
    cache_lookups = TableProperty("One row per lookup or store in a compile cache.")
    autotune = TableProperty("One row per timing of an autotuning choice.")
    cudagraphs = TableProperty(
        "One row per warm-up, capture, re-record or skip of a CUDA graph, or a number of replays."
    )
    kernels = TableProperty("One row per kernel that was compiled, here or in a compile worker.")
    graph_breaks = TableProperty("One row per graph break.")
    phases = TableProperty("One row per timed phase of a compile.")
    trace_functions = TableProperty(
        'One row per compile and function that Dynamo traced, at one line of its caller; needs detail "full".'
    )
    artifacts = TableProperty(
        "One row per stored text (graph, code, guard tree); `artifact(event_id)` returns the text."
    )
    dynamic_decisions = TableProperty("One row per input or attribute that torch made dynamic automatically.")
    stacks = TableProperty("One row per frame of a call stack; `stack(key)` returns a whole stack.")
    symbolic_shapes = TableProperty("One row per symbol that was created or specialized, and per guard on symbols.")
    export_problems = TableProperty(
        "One row per problem of an export: a result that can be wrong, or a constraint that cannot hold."
    )
    collectives = TableProperty("One row per collective operator of a graph, in the order in which they run.")
    calls = TableProperty(
        "Calls of each compiled entry, and of each function that torch gave up on; sum the rows of an entry."
    )
    vllm_configs = TableProperty(
        "One row per part of a model that vLLM compiles: how it is cut, for which sizes, and what is switched on."
    )
    vllm_compiles = TableProperty("One row per piece of a model and range of sizes that vLLM compiles it for.")
    warmup_ends = TableProperty("One row per process whose warm-up ended; `incidents` has what compiled later.")
    rank_members = TableProperty(
        "One row per rank of a job that was read group by group: `like` is the rank whose rows the tables have."
    )
    sources = TableProperty("One row per source: its last state.")


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


class _Settled(threading.local):
    """Whether this thread reads what it has flushed already, and the kinds that it has read since."""

    active = False

    def __init__(self) -> None:
        self.kinds: set[type[Event]] = set()


class SessionData(TableProperties):
    """The data of one session file. `store` is read instead of the file, if the file can't be read."""

    #: True if this process recorded the session.
    is_ours = False

    def __init__(self, path: Path, store: Store | None = None):
        self.path = path
        self.store = store or Store.open(path)
        self.lock = threading.RLock()
        self._settled = _Settled()
        self._frames: dict[str, tuple[int, pd.DataFrame]] = {}
        self._rows: dict[type[Event], list[Any]] = {}
        self._pool: Pool = {}
        self._lost = LostSeconds()
        self._compiles_added = 0

    @property
    def state(self) -> str:
        """watching while another living process of this machine records the session, else loaded."""
        with self.lock:
            return "watching" if is_recorded_elsewhere(unless_damaged(self.store.meta, {})) else "loaded"

    def flush(self, statuses: bool = False) -> None:
        """Bring the file up to date before it is read. `statuses`: what the sources have counted too."""

    def end_warmup(self, on_compile: str) -> None:
        """CompilediagError: the warm-up is ended by the process that records, while it does."""
        raise CompilediagError(f"{self.path} is not being recorded by this process, so its warm-up can't be ended here")

    def write_copy(self, target: Path) -> Path:
        """Write a copy of the session, whole or not at all, and return its path; CompilediagError if it can't be
        written, or is a file that is not a session.
        """
        self.flush()
        try:
            check_replaceable(target, SESSION_FILE)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compilediag-") as folder:
                copy = Path(folder) / target.name
                create_private(copy)
                with self.lock:
                    self.store.connection.execute("VACUUM INTO ?", (str(copy),))
                os.replace(copy, target)
        except (OSError, sqlite3.Error) as error:
            pass_on(error)
            reason = error.strerror if isinstance(error, OSError) else error
            raise CompilediagError(f"{target} can't be written: {reason}") from None
        return target

    def reread_rows(self) -> None:
        """Read all rows that were read before once more: some have changed."""
        with self.lock, self.store.snapshot():
            self._frames.clear()
            for kind in self._rows:
                self._rows[kind] = read_events_of(self.store, kind, self._pool)
            self._lost, self._compiles_added = LostSeconds(), 0

    # Rows and tables

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`. Recompiles have `lost_s`; of each source, the last
        state. Only what was added since the last call is read.
        """
        self.flush(statuses=kind is SourceStatus)
        with self.lock:
            if kind is Recompile:
                with self.store.snapshot():
                    recompiles, compiles = self._stored_events(Recompile), self._stored_events(Compile)
                self._lost.add_recompiles(recompiles[len(self._lost.recompiles) :])
                self._lost.add_compiles(compiles[self._compiles_added :])
                self._compiles_added = len(compiles)
                return self._lost.recompiles[:]  # type: ignore[return-value]
            rows = self._stored_events(kind)
            return keep_last_states(rows) if kind is SourceStatus else rows[:]  # type: ignore[return-value]

    def _stored_events(self, kind: type[Event]) -> list[Any]:
        """Every event of a kind: those that were read before, and what the file has after them."""
        known = self._rows.setdefault(kind, [])
        if not (self._settled.active and kind in self._settled.kinds):
            known += read_events_of(self.store, kind, self._pool, known[-1].event_id if known else 0)
            self._settled.kinds.add(kind)
        return known

    def table(self, name: str) -> pd.DataFrame:
        """The table with this name, as a new DataFrame; "events" is the list of all events."""
        self.flush(statuses=name == SourceStatus.table)
        with self.lock, self.store.snapshot():
            frame = self._frame(name)
            if name != Recompile.table:
                return frame.copy()
            # Lost are the seconds of all compiles of its key, backward included; NA before one ended. A recompile
            # without a step has that of its compile.
            by_key, keys = self._frame("compiles").groupby("compile_key"), frame["compile_key"]
            found, steps = keys.map(by_key["duration_s"].sum(min_count=1)), keys.map(by_key["step"].first())
            return frame.assign(
                lost_s=frame["lost_s"].fillna(found).astype("float64"),
                step=frame["step"].fillna(steps.astype("Int64")),
            )

    def _frame(self, name: str) -> pd.DataFrame:
        last = find_last_id(self.store, name)
        cached = self._frames.get(name)
        if cached is None or cached[0] != last:
            cached = self._frames[name] = (last, read_table(self.store, name))
        return cached[1]

    # What is not a table

    @property
    def meta(self) -> dict[str, Any]:
        """Facts about the whole session: schema_version, torch_version, detail, pid, created_ns, stopped_ns, ..."""
        with self.lock:
            return self.store.meta()

    def set_meta(self, **values: Any) -> None:
        """Store facts about the session in its file, as JSON. CompilediagError if the file can't be written."""
        try:
            with contextlib.closing(Store.open(self.path, writable=True)) as store:
                store.set_meta(**values)
        except sqlite3.Error as error:
            raise CompilediagError(f"{self.path} can't be written: {error}") from None

    def artifact(self, event_id: int) -> str:
        """The text of an artifact. KeyError if there is no such artifact or its text was not stored."""
        body = self.artifact_bodies(int(event_id) - 1, int(event_id)).get(int(event_id))
        if body is None:
            raise KeyError(f"no text is kept for event {event_id}")
        try:
            return inflate(body)
        except (zlib.error, UnicodeDecodeError) as error:
            raise KeyError(f"the text of event {event_id} is damaged: {error}") from None

    def artifact_bodies(self, after: int, last: int) -> dict[int, bytes]:
        """Event id -> text as stored (UTF-8, deflated) of the artifacts above `after` up to `last`."""
        self.flush()
        source = "artifacts a JOIN payloads p ON p.digest = a.digest"
        wanted = f"WHERE a.event_id > {int(after)} AND a.event_id <= {int(last)}"
        kept = f"payloads p WHERE p.digest IN (SELECT a.digest FROM artifacts a {wanted})"
        with self.lock, self.store.snapshot():
            events = read_columns(self.store, f"{source} {wanted}", "a.event_id", ["a.event_id", "a.digest"])
            bodies = read_columns(self.store, kept, "p.digest", ["p.digest", "hex(p.body)"])
        by_digest = {digest: bytes.fromhex(body) for digest, body in zip(*bodies, strict=True)}
        return {event_id: by_digest[digest] for event_id, digest in zip(*events, strict=True) if digest in by_digest}

    def stack(self, key: str) -> list[str]:
        """A call stack by its key (column `stack` of compiles, `user_stack`, ...): `file:line function` per frame, the
        outermost first. KeyError if there is none.
        """
        names = ["stack", "caller", "file", "line", "function"]
        stacks = self.stacks[names]
        frames = {row[0]: row[1:] for row in stacks.astype(object).where(stacks.notna(), None).to_numpy()}
        lines = []
        following: str | None = key
        while following is not None:
            following, file, line, function = frames.pop(following)
            lines.append(f"{file}:{line} {function}")
        return lines[::-1]

    def news(self, after: int) -> tuple[int, set[str]]:
        """Number of the latest event, and the kinds of the events above `after`: one query finds what is new."""
        query = "SELECT max(id), group_concat(DISTINCT kind) FROM events WHERE id > ?"
        with self.lock:
            last, kinds = self.store.connection.execute(query, (after,)).fetchone()
        return (after, set()) if last is None else (last, set((kinds or "").split(",")))

    def progress(self) -> list[dict[str, Any]]:
        """What is compiling now, one dict per thread: compile_id, function, file, line, trigger, phases, started_ns."""
        with self.lock:
            return unless_damaged(self.store.progress, [])

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """One flush for all that this thread reads in the block, and one query for each kind of rows: beside a busy
        compiler each costs it 5 ms or more.
        """
        self.flush()
        before, self._settled.active = self._settled.active, True
        if not before:
            self._settled.kinds.clear()
        try:
            yield
        finally:
            self._settled.active = before


# Typed events


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
    """The whole table; "events" is the list of all events; of sources, the last state of each."""
    if table == "events":
        names = ["time_ns" if name == "time" else name for name in EVENT_COLUMNS]
        return _read_frame(store, EVENT_COLUMNS, "events", "id", names)
    spec = frame_columns(table)
    # What all events share is in `events`.
    shared = {"event_id": "e.id", "time": "e.time_ns", "duration_s": "e.duration_s"}
    cells = [shared.get(name) or (f"e.{name}" if name in COMMON_COLUMNS else f't."{name}"') for name in spec]
    frame = _read_frame(store, spec, _join(table), "t.event_id", cells)
    if table != SourceStatus.table:
        return frame
    last = frame.groupby(["rank", "pid", "name"], sort=False, dropna=False).tail(1)
    return last.sort_values(["pid", "name"]).reset_index(drop=True)


def _read_frame(
    store: Store, spec: dict[str, ColumnSpec], source: str, order: str, expressions: Sequence[str]
) -> pd.DataFrame:
    # A file can be made to have no end. Then this takes too long, which is an error; a part of it would be none. A
    # plain `count(*)` is one step of SQLite, which can't be ended.
    unless_damaged(lambda: store.connection.execute(f"SELECT count({order}) FROM {source}").fetchone(), None)
    return _make_frame(spec, read_columns(store, source, order, expressions))


def _join(table: str) -> str:
    return f"{table} t JOIN events e ON e.id = t.event_id"


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
        return pd.Series(
            [None if v is None else _parse_list(v, find_check(column["shape"])) for v in values], dtype=object
        )
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
    # Made from a mask: pandas' own way through a list is five times slower.
    kind, array = ("int64", pd.arrays.IntegerArray) if dtype == "Int64" else ("bool", pd.arrays.BooleanArray)
    cells = np.array(values, dtype=object)
    missing = np.array([value is None for value in values], dtype=bool)
    cells[missing] = 0
    numbers = cells.astype(kind)
    return array(
        numbers if dtype == "boolean" else _require(numbers, (numbers >= -MAX_INT) & (numbers <= MAX_INT)), missing
    )


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
    # Where damage has made a text illegible, it has replacement characters.
    store.connection.text_factory = lambda stored: stored.decode("utf-8", "replace")
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
