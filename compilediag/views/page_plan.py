"""The plan of a page: what `Plan.to_dict()` has, its patch, and which finding is which step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from ..diagnosis import fix_code
from .page_types import PageFinding, PagePlan

if TYPE_CHECKING:
    from ..diagnosis import Finding
    from ..diagnosis.plan import Plan


def describe_plan(plan: Plan) -> PagePlan:
    """The plan as plain values."""
    return cast(PagePlan, {**plan.to_dict(), "patch": None})


def describe_findings(findings: Sequence[Finding], plan: Plan) -> list[PageFinding]:
    """The findings as plain values; each with the number of the step that fixes it."""
    return [_describe_finding(finding, find_step(finding, plan)) for finding in findings]


def find_step(finding: Finding, plan: Plan) -> int | None:
    """The number, from 1, of the step for the cause of a finding; None if the plan has none."""
    for number, step in enumerate(plan.steps, 1):
        if finding.what_changed in step.causes and not set(step.evidence).isdisjoint(finding.evidence):
            return number
    return None


def _describe_finding(finding: Finding, step: int | None) -> PageFinding:
    return {
        "rule": finding.rule,
        "severity": finding.severity,
        "title": finding.title,
        "seconds_lost": finding.seconds_lost,
        "count": finding.count,
        "suggestion": finding.suggestion,
        "fix": fix_code(finding.fix),
        "function": finding.function,
        "file": finding.file,
        "line": finding.line,
        "evidence": list(finding.evidence),
        "values": [str(value) for value in finding.details],
        "step": step,
    }
