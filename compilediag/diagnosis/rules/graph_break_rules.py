"""Graph breaks by reason and line."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

from .. import wording
from ..finding import Finding
from ..rows import Row, first, ids, rows_of

BREAK_COLUMNS = ("reason", "break_id", "explanation", "hints", "user_file", "user_line", "user_code")
BREAK_PAGE = "https://meta-pytorch.github.io/compile-graph-break-site/gb/"
#: Beyond so many breaks at one line they are more than low.
MANY_BREAKS = 5
#: From so many lines on, breaks of one kind in a file are one finding.
STORM_LINES = 3
#: Breaks that torch's optimizers make on purpose, and the place where it meets a function it was told to skip.
_TORCHS_OWN = re.compile(r"/torch/(?:optim/\w+|_dynamo/external_utils)\.py$")


def break_findings(tables: Any) -> list[Finding]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "graph_breaks", BREAK_COLUMNS):
        if not _TORCHS_OWN.search((row["user_file"] or "").replace("\\", "/")):
            groups[(row["break_id"], row["reason"], row["user_file"])].append(row)
    return [found for rows in groups.values() for found in _of_file(rows)]


def _of_file(rows: list[Row]) -> list[Finding]:
    """Breaks of one kind in one file: a storm over several lines is one finding, else each line is one."""
    by_line: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        by_line[row["user_line"]].append(row)
    return [_storm(rows, by_line)] if len(by_line) >= STORM_LINES else [_break(found) for found in by_line.values()]


def _storm(rows: list[Row], by_line: dict[Any, list[Row]]) -> Finding:
    most = max(by_line.values(), key=len)
    lines = wording.listed([str(line) for line in sorted(line for line in by_line if line is not None)], 8)
    reason = wording.first_line(first(rows, "reason") or "no reason was given")
    return replace(
        _break(most),
        rule="graph_break_storm",
        severity="medium",
        title=f"graph breaks at {len(by_line)} lines of {wording.basename(first(rows, 'user_file') or 'unknown file')} "
        f"({lines}), {wording.times(len(rows))}: {reason}",
        evidence=ids(rows),
        suggestion=f"Each one cuts the function in two compiled parts with eager code between. {_break_advice(rows)}",
        count=len(rows),
        details=tuple(dict.fromkeys(wording.one_line(r["user_code"]) for r in rows if r["user_code"])),
    )


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
