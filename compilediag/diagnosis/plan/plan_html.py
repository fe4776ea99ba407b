"""A plan as HTML that needs no scripts and no styles: what a notebook shows for a plan, also without a kernel."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ...formatting import format_prose

if TYPE_CHECKING:
    from ..compile_cost import CompileCost
    from .plan import Plan, PlanStep


def format_html(plan: Plan) -> str:
    """The plan as HTML."""
    steps = "".join(map(_format_step, plan.steps))
    unresolved = "".join(
        f"<li>{format_prose(' '.join(filter(None, (cause.place, cause.what))))}: {format_prose(cause.reason)}</li>"
        for cause in plan.unresolved
    )
    parts = (
        f"<p><strong>{format_prose(plan.headline)}</strong></p>",
        f"<p>{format_prose(plan.tried['text'])}</p>" if plan.tried else "",
        f"<ol>{steps}</ol>" if steps else "",
        f"<p>The block to paste:</p><pre>{escape(plan.code())}</pre>" if steps else "",
        *(f"<p>{escape(spec.title)}</p><pre>{escape(spec.change.code)}</pre>" for spec in plan.specs),
        f"<p>Not resolved:</p><ul>{unresolved}</ul>" if unresolved else "",
        f"<p>Where compile time goes:</p><ul>{''.join(map(_format_cost, plan.costs))}</ul>" if plan.costs else "",
        *(f"<p>{format_prose(note)}</p>" for note in plan.notes),
    )
    return f"<div>{''.join(parts)}</div>"


def _format_step(step: PlanStep) -> str:
    code = f" <code>{escape(step.code)}</code>" if step.code else ""
    change = f"<pre>{escape(step.change)}</pre>" if step.can_be_applied else f"<br>{format_prose(step.change)}<br>"
    return f"<li>{escape(step.place)}{code}<br>{format_prose(step.what)}{change}{format_prose(step.saving)}</li>"


def _format_cost(cost: CompileCost) -> str:
    code = f"<pre>{escape(cost.code)}</pre>" if cost.code else "<br>"
    return f"<li>{format_prose(cost.what)}{code}{format_prose(cost.advice)}</li>"
