"""Choose the causes to change: a recompile is saved when every guard that failed at it is changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from ...events import Recompile
from ..evidence import sum_seconds

#: A cause by its number in the list of causes.
Blockers = frozenset[int]


@dataclass(frozen=True)
class Selection:
    """The chosen causes in their order. `saved` has the recompiles that each and all before it save together."""

    chosen: tuple[int, ...]
    saved: tuple[tuple[Recompile, ...], ...]
    alone: tuple[tuple[Recompile, ...], ...]


def select_causes(blockers: Mapping[Recompile, Blockers], can_change: Callable[[int], bool]) -> Selection:
    """Choose the smallest set of causes that saves the most seconds, the most valuable first.

    `blockers` has the causes whose guards failed at each recompile. Every cause of a recompile that can be saved at all
    is needed to save it, so the set is unique; what remains to choose is the order.
    """
    remaining = {row: causes for row, causes in blockers.items() if causes and all(map(can_change, causes))}
    chosen: list[int] = []
    while remaining:
        chosen += _choose_next(remaining, frozenset(chosen))
        remaining = {row: causes for row, causes in remaining.items() if not causes <= set(chosen)}
    saved = tuple(find_saved(blockers, chosen[: number + 1]) for number in range(len(chosen)))
    return Selection(tuple(chosen), saved, tuple(find_saved(blockers, [cause]) for cause in chosen))


def find_saved(blockers: Mapping[Recompile, Blockers], changed: Collection[int]) -> tuple[Recompile, ...]:
    """The recompiles that do not happen when these causes are changed."""
    return tuple(row for row, causes in blockers.items() if causes and causes <= set(changed))


def _choose_next(remaining: Mapping[Recompile, Blockers], chosen: Blockers) -> list[int]:
    """The causes that together save the most seconds per change, of those that complete at least one recompile."""
    options = list({causes - chosen for causes in remaining.values()})
    best = min(options, key=lambda option: _rate(remaining, chosen, option))
    return sorted(best, key=lambda cause: _rate(remaining, chosen, frozenset([cause])))


def _rate(remaining: Mapping[Recompile, Blockers], chosen: Blockers, option: Blockers) -> tuple[float, ...]:
    """A number that is the lower the more seconds, then recompiles, the causes save each; ties keep their order."""
    saved = [row for row, causes in remaining.items() if causes <= option | chosen]
    seconds = sum_seconds(row.lost_s for row in saved)
    return -seconds / len(option), -len(saved) / len(option), *sorted(option)
