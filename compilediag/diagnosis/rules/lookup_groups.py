"""Look-ups by cache and function: hits, misses, what was saved, and why it missed, in one line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .. import wording
from ..rows import Row, is_timed

#: Outcomes as they are counted.
COUNTED = {
    "hit": "hits",
    "miss": "misses",
    "guard_miss": "misses",
    "bypass": "bypassed",
    "disabled": "bypassed",
    "saved": "stored",
    "failed": "failed",
}
#: The caches that hold whole compiled graphs. Others (a module's file, a kernel's binary) are parts of those.
COMPILE_CACHES = ("fx_graph", "aot_autograd")
#: Outcomes of a look-up that gave nothing, or of one that failed.
UNMET = ("miss", "guard_miss", "bypass", "disabled", "failed")
#: Different reasons of one group that are told.
SHOWN_REASONS = 20


@dataclass
class LookupGroup:
    """The look-ups of one function in one tier of one cache, as they come."""

    cache: str | None
    tier: str | None
    function: str | None
    file: str | None
    line: int | None
    event_id: int
    counts: Counter[str] = field(default_factory=Counter)
    saved_s: float | None = None
    taken_s: float | None = None
    why: str | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    last: str | None = None
    time: Any = None

    @staticmethod
    def key(row: Row) -> tuple[Any, ...]:
        return tuple(row[name] for name in ("cache", "tier", "function", "file", "line"))

    @classmethod
    def of(cls, row: Row) -> LookupGroup:
        return cls(*cls.key(row), event_id=row["event_id"])

    def add(self, row: Row) -> None:
        self.time = row["time"]
        self.last = row["outcome"]
        self.counts[COUNTED.get(row["outcome"], "other")] += 1
        self.saved_s = _sum(self.saved_s, row["saved_s"])
        self.taken_s = _sum(self.taken_s, row["taken_s"])
        told = why(row)
        if told is not None:
            self.why = told
            self.reasons[told] += 1

    def row(self) -> dict[str, Any]:
        """What the page shows of it."""
        counts = {name: self.counts[name] for name in dict.fromkeys((*COUNTED.values(), "other"))}
        names = ("event_id", "time", "cache", "tier", "function", "file", "line", "last", "why")
        reasons = [f"{count}x {told}" for told, count in self.reasons.most_common(SHOWN_REASONS)]
        seconds = {"saved_s": self.saved_s, "taken_s": self.taken_s}
        return {**{n: getattr(self, n) for n in names}, **counts, **seconds, "reasons": reasons}


def why(row: Row) -> str | None:
    """What kept a look-up from being a hit, in one line; None if nothing did, or nothing is known of it."""
    if row["outcome"] not in UNMET:
        return None
    told = [row["guard"], "; ".join(row["key_diff"] or ()), row["reason"]]
    return next((wording.one_line(text, 300) for text in told if text), None)


def _sum(total: float | None, value: Any) -> float | None:
    return total if not is_timed(value) else (total or 0.0) + value
