"""The plan of a page: what `Plan.to_dict()` has, its patch, and which finding is which step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, cast

from ..diagnosis import fix_code
from ..diagnosis.examples import load_examples
from ..diagnosis.torch_docs import find_torch_page
from .page_types import PageExample, PageFinding, PageLink, PagePlan

if TYPE_CHECKING:
    from ..diagnosis import Finding
    from ..diagnosis.plan import Plan


def describe_plan(plan: Plan, is_redacted: bool) -> PagePlan:
    """The plan as plain values. A redacted plan has no patch, because that contains lines of the user's files."""
    return cast(PagePlan, {**plan.to_dict(), "patch": None if is_redacted else plan.patch()})


def describe_findings(findings: Sequence[Finding], plan: Plan) -> list[PageFinding]:
    """The findings as plain values; each with the number of the step that fixes it."""
    return [_describe_finding(finding, plan.find_step(finding), plan.has_cost(finding)) for finding in findings]


def describe_examples(findings: Iterable[Finding], plan: Plan) -> dict[str, PageExample]:
    """Rule -> its worked example, for the rules of these findings and of the plan's steps."""
    examples = load_examples()
    rules = _list_rules(findings, plan)
    return {rule: cast(PageExample, asdict(examples[rule])) for rule in rules if rule in examples}


def describe_torch_docs(findings: Iterable[Finding], plan: Plan) -> dict[str, PageLink]:
    """Rule -> the page of torch's documentation about it, for the rules of these findings and of the plan's steps."""
    pages = {rule: find_torch_page(rule) for rule in _list_rules(findings, plan)}
    return {rule: {"title": page.title, "url": page.url} for rule, page in pages.items() if page is not None}


def _list_rules(findings: Iterable[Finding], plan: Plan) -> list[str]:
    return sorted({finding.rule for finding in findings} | {step.rule for step in plan.steps})


def leave_out_planned(findings: Sequence[Finding], plan: Plan) -> list[Finding]:
    """The findings of a redacted page: without those of recompiles that the plan explains.

    Rules see redacted rows. Without values, the recompiles of one cause cannot be joined.
    """
    evidence = (*(step.evidence for step in plan.steps), *(cause.evidence for cause in plan.unresolved))
    planned = {event for events in evidence for event in events}
    return [f for f in findings if f.rule == "recompile_limit" or not f.evidence or not planned.issuperset(f.evidence)]


def _describe_finding(finding: Finding, step: int | None, is_cost: bool) -> PageFinding:
    return {
        "rule": finding.rule,
        "title": finding.title,
        "seconds_recoverable": finding.seconds_recoverable,
        "is_expected": finding.is_expected,
        "count": finding.count,
        "suggestion": finding.suggestion,
        "fix": fix_code(finding.fix),
        "function": finding.function,
        "file": finding.file,
        "line": finding.line,
        "evidence": list(finding.evidence),
        "values": [str(value) for value in finding.details],
        "step": step,
        "is_cost": is_cost,
    }
