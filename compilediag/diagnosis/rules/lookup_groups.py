"""Group lookups by cache and function: hits, misses, what was saved, and why they missed, in one line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ...events import CacheLookup
from ...formatting import format_line
from ..evidence import is_timed

#: Outcome -> the count that it belongs to.
COUNTED = {
    "hit": "hits",
    "miss": "misses",
    "guard_miss": "misses",
    "bypass": "bypassed",
    "disabled": "bypassed",
    "saved": "stored",
    "failed": "failed",
}
#: Outcomes of a lookup that gave nothing, or failed.
UNMET = ("miss", "guard_miss", "bypass", "disabled", "failed")
#: A row lists so many different reasons of its group.
SHOWN_REASONS = 20

#: Cache, tier, function, file and line.
GroupKey = tuple[str | None, str | None, str | None, str | None, int | None]


@dataclass
class LookupGroup:
    """The lookups of one function in one tier of one cache, in the order in which they are added."""

    first: CacheLookup
    last: CacheLookup
    counts: Counter[str] = field(default_factory=Counter)
    saved_s: float | None = None
    taken_s: float | None = None
    why: str | None = None
    reasons: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def key(row: CacheLookup) -> GroupKey:
        """What the lookups of one group have in common."""
        return row.cache, row.tier, row.function, row.file, row.line

    @classmethod
    def of(cls, row: CacheLookup) -> LookupGroup:
        """A group without lookups, for those that are like `row`."""
        return cls(row, row)

    def add(self, row: CacheLookup) -> None:
        """Count a lookup of the group."""
        self.last = row
        self.counts[COUNTED.get(row.outcome or "", "other")] += 1
        self.saved_s = _add_seconds(self.saved_s, row.saved_s)
        self.taken_s = _add_seconds(self.taken_s, row.taken_s)
        reason = explain_outcome(row)
        if reason is not None:
            self.why = reason
            self.reasons[reason] += 1

    def as_dict(self) -> dict[str, object]:
        """Its cells as a row of a table; `time_ns` is when the latest lookup began."""
        counts = {name: self.counts[name] for name in dict.fromkeys((*COUNTED.values(), "other"))}
        return {
            "event_id": self.first.event_id,
            "time_ns": self.last.time_ns,
            **{name: getattr(self.first, name) for name in ("cache", "tier", "function", "file", "line")},
            "last": self.last.outcome,
            "why": self.why,
            **counts,
            "saved_s": self.saved_s,
            "taken_s": self.taken_s,
            "reasons": [f"{count}x {reason}" for reason, count in self.reasons.most_common(SHOWN_REASONS)],
        }


def explain_outcome(row: CacheLookup) -> str | None:
    """What kept a lookup from being a hit, in one line; None if it hit, or nothing is known."""
    if row.outcome not in UNMET:
        return None
    texts = [row.guard, "; ".join(row.key_diff or ()), row.reason]
    return next((format_line(text, 300) for text in texts if text), None)


def _add_seconds(total: float | None, value: float | None) -> float | None:
    return (total or 0.0) + value if is_timed(value) else total
