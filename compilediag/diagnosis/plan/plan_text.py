"""A plan as plain text, and as the block of code to paste."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from ...formatting import escape_lines, format_line, format_place, format_times
from ..settings import Settings, fix_code

if TYPE_CHECKING:
    from ..change import Edit
    from ..compile_cost import CompileCost
    from .dynamic_specs import DynamicSpec
    from .plan import Plan, PlanStep, UnresolvedCause

WIDTH = 100
_VERBS = {"insert_before": "before", "replace": "instead of"}


def format_text(plan: Plan) -> str:
    """The plan as text of at most 100 columns; only a single word, or a line of code, that is longer exceeds that."""
    lines = _wrap(plan.headline)
    lines += _wrap(plan.tried["text"]) if plan.tried else []
    for number, step in enumerate(plan.steps, 1):
        lines += _format_step(number, step)
    if plan.settings and len(plan.steps) > 1:
        lines += ["All settings together:", *(f"   {line}" for line in format_settings(plan.settings).splitlines())]
    lines += [line for spec in plan.specs for line in _format_spec(spec)]
    if plan.unresolved:
        lines += ["Not resolved:", *(line for cause in plan.unresolved for line in _format_unresolved(cause))]
    if plan.costs:
        lines += ["Where compile time goes:", *(line for cost in plan.costs for line in _format_cost(cost))]
    return escape_lines("\n".join([*lines, *(line for note in plan.notes for line in _wrap(note))]))


def _format_step(number: int, step: PlanStep) -> list[str]:
    code = format_line(step.code or "", 80)
    where = ": ".join(filter(None, (step.place, code))) or "place not known"
    change = [f"   {line}" for line in step.change.splitlines()] if step.can_be_applied else _wrap(step.change, "   ")
    return [f"{number}. {where}", *_wrap(f"{step.what}.", "   "), *change, *_wrap(step.saving, "   ")]


def _format_spec(spec: DynamicSpec) -> list[str]:
    return [*_wrap(spec.title), *(f"   {line}" for line in spec.change.code.splitlines())]


def _format_unresolved(cause: UnresolvedCause) -> list[str]:
    where = f"{cause.place}: " if cause.place else ""
    return _wrap(f"- {where}{cause.what} ({format_times(len(cause.evidence))}): {cause.reason}", "", "  ")


def _format_cost(cost: CompileCost) -> list[str]:
    """What it costs, the code to paste and the advice. The details only say where the time went: `to_dict` has them."""
    code = [f"    {line}" for line in (cost.code or "").splitlines()]
    return [*_wrap(f"- {cost.what}.", "", "  "), *code, *_wrap(cost.advice, "  ")]


def _wrap(text: str, first: str = "", rest: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=first if rest is None else rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


def format_settings(settings: Settings) -> str:
    """The settings as Python, one assignment per line; "" without any."""
    return "\n".join(fix_code({key: value}) or "" for key, value in settings.items())


def format_code(plan: Plan) -> str:
    """The block to paste: the lines of each step under a comment with their place, then the settings."""
    blocks = [block for step in plan.steps if (block := _format_step_code(step))]
    if plan.settings:
        blocks.append(f"# Once, before the first compiled call:\n{format_settings(plan.settings)}")
    return escape_lines("\n".join(blocks))


def _describe_place(edit: Edit) -> str:
    """``train.py:7, instead of `k` in `step(x, k)` ``"""
    where = f" in `{format_line(edit.call, 80)}`" if edit.call else ""
    return f"{format_place(edit.file, edit.line)}, {_VERBS[edit.kind]} `{format_line(edit.old, 80)}`{where}"


def _format_step_code(step: PlanStep) -> str:
    """The edits of a step; its advice as a comment if no program can apply it; "" if it is only settings."""
    if step.edits:
        return "\n".join(f"# {_describe_place(edit)}:\n{edit.new}" for edit in step.edits)
    if step.settings:
        return ""
    return textwrap.fill(
        f"{step.place or 'In your code'}: {step.change}", WIDTH, initial_indent="# ", subsequent_indent="# "
    )
