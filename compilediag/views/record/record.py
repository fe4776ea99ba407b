"""What stands for the widget in a saved notebook: while the watch runs, and from its end on.

Both are MIME bundles. The second one is made once, when the watch ends, and needs no kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from ...events import Compile
from ...formatting import MAX_HTML
from ..summary import collect_results, format_results, format_summary
from .record_html import RecordFacts, format_record

if TYPE_CHECKING:
    from ...storage.data import SessionData

#: The encoding of notebooks.
UTF_8 = "utf-8"
_WATCHING = "compilediag: a watch is running"
_REPLACED = (
    "The live page needs a notebook that can show Jupyter widgets. When the watch stops, this text is replaced by what "
    "was recorded."
)


@dataclass(frozen=True)
class WidgetTexts:
    """What stands for a widget where it cannot be shown. `make_record` takes a class for the outermost element."""

    make_text: Callable[[], str]
    make_record: Callable[[str], dict[str, str]]

    def make_placeholder(self) -> dict[str, str]:
        """What a notebook keeps if it is saved while the watch runs, and no longer."""
        html = f"<p><strong>{_WATCHING}.</strong> {_REPLACED}</p>"
        return {"text/plain": f"{_WATCHING}. {_REPLACED}", "text/html": html}


def make_dashboard_texts(data: SessionData) -> WidgetTexts:
    """The texts of a session's dashboard."""

    def make_text() -> str:
        return _format_running(data) if data.state == "watching" else format_summary(data)

    return WidgetTexts(make_text, lambda name: _make_record(data, name))


def make_plain_texts(make_text: Callable[[], str]) -> WidgetTexts:
    """The same text in every place."""

    def make_record(name: str) -> dict[str, str]:
        text = make_text()
        shown = f'<div class="cdiag-record {name}"><pre>{escape(text[: MAX_HTML // 2])}</pre></div>'
        return {"text/plain": text, "text/html": shown}

    return WidgetTexts(make_text, make_record)


def _make_record(data: SessionData, name: str) -> dict[str, str]:
    with data.settled():
        facts = RecordFacts(collect_results(data), data.meta, data.rows(Compile))
    return {"text/plain": format_results(facts.results, UTF_8), "text/html": format_record(facts, name)}


def _format_running(data: SessionData) -> str:
    """The summary of a watch that runs, which is not its last word."""
    if not data.rows(Compile):
        return f"{_WATCHING}. Nothing was compiled so far.\n"
    return f"{_WATCHING}. So far:\n\n{format_summary(data)}"
