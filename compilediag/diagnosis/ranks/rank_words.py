"""What ranks did, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from .. import wording
from ..rows import Row

if TYPE_CHECKING:
    from .divergence import Step

GRAPH = ("graph_ops", "graph_nodes", "graph_inputs")


def where(step: Step) -> str:
    return f"{step.compile_id or 'an unknown id'} of {step.place}, {_clock(step)}"


def did(step: Step) -> str:
    """Why a rank compiled: the guard with both values, or that there was nothing compiled before."""
    if step.recompile:
        return f"guard {_guard(step.recompile)}"
    return "a backward" if step.row["trigger"] == "lazy_backward" else "a first compile"


def instead(other: Step | None, step: Step | None, known: str) -> str:
    """What the others did meanwhile."""
    if other is not None and step is not None and other.way[1:] == step.way[1:]:
        return f"compiled it as {other.compile_id}: {did(other)}"
    return went_on(other, known)


def went_on(step: Step | None, known: str) -> str:
    """What a rank compiled next, and which values it had entries for."""
    had = f"had {known}, and " if known else ""
    if step is None:
        return f"{had}compiled nothing more"
    why = f" ({did(step)})" if step.recompile else ""
    return f"{had}went on to {step.compile_id or 'an unknown id'} of {step.place}{why}"


def known_values(steps: Sequence[Step], missed: Step | None) -> str:
    """Which values of the guard a rank has entries for: `0/0 for 4, 0/1 for 8`; "" if that is not known."""
    guard = missed.recompile if missed else None
    entries: dict[str, str] = {}
    for step in steps:
        row = step.recompile
        if row and guard and step.way[1:4] == missed.way[1:4] and row["guard_source"] == guard["guard_source"]:
            if row["closest_compile_id"] and row["expected"] is not None:
                entries.setdefault(row["closest_compile_id"], row["expected"])
            if step.compile_id and row["actual"] is not None:
                entries[step.compile_id] = row["actual"]
    return ", ".join(f"{name} for {wording.one_line(value, 40)}" for name, value in list(entries.items())[-4:])


def _guard(row: Row) -> str:
    name = wording.one_line(row["guard_source"] or row["guard_kind"] or "unknown", 80)
    values = [None if row[n] is None else wording.one_line(row[n], 40) for n in ("expected", "actual")]
    return name if values == [None, None] else f"{name} {values[0] or '?'} -> {values[1] or '?'}"


def told(kind: str, *steps: Step) -> list[str]:
    """What each rank has of what differs, in words."""
    return [_told(kind, step) for step in steps]


def _told(kind: str, step: Step) -> str:
    row = step.row
    if kind == "guard":
        return f"guard {_guard(step.recompile)}" if step.recompile else "no recompile"
    if kind == "outcome":
        return ", ".join(filter(None, [row["outcome"], row["fail_type"], row["limit"]])) or "unknown"
    if kind == "graph_breaks":
        return wording.listed(step.breaks) if step.breaks else "no graph break"
    if kind == "graph":
        names = ("calls", "nodes", "inputs")
        return ", ".join(f"{row[c]:.0f} {n}" for c, n in zip(GRAPH, names, strict=True) if row[c] is not None)
    counts = Counter(f"{cache}{' ' + tier if tier == 'remote' else ''} {end}" for cache, tier, end in step.caches)
    return ", ".join(f"{what}{f' {n}x' if n > 1 else ''}" for what, n in counts.items()) or "no look-up"


def collectives(step: Step, other: Step) -> tuple[str, str]:
    """The first collectives that two ranks do not have in common, in words."""
    pairs = enumerate(zip_longest(step.collectives, other.collectives), 1)
    number, ops = next((number, ops) for number, ops in pairs if ops[0] != ops[1])
    own, usual = (op or "no more" for op in ops)
    return f"number {number} is {own}", usual


def named(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(str(rank) for rank in ranks[:4])
    return f"ranks {shown}" + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")


def more_groups(groups: Sequence[Any]) -> str:
    return f" ({wording.counted(len(groups), 'more group', 'more groups')} of ranks differ there)" if groups else ""


def _clock(step: Step) -> str:
    return f"{step.row['time']:%H:%M:%S} UTC" if step.row["time"] is not None else "at an unknown time"
