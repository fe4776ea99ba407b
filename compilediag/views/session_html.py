"""A session as HTML that a notebook shows, also without a kernel: what its summary says, without scripts and colors."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from ..diagnosis import Finding
from ..formatting import fit_html, format_line
from .summary import SHOWN, SessionResults, collect_results, explain_no_findings, format_totals

if TYPE_CHECKING:
    from ..storage.data import SessionData

#: Findings that are listed; fewer until the HTML fits.
LIMITS = (SHOWN, 3, 0)
#: Characters of a title or a reason.
MAX_TEXT = 400
#: What to call next, and what it gives.
_NEXT = (
    ("session.plan()", "what to change"),
    ("session.dashboard()", "the page"),
    ("session.recompiles", "a DataFrame"),
    ('session.report("report.html")', "one file to send"),
)


def format_session(data: SessionData) -> str:
    """The state, the totals, what the plan saves, the findings, and what to call next."""
    results, state = collect_results(data), data.state
    return fit_html(lambda limit: f"<div>{''.join(_list_parts(data, results, state, limit))}</div>", LIMITS)


def _list_parts(data: SessionData, results: SessionResults, state: str, limit: int | None) -> Iterator[str]:
    yield f"<p>compilediag session <code>{escape(data.path.name)}</code> ({state})</p>"
    if results.plan.recompiles:
        yield f"<p><strong>{escape(results.plan.headline)}</strong></p>"
    if results.plan.tried:
        yield f"<p>{escape(results.plan.tried['text'])}</p>"
    lines = [line.removeprefix("compilediag: ") for line in format_totals(results.totals, results.missing)]
    yield f"<p>{'<br>'.join(map(escape, lines))}</p>"
    yield from _list_findings(results, limit)
    yield from (
        f"<p>Not collected: {escape(subject)}: {escape(format_line(reason, MAX_TEXT))}</p>"
        for subject, reason in results.gaps.items()
    )
    yield f"<p>Next: {', '.join(f'<code>{escape(call)}</code> ({what})' for call, what in _NEXT)}</p>"


def _list_findings(results: SessionResults, limit: int | None) -> Iterator[str]:
    findings = [finding for finding in results.findings if finding.rule != "not_observed"]
    if not findings:
        yield f"<p>{escape(explain_no_findings(results.totals, results.missing, bool(results.gaps)))}</p>"
        return
    shown = findings[:limit]
    if shown:
        yield f"<ol>{''.join(f'<li>{_format_finding(finding, results)}</li>' for finding in shown)}</ol>"
    if rest := len(findings) - len(shown):
        yield f"<p>... and {rest} more in <code>session.findings()</code></p>"


def _format_finding(finding: Finding, results: SessionResults) -> str:
    title = escape(format_line(finding.title, MAX_TEXT))
    step = results.plan.find_step(finding)
    return f"{title}<br>Step {step} of the plan." if step else title
