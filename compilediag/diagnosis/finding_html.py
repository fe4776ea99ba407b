"""Findings as HTML that a notebook shows, also without a kernel: no scripts, no styles, no colors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from ..formatting import fit_html, format_line, format_place, format_prose

if TYPE_CHECKING:
    from .finding import Finding

#: Characters of each part of a finding, and findings of a list; tried one after the other until the HTML fits.
PART_LIMITS = (None, 4000, 400)
LIST_LIMITS = (100, 40, 15, 5, 0)
_MAX_TITLE = 500


def format_finding(finding: Finding) -> str:
    """One finding."""
    return fit_html(lambda limit: f"<div>{''.join(_format_parts(finding, limit))}</div>", PART_LIMITS)


def format_findings(findings: Sequence[Finding]) -> str:
    """A numbered list of findings; of more than fit, the first ones."""
    return fit_html(lambda limit: _format_list(findings, limit), LIST_LIMITS) if findings else "<p>No findings.</p>"


def _format_list(findings: Sequence[Finding], limit: int | None) -> str:
    items = "".join(f"<li>{''.join(_format_parts(finding, None))}</li>" for finding in findings[:limit])
    rest = len(findings) - len(findings[:limit])
    more = f"<p>... and {rest} more: the list has {len(findings)} findings.</p>" if rest else ""
    return f"<div>{f'<ol>{items}</ol>' if items else ''}{more}</div>"


def _format_parts(finding: Finding, limit: int | None) -> Iterator[str]:
    """The title, the user's line, the advice, and the change if a program can make it."""
    yield f"<strong>{escape(format_line(finding.title, _MAX_TITLE))}</strong>"
    if finding.user_code:
        place = format_place(finding.user_file, finding.user_line)
        code = f"<code>{escape(finding.user_code.strip()[:limit])}</code>"
        yield f"<br>at {escape(place)}: {code}" if place else f"<br>{code}"
    yield f"<br>{format_prose(finding.suggestion[:limit])}"
    if finding.changes and finding.changes[0].can_be_applied:
        yield f"<pre>{escape(finding.changes[0].code[:limit])}</pre>"
