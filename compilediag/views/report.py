"""Pages that are one HTML file with the dashboard's modules and their data: a session's report, and a comparison. They
fetch nothing.
"""

from __future__ import annotations

import base64
import html
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..diagnosis.diff import Change
from ..storage.data import SessionData
from ..storage.texts import inflate
from ..system.files import HTML_PAGE, check_output, make_absolute, write_file
from . import esm
from .model import ViewModel, dumps
from .page_types import PagePanel, PagePatch, PageRow, StoredText

#: Bytes of base64 for the texts of graphs, guards and code. The longest are cut, and the page says so.
TEXT_BUDGET = 2_500_000

#: The page must not fetch anything.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
NO_SCRIPT = "This report needs JavaScript, which is part of the file. session.summary() prints the same as plain text."
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<noscript>{no_script}</noscript>
<main id="cdiag-report"></main>
<script type="application/json" id="cdiag-data">{data}</script>
<script type="module">
{script}</script>
</body>
</html>
"""


def write_report(data: SessionData, path: str | os.PathLike[str], redact: bool = False) -> Path:
    """Write the report of a session to `path` and return the path. An existing page is replaced, whole or not at all.

    `redact` leaves out source code, values and paths. CompilediagError if `path` cannot be written, or is another file.
    """
    target = make_absolute(path)
    check_output(target, HTML_PAGE)
    snapshot = ViewModel(data, redact=redact, text_budget=TEXT_BUDGET).snapshot()
    write_file(target, render_report(snapshot))
    return target


def render_report(snapshot: PagePatch) -> str:
    """The report of a view model's snapshot, as HTML."""
    title = f"compilediag: {snapshot['meta'].get('title') or 'session'}"
    return render_page(title, "report.js", pack_patch(snapshot), NO_SCRIPT)


def render_page(title: str, entry: str, data: Any, no_script: str) -> str:
    """HTML that the browser's module `entry` draws from `data`. `no_script` is HTML for browsers without scripts."""
    return PAGE.format(
        policy=POLICY,
        title=html.escape(title),
        style=esm.join_styles(esm.PAGE_STYLE),
        data=dumps(data),
        script=esm.join_modules(entry),
        no_script=no_script,
    )


# A text that many cells have is stored once, and similar texts are compressed together: recompiles of one function
# repeat file names and guards, and their graphs differ in one number. `unpackPatch` in `static/core/page-data.js` reads
# what `pack_patch` makes.

#: Shorter texts stay in their cells: a number in their place saves nothing.
MIN_CHARS = 6
#: Longer texts, in bytes, are not compressed together with others.
MAX_PACKED = 16 << 20
#: Limits of the texts that are compressed together, which are all inflated to show one of them.
BLOCK_CHARS, BLOCK_TEXTS = 400_000, 64


def pack_patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The same patch with smaller `rows` and `texts`, and the parts `strings` and `packed` that the cells refer to."""
    rows, strings, packed = pack_rows(patch.get("rows", {}))
    return {**patch, "rows": rows, "strings": strings, "packed": packed, "texts": pack_texts(patch.get("texts", {}))}


def pack_rows(
    tables: Mapping[str, Sequence[PageRow]],
) -> tuple[dict[str, list[PageRow]], list[str], dict[str, list[int]]]:
    """(rows, strings, table -> the columns that refer to strings by their position)."""
    packed = {table: _find_text_columns(rows) for table, rows in tables.items()}
    counts = Counter(
        cell for table, rows in tables.items() for row in rows for at in packed[table] if (cell := row[at]) is not None
    )
    strings = [text for text, count in counts.items() if count > 1 and len(text) >= MIN_CHARS]
    numbers = {text: number for number, text in enumerate(strings)}

    def pack_row(row: PageRow, columns: Sequence[int]) -> PageRow:
        cells = row[:]
        for at in columns:
            cells[at] = numbers.get(cells[at], cells[at])
        return cells

    small = {table: [pack_row(row, packed[table]) for row in rows] for table, rows in tables.items()}
    return small, strings, {table: columns for table, columns in packed.items() if columns}


def _find_text_columns(rows: Sequence[PageRow]) -> list[int]:
    """The columns of which every cell is a text or missing, and one is a text."""
    width = min((len(row) for row in rows), default=0)
    kinds = ({type(row[at]) for row in rows} for at in range(width))
    return [at for at, found in enumerate(kinds) if str in found and found <= {str, type(None)}]


def pack_texts(texts: Mapping[str, StoredText]) -> dict[str, Any]:
    """The texts in blocks: the first text of a block holds the block (`z`), the others name the first (`in`).

    `slice` is the begin and the end of each in the inflated block, in UTF-16 units.
    """
    small: dict[str, Any] = dict(texts)
    for block in _list_blocks(texts):
        joined = "".join(text for _, text in block)
        stored = base64.b64encode(zlib.compress(joined.encode(), 9)).decode()
        if len(stored) < sum(len(texts[event_id]["z"]) for event_id, _ in block):
            begin, first = 0, block[0][0]
            for event_id, text in block:
                end = begin + len(text.encode("utf-16-le")) // 2
                place = {"z": stored} if event_id == first else {"in": int(first)}
                small[event_id] = {**place, "cut": texts[event_id]["cut"], "slice": [begin, end]}
                begin = end
    return small


def _list_blocks(texts: Mapping[str, StoredText]) -> Iterator[list[tuple[str, str]]]:
    """Texts that are close to each other in the session, as (event id, text): graphs and guards of one function."""
    block: list[tuple[str, str]] = []
    size = 0
    for event_id in sorted(texts, key=int):
        try:
            text = inflate(base64.b64decode(texts[event_id]["z"]), MAX_PACKED)
        except (KeyError, zlib.error, UnicodeDecodeError):
            continue  # A damaged text is reported where it is shown.
        if block and (size + len(text) > BLOCK_CHARS or len(block) == BLOCK_TEXTS):
            yield block
            block, size = [], 0
        block.append((event_id, text))
        size += len(text)
    if block:
        yield block


# The page of a comparison

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


def write_comparison(
    path: str | os.PathLike[str],
    names: tuple[str, str],
    totals: Sequence[str],
    changes: Sequence[Change],
    gaps: Sequence[str],
    summary: str,
) -> Path:
    """Write the page of a comparison to `path` and return the path; CompilediagError if it cannot be written.

    It shows the names of the two sessions, lines of totals, one panel per kind of change, and what was not compared.
    `summary` is shown where no script runs.
    """
    target = make_absolute(path)
    check_output(target, HTML_PAGE)
    panels = [_make_panel(kind, label, changes) for kind, label in KINDS.items()]
    data = {
        "names": list(names),
        "totals": [*totals, *([] if changes else ["No differences."])],
        "panels": [panel for panel in panels if panel["rows"]],
        "gaps": list(gaps),
    }
    write_file(target, render_page("compilediag diff", "diff.js", data, f"<pre>{html.escape(summary)}</pre>"))
    return target


def _make_panel(kind: str, label: str, changes: Sequence[Change]) -> PagePanel:
    # The page puts later rows first where it sorts them alike.
    own = [change for change in reversed(changes) if change.kind == kind]
    more = [None if change.seconds_more is None else round(change.seconds_more, 3) for change in own]
    rows = [[VERDICTS[c.worse], c.change, c.title, c.before, c.after, s] for c, s in zip(own, more, strict=True)]
    return {
        "name": f"panel:{kind}",
        "label": label,
        "columns": list(COLUMNS),
        "rows": rows,
        "note": None,
        "from": list(COLUMNS.values()),
        "sort": ("seconds more", -1),
    }
