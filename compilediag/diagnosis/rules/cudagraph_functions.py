"""CUDA graphs by function: how often it was captured, replayed, captured again or skipped, and the last reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..rows import Row, is_timed, rows_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "action",
    "function_id",
    "graph_id",
    "parent_id",
    "function",
    "file",
    "line",
    "mode",
    "backend",
    "duration_ms",
    "mismatch",
    "input",
    "reason",
    "user_file",
    "user_line",
    "user_code",
    "count",
    "partitions",
    "nodes",
    "pool_bytes",
)
#: What a function does after an action, in words; the others leave it as it was.
STATES = {
    "warmup": "warming up",
    "record": "captured",
    "rerecord": "captured",
    "user_capture": "captured",
    "replays": "replayed",
    "skip": "skipped",
    "limit": "eager: too many re-records",
    "stuck": "stuck in warm-up",
    "failed": "failed",
}


def graph_functions(tables: Any) -> list[GraphFunction]:
    """The functions of a session that CUDA graphs were recorded of, or skipped for, in order of time."""
    groups: dict[Any, GraphFunction] = {}
    for row in rows_of(tables, "cudagraphs", COLUMNS):
        key = GraphFunction.key(row)
        if key not in groups:
            groups[key] = GraphFunction.of(row)
        groups[key].add(row)
    return list(groups.values())


def functions_frame(tables: Any) -> pd.DataFrame:
    """One row a function: its counts, its last reason, and `coverage`, the share of calls that a replay answered."""
    import pandas as pd

    functions = graph_functions(tables)
    rows = [function.row() | {"coverage": function.coverage} for function in functions]
    names = list(rows[0]) if rows else ["event_id", "function", "mode", "coverage"]
    counts = ("replays", "eager", "line", "pool_bytes")
    return pd.DataFrame(rows, columns=names).astype({name: "Int64" for name in counts if name in names})


@dataclass
class GraphFunction:
    """The CUDA graph actions of one function in one process, as they come. `replays` and `eager`
    (calls without a graph) are None if they were not counted.
    """

    rank: int | None
    pid: int | None
    function: str | None
    file: str | None
    line: int | None
    mode: str | None
    backend: str | None
    event_id: int
    counts: Counter[str] = field(default_factory=Counter)
    replays: int | None = None
    eager: int | None = None
    state: str | None = None
    reason: str | None = None
    mismatch: str | None = None
    input: str | None = None
    capture_ms: float | None = None
    pool_bytes: int | None = None
    time: Any = None

    @staticmethod
    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("rank", "pid", "function", "file", "line", "mode", "backend"))

    @classmethod
    def of(cls, row: Row) -> GraphFunction:
        return cls(*cls.key(row), event_id=row["event_id"])

    def add(self, row: Row) -> None:
        action = row["action"]
        self.time = row["time"]
        self.state = STATES.get(action, self.state)
        if action in ("replays", "eager"):
            setattr(self, action, (getattr(self, action) or 0) + (row["count"] or 0))
        else:
            self.counts[action] += 1
        if action in ("record", "rerecord", "user_capture") and is_timed(row["duration_ms"]):
            self.capture_ms = (self.capture_ms or 0.0) + row["duration_ms"]
        told = ("pool_bytes",) if action == "invalidated" else ("reason", "mismatch", "input", "pool_bytes")
        for name in told:
            if row[name] is not None:
                setattr(self, name, row[name])

    @property
    def own_runs(self) -> int:
        """Calls in which it was warmed up or captured."""
        return sum(self.counts[action] for action in ("warmup", "record", "rerecord"))

    @property
    def calls(self) -> int:
        """Calls that are known of: replays, calls without a graph, and those in which it was warmed up or captured."""
        return (self.replays or 0) + (self.eager or 0) + self.own_runs

    @property
    def coverage(self) -> float | None:
        """The share of its calls that a replay answered; None if that is not known. What was skipped and never
        captured has no replays, counted or not.
        """
        if self.counts["skip"] and not self.replays and self.own_runs == self.counts["warmup"]:
            return 0.0
        if self.replays is None and self.eager is None or not self.calls:
            return None
        return (self.replays or 0) / self.calls

    def row(self) -> dict[str, Any]:
        """What the page shows of it."""
        names = ("event_id", "time", "rank", "pid", "function", "file", "line", "mode", "backend", "state", "replays")
        last = ("eager", "reason", "mismatch", "input", "capture_ms", "pool_bytes")
        counts = {
            "warmups": self.counts["warmup"],
            "captured": self.counts["record"] + self.counts["rerecord"] + self.counts["user_capture"],
            "rerecorded": self.counts["rerecord"],
            "skipped": self.counts["skip"] + self.counts["limit"],
        }
        return {**{n: getattr(self, n) for n in (*names, *last)}, **counts}
