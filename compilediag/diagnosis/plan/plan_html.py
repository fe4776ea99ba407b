"""A plan as HTML that needs no scripts and no styles: what a notebook shows for a plan, also without a kernel."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ...formatting import format_prose

if TYPE_CHECKING:
    from ..compile_cost import CompileCost
    from .plan import Plan, PlanStep, UnresolvedCause

#: Items of each list; fewer until the HTML fits.
HTML_LIMITS = (None, 20, 8, 3, 0)
#: Characters of code that a plan with a limit shows.
MAX_CODE = 4000


def format_html(plan: Plan, limit: int | None = None) -> str:
    """The plan as HTML. With a limit, each list has at most as many items, and long code is left out."""
    parts = (
        f"<p><strong>{format_prose(plan.headline)}</strong></p>",
        f"<p>{format_prose(plan.tried['text'])}</p>" if plan.tried else "",
        _format_list("ol", [_format_step(step) for step in plan.steps], limit),
        _format_block(plan, limit) if plan.steps else "",
        *(f"<p>{escape(spec.title)}</p><pre>{escape(spec.change.code)}</pre>" for spec in plan.specs[:limit]),
        "<p>Not resolved:</p>" if plan.unresolved else "",
        _format_list("ul", [_format_unresolved(cause) for cause in plan.unresolved], limit),
        "<p>Where compile time goes:</p>" if plan.costs else "",
        _format_list("ul", [_format_cost(cost) for cost in plan.costs], limit),
        *(f"<p>{format_prose(note)}</p>" for note in plan.notes[:limit]),
    )
    return f"<div>{''.join(parts)}</div>"


def _format_list(tag: str, items: list[str], limit: int | None) -> str:
    shown = items[:limit]
    more = f"<p>... and {len(items) - len(shown)} more in session.plan()</p>" if len(shown) < len(items) else ""
    return (f"<{tag}>{''.join(shown)}</{tag}>" if shown else "") + more


def _format_block(plan: Plan, limit: int | None) -> str:
    code = plan.code()
    if limit is not None and (len(code) > MAX_CODE or len(plan.steps) > limit):
        return "<p>The block to paste: <code>print(session.plan().code())</code></p>"
    return f"<p>The block to paste:</p><pre>{escape(code)}</pre>"


def _format_unresolved(cause: UnresolvedCause) -> str:
    return f"<li>{format_prose(' '.join(filter(None, (cause.place, cause.what))))}: {format_prose(cause.reason)}</li>"


def _format_step(step: PlanStep) -> str:
    code = f" <code>{escape(step.code)}</code>" if step.code else ""
    change = f"<pre>{escape(step.change)}</pre>" if step.can_be_applied else f"<br>{format_prose(step.change)}<br>"
    return f"<li>{escape(step.place)}{code}<br>{format_prose(step.what)}{change}{format_prose(step.saving)}</li>"


def _format_cost(cost: CompileCost) -> str:
    code = f"<pre>{escape(cost.code)}</pre>" if cost.code else "<br>"
    return f"<li>{format_prose(cost.what)}{code}{format_prose(cost.advice)}</li>"
