"""A list of findings that a notebook shows as HTML, also without a kernel: it needs no scripts and no styles."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..formatting import format_prose
from .finding import Finding


class FindingList(list[Finding]):
    """Findings, those first that can save most seconds."""

    def _repr_html_(self) -> str:
        items = "".join(f"<li>{''.join(_format_parts(finding))}</li>" for finding in self)
        return f"<div><ol>{items}</ol></div>" if self else "<p>No findings.</p>"


def _format_parts(finding: Finding) -> Iterator[str]:
    """The title, the user's line, the advice, and the change if a program can make it."""
    yield f"<strong>{escape(finding.title)}</strong>"
    if finding.user_code:
        yield f"<br><code>{escape(finding.user_code.strip())}</code>"
    yield f"<br>{format_prose(finding.suggestion)}"
    if finding.changes and finding.changes[0].can_be_applied:
        yield f"<pre>{escape(finding.changes[0].code)}</pre>"
