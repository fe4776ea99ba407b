"""What a plan can choose from: causes that one change resolves together, and the recompiles that each keeps alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...decode.guards.path import format_expression
from ...events import Recompile
from ..causes.cause import ZERO_ONE, Cause
from ..causes.edits import get_user_value
from ..causes.grouping import find_causes
from ..causes.value_facts import FactIndex, index_facts
from ..change import CodeChange, Edit
from ..evidence import Evidence, Place, get_place, kept
from ..rule import Advice
from ..rules.guards import advise
from ..rules.guards_on_numbers import DYNAMIC_BY_DEFAULT
from ..settings import merge_settings

#: Settings that make numbers dynamic.
_DYNAMIC_SETTINGS = frozenset({"dynamic_sources", "allow_unspec_int_on_nn_module"})
_MARK = "mark_dynamic("
#: Part of a change that does something by itself: a setting's item, or a line at a place.
Atom = tuple[object, ...]


@dataclass(frozen=True)
class Candidate:
    """Causes that one change resolves.

    `changes` are the ways to do that, the preferred one first; none for a single cause that nothing resolves.
    `kept` has the recompiles that stay although the first of them is made, by their event ids, with the reason.
    """

    causes: tuple[Cause, ...]
    advice: tuple[Advice, ...]
    changes: tuple[CodeChange, ...]
    kept: Mapping[int | None, str] = field(default_factory=dict)

    @property
    def change(self) -> CodeChange | None:
        return self.changes[0] if self.changes else None

    @property
    def advised(self) -> tuple[tuple[Cause, Advice], ...]:
        """Each cause with its advice."""
        return tuple(zip(self.causes, self.advice, strict=True))

    @property
    def name(self) -> str:
        """What varies, in the user's names where they are known."""
        names = (cause.name or cause.kind for cause in self.causes)
        return ", ".join(dict.fromkeys(names))

    @property
    def rows(self) -> tuple[Recompile, ...]:
        """The recompiles that stay as long as these causes do."""
        rows = {row.event_id: row for cause in self.causes for row in cause.failed}
        return tuple(rows.values())


@kept
def list_candidates(evidence: Evidence) -> list[Candidate]:
    """The causes of a session with what changes them; those that one change resolves are one candidate."""
    found: list[Candidate] = []
    for cause in find_causes(evidence):
        own = _make_candidate(cause, index_facts(evidence))
        place = next((at for at, other in enumerate(found) if _is_one_change(own, other)), None)
        if place is None:
            found.append(own)
        else:
            found[place] = _merge(found[place], own)
    return found


def _make_candidate(cause: Cause, facts: FactIndex) -> Candidate:
    advice = advise(cause.alone)  # Other causes have their own steps.
    changes = get_changes(advice)
    if changes and changes[0] == CodeChange(text=DYNAMIC_BY_DEFAULT):
        return Candidate((cause,), (advice,), changes, find_first_changes(cause))
    if not changes or not is_dynamic_change(changes[0]):
        return Candidate((cause,), (advice,), changes)
    kept = find_kept(cause, facts)
    ordered = order_changes(changes, is_useless=all(row.event_id in kept for row in cause.failed))
    return Candidate((cause,), (advice,), ordered, kept if is_dynamic_change(ordered[0]) else {})


def order_changes(changes: Sequence[CodeChange], is_useless: bool) -> tuple[CodeChange, ...]:
    """The changes, those that make a number dynamic last if that saves nothing: for the values 0 and 1."""
    return tuple(sorted(changes, key=lambda change: is_useless and is_dynamic_change(change)))


def get_changes(advice: Advice) -> tuple[CodeChange, ...]:
    """The ways to follow an advice, the preferred one first; none if there is nothing to change."""
    is_remedy = advice.has_recipe or any(change.can_be_applied for change in advice.changes)
    if advice.is_expected or (advice.rule.gives_fewer and not is_remedy):
        return ()
    return advice.changes or (CodeChange(text=advice.action),)


def _is_one_change(one: Candidate, other: Candidate) -> bool:
    """True if a change does all that the other does, or if both mark sizes of one tensor at one line."""
    if one.change is None or other.change is None:
        return False
    own, others = list_atoms(one.change), list_atoms(other.change)
    if own and others and (own <= others or others <= own):
        return True
    return one.change.can_be_applied and other.change.can_be_applied and bool(_get_tensors(one) & _get_tensors(other))


