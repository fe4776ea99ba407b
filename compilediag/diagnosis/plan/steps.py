"""The steps of a plan, from the chosen causes: where, what varies, what to change, and what that saves; and the
specifications of a function's arguments that can replace them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...events import Recompile
from ...formatting import format_amount, format_change, format_names, format_seconds
from ..causes.call_sites import read_own_code
from ..causes.cause import Cause, list_unique
from ..change import CodeChange, Edit
from ..evidence import Evidence, find_first, get_ids, sum_seconds
from ..rule import Advice, describe_change, format_user_line
from .candidates import Candidate
from .dynamic_specs import SPEC_SINCE, DynamicSpec, write_spec
from .plan import PlanStep
from .selection import Selection
from .spec_evidence import Slot, SpecEvidence, find_spec_evidence

#: The function that marks a dimension, of which there are several.
_MARK = re.compile(r"^[\w.]*mark_\w+(?=\()")


def make_steps(selection: Selection, candidates: Sequence[Candidate], total: int) -> tuple[PlanStep, ...]:
    """One step for each chosen candidate; what an earlier step does already is left out of a later one."""
    steps: list[PlanStep] = []
    written: set[tuple[str, int, str]] = set()
    chosen = [candidates[number] for number in selection.chosen]
    for candidate, saved, alone in zip(chosen, selection.saved, selection.alone, strict=True):
        others = [other for other in chosen if other is not candidate]
        step = _make_step(candidate, saved, _describe_saving(candidate, saved, alone, others, total, not steps))
        edits = tuple(edit for edit in (_drop_repeated(edit, written) for edit in step.edits) if edit.new)
        steps.append(replace(step, recompiles_saved_alone=len(alone), edits=edits))
    return tuple(steps)


def _drop_repeated(edit: Edit, written: set[tuple[str, int, str]]) -> Edit:
    """The edit without lines that an earlier step puts at the same place; a dimension is marked once."""
    if edit.kind != "insert_before":
        return edit
    keys = {line: (edit.file, edit.line, _MARK.sub("", line)) for line in edit.new.splitlines()}
    new = [line for line, key in keys.items() if key not in written]
    written.update(keys.values())
    return replace(edit, new="\n".join(new))


def _make_step(candidate: Candidate, saved: Sequence[Recompile], saving: str) -> PlanStep:
    causes, change = candidate.causes, candidate.changes[0]
    file, line, function, code = _find_place(causes[0], change)
    return PlanStep(
        rule=candidate.advice[0].rule.id,
        what=f"{describe_what(candidate)}{_describe_line(causes)}",
        change=change.code,
        why=_explain(candidate),
        saving=saving,
        recompiles_saved_alone=0,
        recompiles_saved=len(saved),
        seconds_saved=sum_seconds(row.lost_s for row in saved),
        evidence=tuple(sorted(get_ids(candidate.rows))),
        file=file,
        line=line,
        function=function,
        code=code,
        expression=_get_expression(causes),
        values=_list_shapes(causes) or list_unique(value for cause in causes for value in cause.values),
        settings=change.settings,
        edits=change.edits,
        alternatives=candidate.changes[1:],
        causes=tuple(_describe(cause, advice) for cause, advice in candidate.advised),
    )


def _describe(cause: Cause, advice: Advice) -> str:
    return advice.what_changed or describe_change(cause)


def describe_what(candidate: Candidate) -> str:
    """What varies: `ids.shape[0] was 4, then 6`; sizes of one tensor as shapes."""
    shapes = _list_shapes(candidate.causes)
    if shapes:
        return f"{_get_expression(candidate.causes)} {format_change(shapes)}"
    return "; ".join(list_unique(_describe(cause, advice) for cause, advice in candidate.advised))


def _get_expression(causes: Sequence[Cause]) -> str | None:
    """What varies in the user's names, or in those of the compiled function: `ids.shape[0], ids.shape[1]`."""
    ordered = sorted(causes, key=lambda cause: cause.path.dim or 0) if _list_shapes(causes) else causes
    return ", ".join(list_unique(cause.name for cause in ordered)) or None


def _list_shapes(causes: Sequence[Cause]) -> tuple[str, ...]:
    """The sizes of one tensor together, in the order of time: 4x16, 6x16, 6x24. Empty for anything else."""
    are_sizes = all(cause.path.is_size for cause in causes)
    if len(causes) < 2 or len({cause.path.owner for cause in causes}) > 1 or not are_sizes:
        return ()
    if len({cause.path.dim for cause in causes}) < len(causes):
        return ()  # Tensors of several functions that have the same name there.
    ordered = sorted(causes, key=lambda cause: cause.path.dim or 0)
    if not all(cause.values for cause in ordered):
        return ()
    current = [cause.values[0] for cause in ordered]
    shapes = ["x".join(current)]
    for number in sorted({row.event_id or 0 for cause in ordered for row in cause.seen}):
        for at, cause in enumerate(ordered):
            current[at] = find_first(row.actual for row in cause.seen if row.event_id == number) or current[at]
        shapes.append("x".join(current))
    return list_unique(shapes)


