"""Leave out changes that cost nothing, because their calls need a compiled version of their own anyway."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .cause import Cause
from .recompile_findings import advise

#: Rules about another way to call a function, which has a compiled version of its own.
_WAYS = frozenset({"flag", "train_eval", "grad_mode", "optional_argument", "length_changes"})


def leave_needed(causes: Sequence[Cause]) -> list[Cause]:
    """The causes without those whose recompiles another one needs: evaluation has other batch sizes than training.

    Changing such a cause would save nothing. Its recompiles are then those of the one that needs them.
    """
    needed = sorted(filter(_is_needed, causes), key=lambda cause: not cause.is_first)
    by_owner: dict[int, set[int | None]] = {}
    left: set[int] = set()
    for cause in causes:
        owner = next((one for one in needed if one is not cause and _covers(one, cause, needed)), None)
        if owner is not None:
            left.add(id(cause))
            by_owner.setdefault(id(owner), set()).update(row.event_id for row in cause.caused if cause.is_first)
    return [_take(cause, by_owner.get(id(cause), set())) for cause in causes if id(cause) not in left]


def _is_needed(cause: Cause) -> bool:
    advice = advise(cause)
    return advice.is_expected and advice.rule in _WAYS


def _covers(owner: Cause, cause: Cause, needed: Sequence[Cause]) -> bool:
    """True if all recompiles of `cause` are needed because of `owner`; of two ways to call, that which torch names."""
    own, others = _list_numbers(owner), _list_numbers(cause)
    place = next((at for at, one in enumerate(needed) if one is cause), None)
    if place is None:
        return others <= own
    return others == own and any(one is owner for one in needed[:place])


def _list_numbers(cause: Cause) -> set[int | None]:
    return {row.event_id for row in cause.failed}


def _take(cause: Cause, numbers: set[int | None]) -> Cause:
    """The cause with more recompiles as its own, at which its guard failed too."""
    if not numbers:
        return cause
    own = numbers | ({row.event_id for row in cause.caused} if cause.is_first else set())
    seen = {row.event_id: row for row in cause.seen}
    failed = {row.event_id: row for row in cause.failed}
    return replace(
        cause,
        recompiles=tuple(row for number, row in seen.items() if number in own),
        derived=tuple(row for number, row in failed.items() if number in own and number not in seen),
        shared=tuple(row for number, row in failed.items() if number not in own),
        is_first=True,
    )
