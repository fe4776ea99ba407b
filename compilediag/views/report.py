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
from itertools import chain
from pathlib import Path
from typing import Any, cast

from ..diagnosis.diff import Change
from ..diagnosis.evidence import map_compile_keys
from ..storage.data import SessionData
from ..storage.rows import inflate
from ..system.files import HTML_PAGE, check_output, make_absolute, write_file
from . import esm
from .model import ViewModel, dumps
from .page_types import Cell, LeftOut, PackedColumn, PageColumn, PagePanel, PagePatch, PageRow, StoredText

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
<script type="text/plain" id="cdiag-data">{data}</script>
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
    return render_page(title, "report.js", fit_patch(snapshot), NO_SCRIPT)


def render_page(title: str, entry: str, data: str, no_script: str) -> str:
    """HTML that the module `entry` draws from encoded data. `no_script` is HTML for browsers without scripts."""
    return PAGE.format(
        policy=POLICY,
        title=html.escape(title),
        style=esm.join_styles(esm.PAGE_STYLE),
        data=data,
        script=esm.join_modules(entry),
        no_script=no_script,
    )


# The data of a page is deflated JSON in base64, in which similar values are next to each other: the cells of a table by
# columns, times and ids as differences, and a text that many cells have once. `unpackPatch` in
# `static/core/page-data.js` reads it.

#: Bytes of a page's data at most. The page's own modules and styles are half a megabyte.
MAX_DATA = 9_000_000
#: Tables that describe single compiles. A report that would be too large has their rows for the compiles that took
#: longest.
DETAILS = ("phases", "trace_functions", "guard_failures", "cache_lookups", "kernels", "artifacts", "symbolic_shapes")
#: So many of them are tried next if their number was estimated too high.
SMALLER = 0.85
#: Shorter texts stay in their cells: a number in their place saves nothing.
MIN_CHARS = 6
#: Longer texts, in bytes, are not compressed together with others.
MAX_PACKED = 16 << 20
#: Limits of the texts that are compressed together, which are all inflated to show one of them.
BLOCK_CHARS, BLOCK_TEXTS = 400_000, 64


def fit_patch(patch: PagePatch, limit: int = MAX_DATA) -> str:
    """The data of a patch, without details of as many compiles as its limit demands. `meta` says what is left out."""
    packed = encode_data(pack_patch(patch))
    if len(packed) <= limit:
        return packed
    ranked = _rank_compiles(patch)
    least = encode_data(pack_patch(leave_out(patch, ranked, 0)))
    count = len(ranked) * (limit - len(least)) // max(1, len(packed) - len(least))
    while len(packed) > limit and count > 0:
        packed = encode_data(pack_patch(leave_out(patch, ranked, count)))
        count = int(SMALLER * count)
    return packed if len(packed) <= limit else least


def _rank_compiles(patch: PagePatch) -> list[str]:
    """The keys of all compiles, those that took longest first."""
    at = {column["name"]: number for number, column in enumerate(patch["columns"]["compiles"])}
    rows = patch.get("rows", {}).get("compiles", [])
    ordered = sorted(rows, key=lambda row: -(row[at["duration_s"]] or 0.0))
    return list(dict.fromkeys(row[at["compile_key"]] for row in ordered))


def leave_out(patch: PagePatch, ranked: Sequence[str], count: int) -> PagePatch:
    """The patch without the details of all compiles but the first `count` of `ranked`."""
    gone = set(ranked[count:])
    rows, texts = dict(patch["rows"]), dict(patch.get("texts", {}))
    counts: dict[str, int] = {}
    for table in DETAILS:
        at = next(n for n, column in enumerate(patch["columns"][table]) if column["name"] == "compile_key")
        kept = [row for row in rows.get(table, ()) if row[at] not in gone]
        if less := len(rows.get(table, ())) - len(kept):
            counts[table], rows[table] = less, kept
    if "artifacts" in counts:
        shown = {str(row[0]) for row in rows["artifacts"]}
        # A text that several artifacts have is with the first of them.
        shown |= {str(text["same"]) for artifact, text in texts.items() if artifact in shown and "same" in text}
        texts = {artifact: text for artifact, text in texts.items() if artifact in shown}
    left_out: LeftOut = {"compiles": len(gone), "of": len(ranked), "rows": counts}
    return {**patch, "rows": rows, "texts": texts, "meta": {**patch["meta"], "left_out": left_out}}


def encode_data(data: Any) -> str:
    """The data of a page as a text that is safe inside a script element."""
    return base64.b64encode(zlib.compress(dumps(data).encode(), 6)).decode()


def pack_patch(patch: Mapping[str, Any]) -> dict[str, Any]:
    """The same patch with `tables` and `strings` instead of `rows`, and with smaller `texts`."""
    rest = {name: part for name, part in patch.items() if name != "rows"}
    tables, strings = pack_tables(patch.get("rows", {}), patch.get("columns", {}))
    texts = patch.get("texts", {})
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
    return {**rest, "tables": tables, "strings": strings, "texts": small}


