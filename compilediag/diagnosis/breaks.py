"""Graph breaks by reason and line."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from . import wording
from .finding import Finding
from .rows import Row, first, ids, rows_of

BREAK_COLUMNS = ("reason", "break_id", "explanation", "hints", "user_file", "user_line", "user_code")
BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"
#: Beyond so many breaks at one line they are more than low.
MANY_BREAKS = 5


def break_findings(tables: Any) -> list[Finding]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "graph_breaks", BREAK_COLUMNS):
        groups[(row["break_id"], row["reason"], row["user_file"], row["user_line"])].append(row)
    return [_break(rows) for rows in groups.values()]


def _break(rows: list[Row]) -> Finding:
    file, line, code = (first(rows, name) for name in ("user_file", "user_line", "user_code"))
    where = wording.position(file, line) or "unknown line"
    reason = wording.first_line(first(rows, "reason") or "no reason was given")
    return Finding(
        rule="graph_break",
        severity="medium" if len(rows) >= MANY_BREAKS else "low",
        title=f"graph break at {where}, {wording.times(len(rows))}: {reason}",
        seconds_lost=0.0,
        evidence=ids(rows),
        suggestion=_break_advice(rows),
        file=file,
        line=line,
        count=len(rows),
        details=(wording.one_line(code),) if code else (),
        user_file=file,
        user_line=line,
        user_code=code,
    )


def _break_advice(rows: list[Row]) -> str:
    """torch's own hint, else its explanation; and where to read on."""
    hints = next((row["hints"] for row in rows if isinstance(row["hints"], list) and row["hints"]), [])
    told = wording.one_line(hints[0], 300) if hints else wording.one_line(first(rows, "explanation") or "", 300)
    break_id = first(rows, "break_id")
    page = f"See {page_of(break_id)}" if break_id else ""
    return " ".join(part for part in (told, page) if part) or "torch gave no hint."


def page_of(break_id: str) -> str:
    """torch's page on this kind of graph break."""
    return f"{BREAK_PAGE}{wording.one_line(break_id, 20).lower()}.html"
