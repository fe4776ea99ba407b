"""Queries of a session's tables: some by name, and SQL that others wrote. Both only read, with limits."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from ..errors import CompilediagError
from ..events import BY_TABLE
from ..formatting import format_line
from ..json_document import JsonDocument, described
from ..storage.rows import own_fields
from ..storage.store import Store

#: Rows of an answer, characters of a text in it and of all of it, seconds that a query may take.
MAX_ROWS, MAX_TEXT, MAX_ANSWER, MAX_S = 200, 300, 20_000, 5.0
#: Bytes of a value that a query may make, and steps of SQLite between two looks at the clock.
_MAX_VALUE, _STEPS = 1_000_000, 10_000
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)

_PLACE = '"function", file, line'
#: Name -> what it answers, and its SQL. `events` has the time, the rank and the compile of the row of each table.
QUERIES = {
    "functions": (
        "compiles and seconds of each function",
        f"SELECT {_PLACE}, count(*) AS compiles, sum(is_recompile) AS recompiles, round(sum(duration_s), 3) AS seconds "
        "FROM compiles JOIN events ON id = event_id GROUP BY 1, 2, 3 ORDER BY seconds DESC",
    ),
    "slowest_compiles": (
        "the slowest compiles, with the seconds of their parts",
        f"SELECT compile_key, {_PLACE}, duration_s, dynamo_s, aot_s, inductor_s, codegen_s, triton_s, graph_ops, "
        "outcome FROM compiles JOIN events ON id = event_id ORDER BY duration_s DESC",
    ),
    "recompiles": (
        "each recompile with the guard that failed",
        f"SELECT compile_key, {_PLACE}, guard_source, guard_kind, expected, actual, user_file, user_line, user_code, "
        "step FROM recompiles JOIN events ON id = event_id ORDER BY event_id",
    ),
    "failing_guards": (
        "guards by how often they failed",
        "SELECT guard_source, guard_kind, count(*) AS failed, min(expected) AS expected, min(actual) AS actual "
        "FROM guard_failures GROUP BY 1, 2 ORDER BY failed DESC",
    ),
    "graph_breaks": (
        "graph breaks by line",
        "SELECT break_id, reason, user_file, user_line, user_code, count(*) AS count "
        "FROM graph_breaks GROUP BY 1, 2, 3, 4 ORDER BY count DESC",
    ),
    "failed_compiles": (
        "compiles that failed, and those that hit a limit",
        f'SELECT compile_key, {_PLACE}, outcome, fail_type, fail_reason, on_failure, "limit", limit_value '
        "FROM compiles JOIN events ON id = event_id WHERE outcome <> 'ok' OR \"limit\" IS NOT NULL ORDER BY event_id",
    ),
    "refused_calls": (
        "calls that torch did not compile, and why",
        f"SELECT {_PLACE}, refused_by, ran, count, guard_source, expected, actual FROM refused_calls "
        "ORDER BY count DESC",
    ),
    "cache_lookups": (
        "lookups in caches by outcome",
        "SELECT cache, tier, outcome, count(*) AS lookups, round(sum(taken_s), 3) AS taken_s, "
        "round(sum(saved_s), 3) AS saved_s FROM cache_lookups GROUP BY 1, 2, 3 ORDER BY lookups DESC",
    ),
    "cache_misses": (
        "lookups that missed; why_miss explains one by its event_id",
        f"SELECT event_id, {_PLACE}, cache, tier, outcome, reason FROM cache_lookups "
        "WHERE outcome NOT IN ('hit', 'saved') ORDER BY event_id",
    ),
    "cudagraphs": (
        "what happened to CUDA graphs, with the reasons",
        f"SELECT {_PLACE}, action, reason, sum(coalesce(count, 1)) AS count, round(sum(duration_ms), 1) AS duration_ms "
        "FROM cudagraphs GROUP BY 1, 2, 3, 4, 5 ORDER BY count DESC",
    ),
    "phases": (
        "seconds by phase of the compiles",
        "SELECT name, count(*) AS count, round(sum(duration_s), 3) AS seconds "
        "FROM phases JOIN events ON id = event_id GROUP BY 1 ORDER BY seconds DESC",
    ),
    "sources": (
        "what was collected: a source that is not active has a reason",
        "SELECT name, status, reason, events, dropped FROM sources ORDER BY event_id",
    ),
}


@dataclass(frozen=True)
class QueryAnswer(JsonDocument):
    """The rows that a query found."""

    SCHEMA: ClassVar[str] = "compilediag.query/1"

    columns: tuple[str, ...] = described("names of the columns")
    rows: tuple[tuple[Any, ...], ...] = described("the first rows; long texts are cut")
    is_complete: bool = described("there are no more rows")


def list_tables() -> dict[str, list[str]]:
    """The tables that a query can read, with their columns."""
    events = ["id", "time_ns", "kind", "rank", "pid", "compile_id", "compile_key", "title", "duration_s"]
    own = {table: [field.name for field in own_fields(kind)] for table, kind in BY_TABLE.items()}
    return {"events": events, **{table: ["event_id", *names] for table, names in own.items()}}


def run_query(path: Path, query: str) -> QueryAnswer:
    """Run a query by its name, or a SELECT statement, on the session file at `path`. CompilediagError if it is refused,
    or takes too long.
    """
    sql = QUERIES[query][1] if query in QUERIES else query
    try:
        with contextlib.closing(Store.open(path)) as store:
            connection, end = store.connection, time.monotonic() + MAX_S
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
            connection.set_progress_handler(lambda: time.monotonic() > end, _STEPS)
            connection.set_authorizer(_authorize)
            cursor = sqlite3.Connection.execute(connection, sql)
            if cursor.description is None:
                raise CompilediagError("only SELECT statements are allowed")
            return _fit(tuple(name for name, *_ in cursor.description), cursor.fetchmany(MAX_ROWS + 1))
    except sqlite3.Error as error:
        reason = f"it took more than {MAX_S:.0f} s" if "interrupted" in str(error) else str(error)
        raise CompilediagError(
            f"the query failed: {reason}; it is one SELECT statement, or one of {', '.join(QUERIES)}"
        ) from None


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    """Reading and functions that only compute; everything else is denied."""
    is_allowed = action in _ALLOWED and (second or "").lower() != "load_extension"
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _fit(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> QueryAnswer:
    """As many of the rows as an answer may have."""
    shown, size = [], 0
    for row in rows[:MAX_ROWS]:
        cells = tuple(map(_show, row))
        size += sum(len(str(cell)) + 4 for cell in cells)
        if size > MAX_ANSWER:
            break
        shown.append(cells)
    return QueryAnswer(names, tuple(shown), len(shown) == len(rows))


def _show(value: object) -> object:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    return format_line(value, MAX_TEXT) if isinstance(value, str) else value