def pack_tables(
    tables: Mapping[str, Sequence[PageRow]], columns: Mapping[str, Sequence[PageColumn]]
) -> tuple[dict[str, list[PackedColumn]], list[str]]:
    """(table -> its packed columns, the texts that they name by their positions)."""
    cells = {table: [list(column) for column in zip(*rows, strict=True)] for table, rows in tables.items()}
    texts = (column for listed in cells.values() for column in listed if _is_text(column))
    counts = Counter(chain.from_iterable(texts))
    strings = [text for text, count in counts.items() if text is not None and count > 1 and len(text) >= MIN_CHARS]
    numbers: dict[Any, int] = {text: number for number, text in enumerate(strings)}
    packed: dict[str, list[PackedColumn]] = {table: [] for table in cells}
    for table, listed in cells.items():
        times = {at for at, column in enumerate(columns.get(table, ())) if column["type"] == "time"}
        for at, column in enumerate(listed):
            if _is_text(column):
                packed[table].append({"texts": [numbers.get(cell, cell) for cell in column]})
            elif at in times and all(isinstance(cell, float) for cell in column):
                packed[table].append({"times": _subtract([round(cell * 1000) for cell in column])})
            elif all(type(cell) is int for cell in column):
                packed[table].append({"numbers": _subtract(column)})
            else:
                packed[table].append({"cells": column})
    return packed, strings


def _is_text(column: Sequence[Cell]) -> bool:
    """True if every cell is a text or missing, and one is a text."""
    kinds = set(map(type, column))
    return str in kinds and kinds <= {str, type(None)}


def _subtract(numbers: Sequence[int]) -> list[int]:
    """The first number, and by how much each other one is larger than the one before it."""
    return [after - before for before, after in zip([0, *numbers], numbers, strict=False)]


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
    "refused_call": "Refused calls",
    "compile": "Compiles",
    "graph_break": "Graph breaks",
    "cache": "Cache lookups",
    "autotune": "Autotuning winners",
    "phase": "Phases",
}
#: Column -> the width in px that the table needs to show it.
COLUMNS = {"verdict": 0, "change": 760, "what": 0, "before": 560, "after": 560, "seconds more": 0}
VERDICTS = {True: "▲ worse", False: "▼ better", None: None}


#: The tables that the timelines of a comparison show.
TIMELINE = ("compiles", "recompiles", "guard_failures", "phases", "cache_lookups", "cudagraphs", "graph_breaks")
#: Compiles of a session whose phases and marks its timeline has: those that took longest.
MOST_DETAILED = 2_000


def write_comparison(
    path: str | os.PathLike[str],
    sessions: tuple[SessionData, SessionData],
    names: tuple[str, str],
    totals: Sequence[str],
    changes: Sequence[Change],
    gaps: Sequence[str],
    summary: str,
) -> Path:
    """Write the page of a comparison to `path` and return the path; CompilediagError if it cannot be written.

    It shows the names of the two sessions, lines of totals, their timelines, one panel per kind of change, and what was
    not compared. `summary` is shown where no script runs.
    """
    target = make_absolute(path)
    check_output(target, HTML_PAGE)
    # The page puts later rows first where it sorts them alike.
    by_kind = {kind: [change for change in reversed(changes) if change.kind == kind] for kind in KINDS}
    data = {
        "names": list(names),
        "totals": [_use_arrows(line) for line in (*totals, *([] if changes else ["No differences."]))],
        "panels": [_make_panel(kind, own) for kind, own in by_kind.items() if own],
        "gaps": list(gaps),
        "timelines": [_pack_timeline(data) for data in sessions],
        "evidence": {f"panel:{kind}": _list_evidence(own, sessions) for kind, own in by_kind.items()},
    }
    write_file(
        target, render_page("compilediag diff", "diff.js", encode_data(data), f"<pre>{html.escape(summary)}</pre>")
    )
    return target


def _pack_timeline(data: SessionData) -> dict[str, Any]:
    whole = ViewModel(data, text_budget=0).snapshot()
    rows = {table: whole["rows"].get(table, []) for table in TIMELINE}
    parts: dict[str, Any] = {
        name: whole.get(name) for name in ("seq", "reset", "meta", "columns", "feeds", "made_of", "totals")
    }
    patch = cast(PagePatch, {**parts, "rows": rows, "texts": {}})
    return pack_patch(leave_out(patch, _rank_compiles(patch), MOST_DETAILED))


def _list_evidence(changes: Sequence[Change], sessions: tuple[SessionData, SessionData]) -> list[list[list[str]]]:
    """For each change the keys of the compiles that it is about, in both sessions."""
    found = [[change.evidence_before, change.evidence_after] for change in changes]
    wanted = [{number for one in found for number in one[side]} for side in (0, 1)]
    keys = [map_compile_keys(data, ids) for data, ids in zip(sessions, wanted, strict=True)]
    return [[list(dict.fromkeys(filter(None, map(keys[side].get, one[side])))) for side in (0, 1)] for one in found]


def _use_arrows(text: str) -> str:
    """A change as the page writes it."""
    return text.replace(" -> ", " \N{RIGHTWARDS ARROW} ")


def _make_panel(kind: str, changes: Sequence[Change]) -> PagePanel:
    rows: list[list[Cell]] = []
    for change in changes:
        more = None if change.seconds_more is None else round(change.seconds_more, 3)
        title = _use_arrows(change.title)
        rows.append([VERDICTS[change.worse], change.change, title, change.before, change.after, more])
    return {
        "name": f"panel:{kind}",
        "label": KINDS[kind],
        "columns": list(COLUMNS),
        "rows": rows,
        "note": None,
        "from": list(COLUMNS.values()),
        "sort": ("seconds more", -1),
    }
