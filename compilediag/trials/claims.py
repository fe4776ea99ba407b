"""What a plan claims, compared with what a trial of it measured."""

from __future__ import annotations

from ..diagnosis.change import Edit
from ..diagnosis.plan import Plan
from ..formatting import format_amount


def explain_nothing_to_try(plan: Plan) -> str | None:
    """Why a plan cannot be tried, in one line; None if it can."""
    if not plan.recompiles and not plan.steps:
        return "nothing recompiled"
    if not plan.steps:
        return "the plan has no step; session.plan() gives the reasons"
    if not any(step.can_be_applied for step in plan.steps):
        return "the plan has only changes that a program cannot make; compilediag plan shows them"
    return None


def list_skipped_steps(plan: Plan) -> list[int]:
    """The numbers of the steps, from 1 on, that a program cannot make."""
    return [number for number, step in enumerate(plan.steps, 1) if not step.can_be_applied]


def describe_skipped_steps(plan: Plan) -> str | None:
    """Which steps were not part of the trial, in one line; None if all were."""
    skipped = list_skipped_steps(plan)
    if not skipped:
        return None
    names = ", ".join(map(str, skipped))
    return (
        f"step {names} was not tried: you have to make that change"
        if len(skipped) == 1
        else (f"steps {names} were not tried: you have to make those changes")
    )


def find_broken_claim(plan: Plan, before: int, after: int) -> str | None:
    """How the measured recompiles contradict the plan, in one line; None if they do not.

    The session of the plan may be longer than the runs, so the plan's own rest is what may remain. A plan that saves no
    recompiles must not add any.
    """
    if not plan.recompiles_saved:
        return f"the plan adds recompiles: {before} -> {after}" if after > before else None
    if before == 0:
        return "nothing recompiled without the plan"
    if after >= before:
        return f"the plan does not help: {format_amount(before, 'recompile')} without it and {after} with it"
    rest = plan.recompiles - plan.recompiles_saved
    if not list_skipped_steps(plan) and after > rest:
        return f"the plan says that {rest} should remain, but {format_amount(after, 'recompile')} did"
    return None


def list_edits(plan: Plan) -> tuple[Edit, ...]:
    """The edits of all steps."""
    return tuple(edit for step in plan.steps for edit in step.edits)
