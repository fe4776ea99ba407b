"""The page of a diff: one HTML file, drawn by the report's own modules; its tables are what `diff.frame` has."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnosis.diff import Change
from ..output_paths import check_output
from .report import offline_page, write_whole

if TYPE_CHECKING:
    from ..comparison import Diff

KINDS = {
    "failure": "Failures",
    "recompile": "Recompiles by cause",
    "compile": "Compiles",
    "graph_break": "Graph breaks",
    "cache": "Cache look-ups",
    "autotune": "Winners of tunings",
    "phase": "Phases",
}
#: Column -> its width, and the least width of the table in px for it to be shown.
COLUMNS = {
    "verdict": ("80px", 0),
    "change": ("84px", 760),
    "what": ("minmax(120px, 4fr)", 0),
    "before": ("minmax(70px, 1fr)", 560),
    "after": ("minmax(70px, 1fr)", 560),
    "seconds more": ("104px", 0),
}
SIGNS = {True: "▲ worse", False: "▼ better", None: None}


def write_diff(diff: Diff, path: str | os.PathLike[str]) -> Path:
    """Write the page; whole or not at all."""
    target = Path(path).absolute()
    check_output(target)
    write_whole(target, page(diff))
    return target


def page(diff: Diff) -> str:
    """The page as HTML."""
    without = f"<pre>{html.escape(diff.summary())}</pre>"
    return offline_page("compilediag diff", "diff.js", content(diff), without)


def content(diff: Diff) -> dict[str, Any]:
    """What the page shows: names of the two sessions, lines of totals, a panel a kind, what was not compared."""
    names = [str(session.meta.get("title") or session.path.name) for session in (diff.before, diff.after)]
    panels = [_panel(kind, head, [c for c in diff.changes if c.kind == kind]) for kind, head in KINDS.items()]
    return {
        "names": names,
        "totals": diff.totals() + ([] if diff.changes else ["No differences."]),
        "panels": [panel for panel in panels if panel["rows"]],
        "gaps": diff.gaps(),
    }


def _panel(kind: str, head: str, changes: list[Change]) -> dict[str, Any]:
    # Of rows that a table sorts alike the last comes first.
    rows = [[SIGNS[c.worse], c.change, c.title, c.before, c.after, _rounded(c)] for c in reversed(changes)]
    widths, least = zip(*COLUMNS.values(), strict=True)
    fixed = {"columns": list(COLUMNS), "widths": widths, "from": least, "sort": ["seconds more", -1], "note": None}
    return {"name": f"panel:{kind}", "label": head, "rows": rows, **fixed}


def _rounded(change: Change) -> float | None:
    return None if change.seconds_more is None else round(change.seconds_more, 3)