def _explain(candidate: Candidate) -> str:
    """Why, and why the value has no name in the user's own code if it has none."""
    reasons = (cause.user.reason for cause in candidate.causes)
    unnamed = next((f"It has no name at your call: {reason}." for reason in reasons if reason), "")
    texts = list_unique(advice.explanation for advice in candidate.advice)
    whole = [text for text in texts if not any(text in other for other in texts if other != text)]
    return " ".join(filter(None, [*whole, unnamed]))


def _describe_line(causes: Sequence[Cause]) -> str:
    """` (model.py:12: self.step += 1)`: where a module's number is compiled in, if the step is at the call."""
    cause = causes[0]
    is_attribute = len(causes) == 1 and cause.family == "value" and cause.path.is_module_attribute
    return format_user_line(cause) if is_attribute and cause.user_place_text != cause.user_place else ""


Location = tuple[str | None, int | None, str | None, str | None]


def _find_place(cause: Cause, change: CodeChange) -> Location:
    """File, line, function and code of the user's line: of the edit, or the call; without both, of the guard."""
    edit, site = next(iter(change.edits), None), cause.call_site
    if edit is not None:
        is_call = site is not None and (site.file, site.line) == (edit.file, edit.line)
        return (
            edit.file,
            edit.line,
            site.function if is_call and site else None,
            site.code if is_call and site else None,
        )
    if site is not None:
        return site.file, site.line, site.function, site.code
    row = cause.recompiles[0]
    file, line = (row.user_file, row.user_line) if row.user_file else (row.file, row.line)
    return file, line, row.function, cause.user_code


def _describe_saving(
    candidate: Candidate,
    saved: Sequence[Recompile],
    alone: Sequence[Recompile],
    others: Sequence[Candidate],
    total: int,
    is_first: bool,
) -> str:
    """What the step saves with those before it, then what it saves alone, and what keeps it from saving more."""
    seconds = sum_seconds(row.lost_s for row in saved)
    timed = f" and {format_seconds(seconds)}" if seconds else ""
    before = "" if is_first else "With the steps before it: "
    amount = f"{len(saved)} of {format_amount(total, 'recompile')}{timed}" if saved else "nothing yet"
    together = f"{before}{'saves' if before else 'Saves'} {amount}."
    rows = {row.event_id for row in candidate.rows}
    beside = [other for other in others if rows & {row.event_id for row in other.rows}]
    if not beside:
        return together
    fails = "fails" if len(beside) == 1 and ", " not in beside[0].name else "fail"
    names = format_names([f"`{other.name}`" for other in beside])
    if saved and is_first:
        return f"{together} {names} {fails} at some of the same calls."
    saves = format_amount(len(alone), "recompile") if alone else "nothing"
    together = "" if is_first else together
    return f"{together} Alone it saves {saves}: {names} {fails} at the same calls.".lstrip()


# Specifications


def find_specs(evidence: Evidence, chosen: Sequence[Candidate]) -> tuple[DynamicSpec, ...]:
    """The specifications that can replace steps of these candidates; none before the version of torch that has them."""
    versions = {cause.facts.torch_version for candidate in chosen for cause in candidate.causes}
    return tuple(_find_specs(evidence, chosen)) if versions and max(versions) >= SPEC_SINCE else ()


def _find_specs(evidence: Evidence, chosen: Sequence[Candidate]) -> Iterator[DynamicSpec]:
    own = read_own_code(evidence)
    for varying in find_spec_evidence(evidence):
        steps = tuple(number for number, one in enumerate(chosen, 1) if _covers(varying, one))
        change = write_spec(varying, own) if steps else None
        if change is not None:
            yield DynamicSpec(change, steps, *varying.place)


def _covers(varying: SpecEvidence, candidate: Candidate) -> bool:
    """True if the specification names all values that the candidate is about."""
    return all(
        cause.places == (varying.place,) and varying.slots.issuperset(_list_slots(cause) or [None])
        for cause in candidate.causes
    )


def _list_slots(cause: Cause) -> list[Slot]:
    """The sizes or numbers of a cause; none if torch's names of them are not certain."""
    if cause.is_relation or cause.path.tensor_property not in (None, "size"):
        return []
    return [Slot(name, cause.path.dim) for name in cause.torch_sources]


def add_specs(steps: Sequence[PlanStep], specs: Sequence[DynamicSpec]) -> tuple[PlanStep, ...]:
    """The steps, with the specifications that can replace them among their alternatives."""
    return tuple(
        replace(step, alternatives=(*step.alternatives, *(spec.change for spec in specs if number in spec.steps)))
        for number, step in enumerate(steps, 1)
    )
