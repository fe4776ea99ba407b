"""Recompiles that stay although a size or number is dynamic: those of 0 and 1, and of conditions on the value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...events import Recompile
from ...formatting import format_expression
from ..causes.cause import ZERO_ONE, Cause
from ..causes.shape_evidence import FactIndex
from ..causes.source_paths import is_size
from ..change import CodeChange
from ..evidence import Place, get_place

#: Settings that make numbers dynamic.
_DYNAMIC_SETTINGS = frozenset({"dynamic_sources", "allow_unspec_int_on_nn_module"})
_MARK = "mark_dynamic("


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
    special = _list_special(rows) if is_size(cause.source) else ()
    found = {row.event_id: "torch compiles 0 and 1 on their own, even if the value is dynamic" for row in special}
    for row in rows if cause.facts.exclusions else ():
        for need in facts.find([row], cause.source).exclusions:
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
