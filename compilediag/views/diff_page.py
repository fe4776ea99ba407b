"""The page of a comparison of two sessions: one HTML file, drawn by the report's own modules."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..diagnosis.diff import Change
from ..files import HTML_PAGE, check_output, make_absolute, write_file
from .report import render_page

#: Kind of change -> title of its panel.
KINDS = {
    "failure": "Failures",
    "recompile": "Recompiles by cause",
    "compile": "Compiles",
    "graph_break": "Graph breaks",
    "cache": "Cache lookups",
    "autotune": "Autotuning winners",
    "phase": "Phases",
}
#: Column -> the width in px that the table needs to show it.
COLUMNS = {"verdict": 0, "change": 760, "what": 0, "before": 560, "after": 560, "seconds more": 0}
VERDICTS = {True: "▲ worse", False: "▼ better", None: None}


@dataclass(frozen=True)
class DiffPage:
    """What the page shows: names of the two sessions, lines of totals, changes, and what was not compared.

    `summary` is shown where no script runs.
    """

    names: tuple[str, str]
    totals: Sequence[str]
    changes: Sequence[Change]
    gaps: Sequence[str]
    summary: str

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write the page to `path` and return the path; CompilediagError if it cannot be written."""
        target = make_absolute(path)
        check_output(target, HTML_PAGE)
        no_script = f"<pre>{html.escape(self.summary)}</pre>"
        write_file(target, render_page("compilediag diff", "diff.js", self.to_dict(), no_script))
        return target

    def to_dict(self) -> dict[str, Any]:
        """The data that the page is drawn from: one panel per kind of change."""
        panels = [_make_panel(kind, label, self.changes) for kind, label in KINDS.items()]
        return {
            "names": list(self.names),
            "totals": [*self.totals, *([] if self.changes else ["No differences."])],
            "panels": [panel for panel in panels if panel["rows"]],
            "gaps": list(self.gaps),
        }


def _make_panel(kind: str, label: str, changes: Sequence[Change]) -> dict[str, Any]:
    # The page puts later rows first where it sorts them alike.
    own = [change for change in reversed(changes) if change.kind == kind]
    rows = [[VERDICTS[c.worse], c.change, c.title, c.before, c.after, _round_seconds(c)] for c in own]
    fixed = {"columns": list(COLUMNS), "from": list(COLUMNS.values()), "sort": ["seconds more", -1], "note": None}
    return {"name": f"panel:{kind}", "label": label, "rows": rows, **fixed}


def _round_seconds(change: Change) -> float | None:
    return None if change.seconds_more is None else round(change.seconds_more, 3)
