"""Make the plan of a session: which causes can be changed, what each change saves, in which order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from ...events import Compile, GuardFailure, Recompile
from ...formatting import format_names
from ..evidence import Evidence, get_ids, kept, sum_seconds
from ..rules.costs import find_compile_costs
from ..rules.coverage import find_gaps
from ..rules.recompiles import find_side_effects
from ..settings import merge_settings
from .candidates import Candidate, list_candidates
from .outcome import read_outcome
from .plan import Plan, UnresolvedCause
from .selection import Blockers, Selection, select_causes
from .steps import add_specs, describe_what, find_specs, make_steps

#: In place of a cause: nothing saves the recompile.
_KEPT = -1
_FIRST_ONLY = (
    "Only the first failing guard of each recompile was collected, so a recompile can have more causes than are shown."
)
NOT_ALWAYS = "Recompiles were not collected all the time, so there may be more."


@kept
def make_plan(evidence: Evidence) -> Plan:
    """The smallest set of changes that saves the most compile seconds of a session."""
    candidates, recompiles = list_candidates(evidence), evidence.rows(Recompile)
    blockers = find_blockers(recompiles, candidates)
    selection = select_causes(blockers, lambda number: number != _KEPT and bool(candidates[number].changes))
    chosen = [candidates[number] for number in selection.chosen]
    specs = find_specs(evidence, chosen)
    steps = add_specs(make_steps(selection, candidates, len(recompiles)), specs)
    saved = selection.saved[-1] if selection.saved else ()
    block = merge_settings([step.settings for step in steps])
    is_collected = "recompiles" not in find_gaps(evidence)
    return Plan(
        steps=steps,
        recompiles=len(recompiles),
        recompiles_saved=len(saved),
        seconds=sum_seconds(row.duration_s for row in evidence.rows(Compile)),
        seconds_saved=sum_seconds(row.lost_s for row in saved),
        settings=block.settings,
        unresolved=_list_unresolved(selection, candidates, blockers),
        tried=_read_tried(evidence.meta),
        notes=(*block.conflicts, *(_list_limits(evidence, is_collected) if recompiles else ())),
        costs=find_compile_costs(evidence),
        is_collected=is_collected,
        is_own=evidence.is_ours,
        specs=specs,
    )


def _list_limits(evidence: Evidence, is_collected: bool) -> list[str]:
    """What the plan of some recompiles does not cover."""
    first_only = [] if evidence.rows(GuardFailure) else [_FIRST_ONLY]
    return first_only if is_collected else [*first_only, NOT_ALWAYS]


def find_blockers(recompiles: Sequence[Recompile], candidates: Sequence[Candidate]) -> dict[Recompile, Blockers]:
    """Each recompile with what keeps it: the candidates whose guards failed at it, by their numbers."""
    found: dict[int | None, set[int]] = defaultdict(set)
    for number, candidate in enumerate(candidates):
        for row in candidate.rows:
            found[row.event_id].add(number)
        for event in candidate.kept:
            found[event].add(_KEPT)
    return {row: frozenset(found[row.event_id]) for row in recompiles}


def _list_unresolved(
    selection: Selection, candidates: Sequence[Candidate], blockers: dict[Recompile, Blockers]
) -> tuple[UnresolvedCause, ...]:
    """What keeps the recompiles that no step saves: causes without a change, and what fails together with them."""
    saved = set(selection.saved[-1]) if selection.saved else set()
    effects = find_side_effects([pair for candidate in candidates for pair in candidate.advised])
    found = []
    for number, candidate in enumerate(candidates):
        rows = [row for row, causes in blockers.items() if number in causes and row not in saved]
        is_kept = number not in selection.chosen or any(row.event_id in candidate.kept for row in rows)
        if rows and is_kept and not effects.issuperset(map(id, candidate.causes)):
            found.append(_describe_unresolved(number, candidates, blockers, rows))
    return tuple(found)


def _describe_unresolved(
    number: int, candidates: Sequence[Candidate], blockers: Mapping[Recompile, Blockers], rows: Sequence[Recompile]
) -> UnresolvedCause:
    reason = _explain(number, candidates, {row.event_id: blockers[row] for row in rows})
    place = candidates[number].causes[0].user_place
    return UnresolvedCause(describe_what(candidates[number]), reason, place, get_ids(rows))


def _explain(number: int, candidates: Sequence[Candidate], blockers: Mapping[int | None, Blockers]) -> str:
    candidate = candidates[number]
    if not candidate.changes:
        advice = candidate.advice[0]
        return " ".join(filter(None, (advice.action, advice.explanation)))
    reasons = dict.fromkeys(reason for event, reason in candidate.kept.items() if event in blockers)
    others = {
        other for causes in blockers.values() for other in causes - {number, _KEPT} if not candidates[other].changes
    }
    if reasons or not others:
        return "; ".join(reasons) or "changing it saves nothing: torch compiles what fails at the same calls on its own"
    names = format_names([f"`{candidates[other].name}`" for other in sorted(others)])
    calls = "the same call" if len(blockers) == 1 else "the same calls"
    return f"changing it saves nothing: {names} failed at {calls}, and no change resolves that"


def _read_tried(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """The outcome of a trial of this plan, which `compilediag try` stores in the session; None if there is none."""
    outcome = read_outcome(meta)
    return None if outcome is None else outcome.to_dict()
