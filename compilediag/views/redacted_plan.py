"""The plan of a redacted view: its numbers, names and places, without source code, values and paths.

The plan itself is made of all data, because without values recompiles of one cause cannot be joined. What is shown is
built here from the parts that may be shown; a new part of a plan stays out until it is added.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..diagnosis.plan import Plan, PlanStep, UnresolvedCause
from ..diagnosis.plan.make_plan import NOT_ALWAYS
from ..diagnosis.plan.outcome import Outcome
from ..diagnosis.plan.plan_text import format_settings
from ..diagnosis.rules.compile_time import find_compile_costs
from ..formatting import format_amount, format_seconds
from .redaction import keep_names, redact_source, redact_torch_source

if TYPE_CHECKING:
    from ..diagnosis.settings import Settings
    from ..events import Rows
    from .redaction import Redactor

NOTE = "This plan is redacted: source code, values and paths are left out."
_LEFT_OUT = "The change is left out, because it contains source code."


def redact_plan(plan: Plan, redactor: Redactor, data: Rows) -> Plan:
    """The plan without user data; `data` has the redacted rows, which its costs are made of."""
    return Plan(
        steps=tuple(_redact_step(step, redactor) for step in plan.steps),
        recompiles=plan.recompiles,
        recompiles_saved=plan.recompiles_saved,
        seconds=plan.seconds,
        seconds_saved=plan.seconds_saved,
        settings=_redact_settings(plan.settings),
        unresolved=tuple(_redact_cause(cause) for cause in plan.unresolved),
        tried=_redact_outcome(plan),
        costs=find_compile_costs(data),
        notes=(NOTE, *(note for note in plan.notes if note == NOT_ALWAYS)) if plan.recompiles else (),
        is_collected=plan.is_collected,
    )


def _redact_step(step: PlanStep, redactor: Redactor) -> PlanStep:
    name = redact_source(step.expression or None)
    settings = _redact_settings(step.settings) if step.settings and not step.edits else None
    return PlanStep(
        rule=step.rule,
        what=f"{name} changed" if name else "A guarded value changed",
        change=format_settings(settings) if settings else _LEFT_OUT,
        why="",
        saving=_describe_saving(step),
        recompiles_saved_alone=step.recompiles_saved_alone,
        recompiles_saved=step.recompiles_saved,
        seconds_saved=step.seconds_saved,
        evidence=step.evidence,
        file=redactor.replace_file(step.file),
        line=step.line,
        function=keep_names(step.function),
        expression=name,
        settings=settings,
    )


def _describe_saving(step: PlanStep) -> str:
    timed = f" and {format_seconds(step.seconds_saved)}" if step.seconds_saved else ""
    together = f"Saves {format_amount(step.recompiles_saved, 'recompile')}{timed} with the steps before it"
    return f"{together}, {format_amount(step.recompiles_saved_alone, 'recompile')} alone."


def _redact_settings(settings: Settings) -> Settings:
    """The settings; the texts among them are lists of names as torch writes them."""
    return {
        key: redact_torch_source(value) or "..." if isinstance(value, str) else value for key, value in settings.items()
    }


def _redact_cause(cause: UnresolvedCause) -> UnresolvedCause:
    count = format_amount(len(cause.evidence), "recompile")
    return UnresolvedCause(what=f"A cause of {count}", reason="", place="", evidence=cause.evidence)


def _redact_outcome(plan: Plan) -> dict[str, Any] | None:
    """The numbers of a trial, without the code that was tried and the program's own messages."""
    if plan.tried is None:
        return None
    outcome = Outcome.from_dict(plan.tried)
    return replace(outcome, backend=keep_names(outcome.backend), note=None, code="").to_dict()
