"""What was not observed: silence of a source that was off is no sign of health."""

from __future__ import annotations

from typing import Any

from . import wording
from .finding import Finding
from .rows import Row, ids, rows_of


def coverage_findings(tables: Any) -> list[Finding]:
    rows = rows_of(tables, "sources", ("name", "status", "reason", "dropped"))
    return [_unobserved(row) for row in rows if row["status"] not in (None, "active")] + [
        _dropped(row) for row in rows if row["status"] == "active" and (row["dropped"] or 0) > 0
    ]


def _unobserved(row: Row) -> Finding:
    name = wording.one_line(row["name"] or "a source", 60)
    why = wording.first_line(row["reason"] or f"the source was {row['status']}")
    return Finding(
        rule="not_observed",
        severity="low",
        title=f"{name} were not observed: {why}" if name.endswith("s") else f"{name} was not observed: {why}",
        seconds_lost=0.0,
        evidence=ids([row]),
        suggestion="Nothing is known of these: that none is listed does not mean that there were none.",
        details=(why,),
    )


def _dropped(row: Row) -> Finding:
    name, count = wording.one_line(row["name"] or "a source", 60), int(row["dropped"])
    return Finding(
        rule="dropped",
        severity="low",
        title=f"{name} could not keep {count} events or payloads",
        seconds_lost=0.0,
        evidence=ids([row]),
        suggestion="What was dropped is missing from these findings; a larger payload budget keeps more.",
        count=count,
    )
