"""The report: one HTML file with the dashboard's modules and the session's data. It fetches nothing."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any

from ..files import HTML_PAGE, check_output, make_absolute, write_file
from ..storage.data import SessionData
from . import esm, page_json
from .model import ViewModel
from .page_types import PagePatch
from .report_packing import pack_patch

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
        data=page_json.dumps(data),
        script=esm.join_modules(entry),
        no_script=no_script,
    )
