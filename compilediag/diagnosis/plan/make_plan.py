"""Make the plan of a session: which causes can be changed, what each change saves, in which order."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...events import Compile, Recompile, Rows
from ...formatting import format_amount, format_expression, format_names, format_seconds
from ..causes.advice import Advice, describe_change
from ..causes.cause import Cause
from ..causes.grouping import find_causes
from ..causes.recompile_findings import advise
from ..change import CodeChange
from ..evidence import find_first, get_ids, sum_seconds
from ..settings import merge_fixes
from .plan import Plan, PlanStep, UnresolvedCause
from .plan_text import describe_saving
from .selection import Blockers, Selection, select_causes


def make_plan(data: Rows) -> Plan:
    """The smallest set of changes that saves the most compile seconds of a session."""
    causes = find_causes(data)
    advice = [advise(cause) for cause in causes]
    changes = [get_changes(one) for one in advice]
    recompiles = data.rows(Recompile)
    blockers = find_blockers(recompiles, causes)
    selection = select_causes(blockers, lambda number: bool(changes[number]))
    steps = _make_steps(selection, causes, advice, changes, len(recompiles))
    saved = selection.saved[-1] if selection.saved else ()
    return Plan(
        steps=steps,
        recompiles=len(recompiles),
        recompiles_saved=len(saved),
        seconds=sum_seconds(row.duration_s for row in data.rows(Compile)),
        seconds_saved=sum_seconds(row.lost_s for row in saved),
        settings=merge_fixes(step.settings for step in steps),
        unresolved=_list_unresolved(selection, causes, advice, changes, blockers),
        tried=_read_outcome(data),
    )


def get_changes(advice: Advice) -> tuple[CodeChange, ...]:
    """The ways to follow an advice, the preferred one first; none if there is nothing to change."""
    if advice.is_expected:
        return ()
    return advice.changes or (CodeChange(text=advice.action),)


def find_blockers(recompiles: Sequence[Recompile], causes: Sequence[Cause]) -> dict[Recompile, Blockers]:
    """Each recompile with the causes whose guards failed at it, by their numbers in `causes`."""
    found: dict[int | None, set[int]] = defaultdict(set)
    for number, cause in enumerate(causes):
        for row in cause.failed:
            found[row.event_id].add(number)
    return {row: frozenset(found[row.event_id]) for row in recompiles}


def _make_steps(
    selection: Selection,
    causes: Sequence[Cause],
    advice: Sequence[Advice],
    changes: Sequence[tuple[CodeChange, ...]],
    total: int,
) -> tuple[PlanStep, ...]:
    found = []
    for place, number in enumerate(selection.chosen):
        saved, alone = selection.saved[place], selection.alone[place]
        others = [causes[other] for other in selection.chosen if other != number]
        found.append(_make_step(causes[number], advice[number], changes[number], saved, alone, others, total))
    return tuple(found)


def _make_step(
    cause: Cause,
    advice: Advice,
    changes: tuple[CodeChange, ...],
    saved: Sequence[Recompile],
    alone: Sequence[Recompile],
    others: Iterable[Cause],
    total: int,
) -> PlanStep:
    rows, first = cause.recompiles, changes[0]
    seconds = sum_seconds(row.lost_s for row in saved)
    timed = f" and {format_seconds(seconds)}" if seconds else ""
    file = find_first(row.user_file for row in rows) or find_first(row.file for row in rows)
    line = find_first(row.user_line for row in rows) or find_first(row.line for row in rows)
    return PlanStep(
        rule=advice.rule,
        what=advice.what_changed or describe_change(cause),
        change=first.code,
        why=advice.explanation,
        saving=describe_saving(len(saved), total, timed, _describe_alone(cause, alone, others)),
        recompiles_saved_alone=len(alone),
        recompiles_saved=len(saved),
        seconds_saved=seconds,
        evidence=get_ids(cause.failed),
        file=file,
        line=line,
        function=find_first(row.function for row in rows),
        code=cause.user_code,
        expression=format_expression(cause.source) or None,
        values=cause.values,
        settings=first.settings,
        edits=first.edits,
        alternatives=changes[1:],
    )


def _describe_alone(cause: Cause, alone: Sequence[Recompile], others: Iterable[Cause]) -> str:
    """What the step saves without the others, and which guards keep it from saving more."""
    rows = {row.event_id for row in cause.failed}
    beside = [other for other in others if rows & {row.event_id for row in other.failed}]
    if not beside:
        return ""
    names = format_names([f"`{other.source or other.kind}`" for other in beside])
    fails = "fails" if len(beside) == 1 else "fail"
    saves = format_amount(len(alone), "recompile") if alone else "nothing"
    return f"Alone it saves {saves}: {names} {fails} at the same calls."


def _list_unresolved(
    selection: Selection,
    causes: Sequence[Cause],
    advice: Sequence[Advice],
    changes: Sequence[tuple[CodeChange, ...]],
    blockers: Mapping[Recompile, Blockers],
) -> tuple[UnresolvedCause, ...]:
    left = [number for number in range(len(causes)) if number not in selection.chosen]
    return tuple(
        UnresolvedCause(
            what=advice[number].what_changed or describe_change(causes[number]),
            reason=_explain_unresolved(number, causes, advice, changes, blockers),
            place=causes[number].place_text,
            evidence=causes[number].evidence,
        )
        for number in left
    )


def _explain_unresolved(
    number: int,
    causes: Sequence[Cause],
    advice: Sequence[Advice],
    changes: Sequence[tuple[CodeChange, ...]],
    blockers: Mapping[Recompile, Blockers],
) -> str:
    if not changes[number]:
        return advice[number].explanation or advice[number].action
    beside = {other for found in blockers.values() if number in found for other in found if not changes[other]}
    names = format_names([f"`{causes[other].source or causes[other].kind}`" for other in sorted(beside)])
    return f"changing it alone saves nothing: {names} failed at the same calls, and nothing changes that"


def _read_outcome(data: Rows) -> dict[str, Any] | None:
    """The outcome of a trial of this plan, which `compilediag try` stores in the session; None if there is none."""
    stored = getattr(data, "meta", {}).get("tried")
    found = json.loads(stored) if isinstance(stored, str) else stored
    return found if isinstance(found, dict) else None
