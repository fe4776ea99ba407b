"""The steps of a plan that one specification of a function's arguments can replace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...events import Rows
from ..causes.call_sites import read_own_code
from ..causes.cause import Cause
from ..causes.source_paths import split_property
from .candidates import Candidate
from .dynamic_specs import SPEC_SINCE, DynamicSpec, write_spec
from .plan import PlanStep
from .spec_evidence import Slot, SpecEvidence, find_spec_evidence


def find_specs(data: Rows, chosen: Sequence[Candidate]) -> tuple[DynamicSpec, ...]:
    """The specifications that can replace steps of these candidates; none before the version of torch that has them."""
    versions = {cause.facts.torch_version for candidate in chosen for cause in candidate.causes}
    return tuple(_find_specs(data, chosen)) if versions and max(versions) >= SPEC_SINCE else ()


def _find_specs(data: Rows, chosen: Sequence[Candidate]) -> Iterator[DynamicSpec]:
    own = read_own_code(data)
    for evidence in find_spec_evidence(data):
        steps = tuple(number for number, one in enumerate(chosen, 1) if _covers(evidence, one))
        change = write_spec(evidence, own) if steps else None
        if change is not None:
            yield DynamicSpec(change, steps, *evidence.place)


def _covers(evidence: SpecEvidence, candidate: Candidate) -> bool:
    """True if the specification names all values that the candidate is about."""
    return all(
        cause.places == (evidence.place,) and evidence.slots.issuperset(_list_slots(cause) or [None])
        for cause in candidate.causes
    )


def _list_slots(cause: Cause) -> list[Slot]:
    """The sizes or numbers of a cause; none if torch's names of them are not certain."""
    _, kind, dim = split_property(cause.source)
    if "," in cause.source or kind not in (None, "size"):
        return []
    return [Slot(name, dim) for name in cause.torch_sources]


def add_specs(steps: Sequence[PlanStep], specs: Sequence[DynamicSpec]) -> tuple[PlanStep, ...]:
    """The steps, with the specifications that can replace them among their alternatives."""
    return tuple(
        replace(step, alternatives=(*step.alternatives, *(spec.change for spec in specs if number in spec.steps)))
        for number, step in enumerate(steps, 1)
    )
