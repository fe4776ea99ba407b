"""The record of a session as HTML: plan, totals, other findings and a timeline.

Notebook hosts remove scripts, and some of them styles, so it needs neither. Colors are left to the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

from ...diagnosis import Finding
from ...diagnosis.finding_list import FindingList
from ...diagnosis.plan.plan_html import format_html
from ...events import Compile
from ...formatting import fit_html, format_line, format_seconds
from ..summary import SessionResults, explain_no_findings, format_totals
from .timeline_images import format_timeline

#: Items of each list -> functions in the timeline. Tried one after the other until the record fits.
LIMITS = {20: 12, 8: 8, 3: 4, 0: 2}
#: Characters of a reason why something was not collected.
MAX_REASON = 200


@dataclass(frozen=True)
class RecordFacts:
    """What a record shows: results, facts about the session (`SessionData.meta`), and its compiles."""

    results: SessionResults
    meta: dict[str, Any]
    compiles: Sequence[Compile]


def format_record(facts: RecordFacts, name: str) -> str:
    """The record as HTML of at most MAX_HTML bytes. `name` is a class of its outermost element."""
    return fit_html(
        lambda items: f'<div class="cdiag-record {name}">{"".join(_list_parts(facts, items or 0))}</div>', [*LIMITS]
    )


def _list_parts(facts: RecordFacts, items: int) -> Iterator[str]:
    results, plan = facts.results, facts.results.plan
    headline, *others = format_totals(results.totals, results.missing)
    if plan.recompiles or plan.costs:
        yield format_html(plan, items)
    yield f"<p><strong>{escape(headline)}</strong><br>{'<br>'.join(map(escape, others))}</p>"
    yield from _list_findings(results, items)
    yield from (f"<p>Not collected: {escape(name)}: {_clip(reason)}</p>" for name, reason in results.gaps.items())
    yield format_timeline(facts.compiles, LIMITS[items])
    yield f"<p><small>{escape(_describe_session(facts.meta))}</small></p>"


def _list_findings(results: SessionResults, items: int) -> Iterator[str]:
    findings = [finding for finding in results.findings if finding.rule != "not_observed"]
    if not findings:
        yield f"<p>{escape(explain_no_findings(results.totals, results.missing, bool(results.gaps)))}</p>"
    rest = [finding for finding in findings if not _is_planned(finding, results)]
    if rest:
        title = "Other findings" if len(rest) < len(findings) else "Findings"
        yield f"<p>{title}:</p>"
        yield FindingList(rest[:items])._repr_html_() if items else ""
        yield f"<p>... and {len(rest) - items} more in session.findings()</p>" if len(rest) > items else ""


def _is_planned(finding: Finding, results: SessionResults) -> bool:
    return results.plan.find_step(finding) is not None or results.plan.has_cost(finding)


def _clip(reason: str) -> str:
    return escape(format_line(reason, MAX_REASON))


def _describe_session(meta: dict[str, Any]) -> str:
    """When it was recorded, and with which torch."""
    began_ns, ended_ns = meta.get("created_ns"), meta.get("stopped_ns")
    parts = ["compilediag"]
    if began_ns:
        began = datetime.fromtimestamp(began_ns / 1e9).astimezone()
        parts.append(f"watch of {began:%Y-%m-%d %H:%M:%S %Z}")
    if began_ns and ended_ns:
        parts.append(f"{format_seconds((ended_ns - began_ns) / 1e9)} long")
    versions = (("torch", "torch_version"), ("Python", "python_version"))
    parts += [f"{name} {meta[key]}" for name, key in versions if meta.get(key)]
    return " · ".join(parts)
