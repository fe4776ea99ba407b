"""CUDA graphs by function: how often it was captured, replayed, captured again or skipped, and the last reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ...events import CudaGraphAction, Rows
from ..evidence import is_timed

if TYPE_CHECKING:
    import pandas as pd

#: What a function does after an action, in words; other actions leave its state unchanged.
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
CAPTURES = ("record", "rerecord", "user_capture")

#: rank, pid, function, file, line, mode and backend.
FunctionKey = tuple[int | None, int | None, str | None, str | None, int | None, str | None, str | None]


def group_by_function(data: Rows) -> list[GraphFunction]:
    """The functions of a session that CUDA graphs were recorded of, or skipped for, in the order of their events."""
    groups: dict[FunctionKey, GraphFunction] = {}
    for row in data.rows(CudaGraphAction):
        groups.setdefault(GraphFunction.key(row), GraphFunction.of(row)).add(row)
    return list(groups.values())


def make_functions_frame(data: Rows) -> pd.DataFrame:
    """One row per function: its counts, its last reason, and `coverage`, the share of calls that a replay answered."""
    import pandas as pd

    rows = [function.as_dict() | {"coverage": function.coverage} for function in group_by_function(data)]
    names = list(rows[0]) if rows else ["event_id", "function", "mode", "coverage"]
    counts = ("replays", "eager", "line", "pool_bytes")
    return pd.DataFrame(rows, columns=names).astype({name: "Int64" for name in counts if name in names})


@dataclass
class GraphFunction:
    """The CUDA graph actions of one function in one process, in the order in which they are added.

    `replays` and `eager` (calls without a graph) are None if they were not counted.
    """

    first: CudaGraphAction
    last: CudaGraphAction
    counts: Counter[str] = field(default_factory=Counter)
    replays: int | None = None
    eager: int | None = None
    state: str | None = None
    reason: str | None = None
    mismatch: str | None = None
    input: str | None = None
    capture_ms: float | None = None
    pool_bytes: int | None = None

    @staticmethod
    def key(row: CudaGraphAction) -> FunctionKey:
        """What the actions on one function have in common."""
        return row.rank, row.pid, row.function, row.file, row.line, row.mode, row.backend

    @classmethod
    def of(cls, row: CudaGraphAction) -> GraphFunction:
        """The function of `row`, without any action yet."""
        return cls(row, row)

    def add(self, row: CudaGraphAction) -> None:
        """Count an action of the function."""
        self.last = row
        self.state = STATES.get(row.action or "", self.state)
        self._count(row)
        if row.action in CAPTURES and is_timed(row.duration_ms):
            self.capture_ms = (self.capture_ms or 0.0) + row.duration_ms
        if row.pool_bytes is not None:
            self.pool_bytes = row.pool_bytes
        if row.action != "invalidated":
            self._keep_reason(row)

    def _count(self, row: CudaGraphAction) -> None:
        if row.action == "replays":
            self.replays = (self.replays or 0) + (row.count or 0)
        elif row.action == "eager":
            self.eager = (self.eager or 0) + (row.count or 0)
        else:
            self.counts[row.action or "other"] += 1

    def _keep_reason(self, row: CudaGraphAction) -> None:
        self.reason = self.reason if row.reason is None else row.reason
        self.mismatch = self.mismatch if row.mismatch is None else row.mismatch
        self.input = self.input if row.input is None else row.input

    @property
    def own_runs(self) -> int:
        """Calls in which it was warmed up or captured."""
        return sum(self.counts[action] for action in ("warmup", "record", "rerecord"))

    @property
    def calls(self) -> int:
        """Known calls: replays, calls without a graph, and those in which it was warmed up or captured."""
        return (self.replays or 0) + (self.eager or 0) + self.own_runs

    @property
    def coverage(self) -> float | None:
        """The share of its calls that a replay answered; None if that is not known. A function that was skipped and
        never captured has no replays, whether they were counted or not.
        """
        if self.counts["skip"] and not self.replays and self.own_runs == self.counts["warmup"]:
            return 0.0
        if (self.replays is None and self.eager is None) or not self.calls:
            return None
        return (self.replays or 0) / self.calls

    def as_dict(self) -> dict[str, object]:
        """Its cells as a row of a table; `time_ns` is when its latest action began."""
        own = ("rank", "pid", "function", "file", "line", "mode", "backend")
        latest = ("state", "replays", "eager", "reason", "mismatch", "input", "capture_ms", "pool_bytes")
        return {
            "event_id": self.first.event_id,
            "time_ns": self.last.time_ns,
            **{name: getattr(self.first, name) for name in own},
            **{name: getattr(self, name) for name in latest},
            "warmups": self.counts["warmup"],
            "captured": sum(self.counts[action] for action in CAPTURES),
            "rerecorded": self.counts["rerecord"],
            "skipped": self.counts["skip"] + self.counts["limit"],
        }
