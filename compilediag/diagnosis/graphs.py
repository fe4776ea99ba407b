"""CUDA graphs by function: how often it was captured, replayed, captured again or skipped, and the last reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .rows import Row, is_timed

COLUMNS = (
    "action",
    "function_id",
    "graph_id",
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
        for name in ("reason", "mismatch", "input", "pool_bytes"):
            if row[name] is not None:
                setattr(self, name, row[name])

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
