"""The page of a diff: one HTML file without a script; its tables are what `diff.frame` has."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..diagnosis.changes import Change
from ..outputs import check_output
from .report import write_whole

if TYPE_CHECKING:
    from ..comparison import Diff

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; }
body { max-width: 1100px; margin: 0 auto; padding: 16px; font: 14px/1.45 system-ui, sans-serif;
  background: light-dark(#fff, #14171d); color: light-dark(#1c2330, #e4e7ec); }
h1 { font-size: 20px; } h2 { font-size: 16px; margin: 24px 0 6px; }
p { margin: 2px 0; color: light-dark(#667085, #98a2b3); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: 5px 8px; border-bottom: 1px solid light-dark(#e1e4ea, #313744); }
th { color: light-dark(#667085, #98a2b3); font-weight: 600; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.title { overflow-wrap: anywhere; }
"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>compilediag diff</title>
<style>{style}</style>
</head>
<body>
<h1>{names}</h1>
{totals}
{sections}
{gaps}
</body>
</html>
"""
KINDS = {
    "compile": "Compiles",
    "failure": "Failures",
    "recompile": "Recompiles by cause",
    "graph_break": "Graph breaks",
    "cache": "Cache look-ups",
    "autotune": "Winners of tunings",
    "phase": "Phases",
}


def write_diff(diff: Diff, path: str | os.PathLike[str]) -> Path:
    """Write the page; whole or not at all."""
    target = Path(path).absolute()
    check_output(target)
    write_whole(target, page(diff))
    return target


def page(diff: Diff) -> str:
    """The page as HTML."""
    names = " → ".join(str(session.meta.get("title") or session.path.name) for session in (diff.before, diff.after))
    sections = [_section(head, [c for c in diff.changes if c.kind == kind]) for kind, head in KINDS.items()]
    return PAGE.format(
        policy=POLICY,
        style=STYLE,
        names=html.escape(names),
        totals=_lines(diff.totals()),
        sections="\n".join(sections) if diff.changes else "<p>No differences.</p>",
        gaps=_lines(diff.gaps()),
    )


def _lines(lines: list[str]) -> str:
    return "\n".join(f"<p>{html.escape(line)}</p>" for line in lines)


def _section(head: str, changes: list[Change]) -> str:
    if not changes:
        return ""
    columns = "".join(f"<th>{name}</th>" for name in ("", "change", "what", "before", "after", "seconds more"))
    rows = "\n".join(map(_row, changes))
    table = f"<table><thead><tr>{columns}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f"<h2>{head} ({len(changes)})</h2>\n{table}"


def _row(change: Change) -> str:
    sign = {True: "▲ worse", False: "▼ better", None: ""}[change.worse]
    more = "" if change.seconds_more is None else f"{change.seconds_more:+.2f}"
    cells = [("", sign), ("", change.change), ("title", change.title)]
    cells += [("number", change.before), ("number", change.after), ("number", more)]
    filled = "".join(f'<td class="{kind}">{html.escape(text)}</td>' for kind, text in cells)
    return f"<tr>{filled}</tr>"
