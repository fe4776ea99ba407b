"""The report: one HTML file with the dashboard's own modules and the session's data in it, and nothing to fetch."""

from __future__ import annotations

import html
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompilediagError
from ..output_paths import check_output
from . import esm, page_json
from .model import ViewModel

if TYPE_CHECKING:
    from ..session import Session

#: Bytes of base64 that the texts of graphs, guards and code may take; the longest are cut, the page says so.
TEXT_BUDGET = 2_500_000

#: Nothing may be fetched, from anywhere.
POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
WITHOUT = "This report needs JavaScript, which it carries in itself. session.summary() gives plain text."
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
html {{ color-scheme: light dark; background: light-dark(#eef0f3, #0d0f13); }}
body {{ max-width: 1500px; margin: 0 auto; padding: 16px; }}
{style}</style>
</head>
<body>
<noscript>{without}</noscript>
<div id="cdiag-report"></div>
<script type="application/json" id="cdiag-data">{data}</script>
<script type="module">
{script}</script>
</body>
</html>
"""


def write_report(session: Session, path: str | os.PathLike[str], redact: bool = False) -> Path:
    """Write the report of a session to `path` (replaced if it is there) and return it; whole or not at all.

    `redact` leaves out source code, values and paths. CompilediagError if `path` can't be written.
    """
    target = Path(path).absolute()
    check_output(target)
    snapshot = ViewModel(session, redact=redact, text_budget=TEXT_BUDGET).snapshot()
    write_whole(target, page(snapshot))
    return target


def page(snapshot: dict) -> str:
    """The report of a view model's snapshot, as HTML."""
    title = f"compilediag: {snapshot['meta'].get('title') or 'session'}"
    return offline_page(title, "report.js", snapshot, WITHOUT)


def offline_page(title: str, entry: str, data: Any, without: str) -> str:
    """HTML that `entry`, of the browser's modules, draws from `data`. `without`: HTML for where no script runs."""
    return PAGE.format(
        policy=POLICY,
        title=html.escape(title),
        style=esm.join_styles(),
        data=page_json.dumps(data),
        script=esm.join_modules(entry),
        without=without,
    )


def write_whole(target: Path, text: str) -> None:
    """The file appears with its content or stays as it was."""
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=".compilediag-", delete=False) as file:
            temporary = Path(file.name)
            file.write(text.encode("utf-8", "replace"))
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise CompilediagError(f"can't write {target}: {error.strerror or error}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