def list_atoms(change: CodeChange) -> frozenset[Atom]:
    """What a change does, in parts that can be compared."""
    lines = (
        (edit.file, edit.line, edit.kind, edit.old if edit.kind == "replace" else "", line)
        for edit in change.edits
        for line in edit.new.splitlines()
    )
    items = ((key, item) for key, value in (change.settings or {}).items() for item in str(value).split(","))
    return frozenset([*lines, *items])


def _get_tensors(candidate: Candidate) -> frozenset[tuple[object, ...]]:
    """The tensors whose sizes it is about, each at its call site."""
    return frozenset(
        (cause.call_site.file, cause.call_site.line, get_user_value(cause))
        for cause in candidate.causes
        if cause.call_site is not None and cause.expression is not None and cause.path.is_size
    )


def _merge(one: Candidate, other: Candidate) -> Candidate:
    changes = [merge_changes(pair) for pair in zip(one.changes, other.changes, strict=False)]
    kept = {**one.kept, **other.kept}
    return Candidate((*one.causes, *other.causes), (*one.advice, *other.advice), tuple(changes), kept)


def merge_changes(changes: Iterable[CodeChange]) -> CodeChange:
    """One change that does what all of these do. Lines for one place become one edit, each once."""
    changes = list(changes)
    settings = merge_settings([change.settings for change in changes]).settings
    texts = dict.fromkeys(change.text for change in changes if change.text)
    edits = merge_edits(edit for change in changes for edit in change.edits)
    return CodeChange(settings or None, edits, " ".join(texts))


def merge_edits(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """The edits with one for each place at which lines are inserted."""
    merged: dict[tuple[object, ...], Edit] = {}
    for edit in edits:
        place = edit.file, edit.line, edit.kind, edit.old, edit.new if edit.kind == "replace" else ""
        known = merged.get(place)
        lines = dict.fromkeys([*(known.new.splitlines() if known else ()), *edit.new.splitlines()])
        merged[place] = edit if edit.kind == "replace" else replace(edit, new="\n".join(lines))
    return tuple(merged.values())


# Recompiles that stay although a size or number is dynamic: those of 0 and 1, and of conditions on the value


def is_dynamic_change(change: CodeChange) -> bool:
    """True for a change that makes a size or number dynamic, and does nothing else."""
    marks = [line for edit in change.edits for line in edit.new.splitlines()]
    if not change.can_be_applied or not all(_MARK in line for line in marks):
        return False
    return _DYNAMIC_SETTINGS.issuperset(change.settings or {})


def find_kept(cause: Cause, facts: FactIndex) -> dict[int | None, str]:
    """The recompiles of a cause that happen even if its value is dynamic from the start: event id -> reason.

    Only sizes have special values: a number that is dynamic takes 0 and 1 as well.
    """
    rows = cause.seen or cause.recompiles
    special = _list_special(rows) if cause.path.is_size else ()
    found = {row.event_id: "torch compiles 0 and 1 on their own, even if the value is dynamic" for row in special}
    for row in rows if cause.facts.exclusions else ():
        for need in facts.find_exclusions([row], cause.source):
            condition = format_expression(need.condition or cause.source)
            found[row.event_id] = f"its compiled version is valid only for {condition}"
    return found


def find_first_changes(cause: Cause) -> dict[int | None, str]:
    """The first recompile of each function, which stays where torch makes a number dynamic by itself."""
    first: dict[tuple[Place, int | None], Recompile] = {}
    for row in cause.seen or cause.recompiles:
        first.setdefault((get_place(row), row.region), row)
    return {row.event_id: "torch makes a number dynamic after its first change" for row in first.values()}


def _list_special(rows: Sequence[Recompile]) -> Iterator[Recompile]:
    """Those for the values 0 and 1, and the first one for any other value where an entry has only 0 or 1."""
    general: set[Place] = set()
    for row in rows:
        place = get_place(row)
        if row.expected not in ZERO_ONE:
            general.add(place)
        if _is_special(row):
            yield row
        elif place not in general:
            general.add(place)
            yield row


def _is_special(row: Recompile) -> bool:
    return row.actual in ZERO_ONE or (row.guard_kind == "symbolic_shape" and row.actual is None)
