"""The sentences of a divergence: what each rank did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

from ...decode.rank_steps import RankStep
from ...events import Recompile
from ...formatting import format_amount, format_expression, format_line, format_names


def locate(step: RankStep) -> str:
    """Which compile of which function, and when."""
    began = datetime.fromtimestamp(step.event.time_ns // 1_000_000_000, UTC)
    return f"{step.compile_id or 'an unknown id'} of {step.place}, {began:%H:%M:%S} UTC"


def describe_cause(step: RankStep) -> str:
    """Why a rank compiled: the guard with both values, or that nothing was compiled before."""
    if step.recompile:
        return f"guard {_describe_guard(step.recompile)}"
    return "a backward" if step.trigger == "lazy_backward" else "a first compile"


def describe_instead(other: RankStep | None, step: RankStep | None, known: str) -> str:
    """What the others did meanwhile."""
    if other is not None and step is not None and other.target[1:] == step.target[1:]:
        return f"compiled it as {other.compile_id}: {describe_cause(other)}"
    return describe_next(other, known)


def describe_next(step: RankStep | None, known: str) -> str:
    """What a rank compiled next, and which values it had entries for."""
    had = f"had entries {known} and " if known else ""
    if step is None:
        return f"{had}compiled nothing more"
    why = f" ({describe_cause(step)})" if step.recompile else ""
    return f"{had}continued with {step.compile_id or 'an unknown id'} of {step.place}{why}"


def describe_known_values(steps: Sequence[RankStep], missed: RankStep | None) -> str:
    """The values of the guard that a rank has entries for: `0/0 for 4, 0/1 for 8`; "" if that is not known."""
    guard = missed.recompile if missed else None
    if missed is None or guard is None:
        return ""
    entries: dict[str, str] = {}
    for step in steps:
        row = step.recompile
        if row and step.target[1:4] == missed.target[1:4] and row.guard_source == guard.guard_source:
            if row.closest_compile_id and row.expected is not None:
                entries.setdefault(row.closest_compile_id, row.expected)
            if step.compile_id and row.actual is not None:
                entries[step.compile_id] = row.actual
    return ", ".join(f"{name} for {format_line(value, 40)}" for name, value in list(entries.items())[-4:])


def _describe_guard(row: Recompile) -> str:
    name = format_line(format_expression(row.guard_source or "") or row.guard_kind or "unknown", 80)
    if row.expected is None and row.actual is None:
        return name
    expected, actual = ("?" if v is None else format_line(v, 40) or "?" for v in (row.expected, row.actual))
    return f"{name} {expected} -> {actual}"


def describe_aspect(kind: str, step: RankStep, other: RankStep) -> tuple[str, str]:
    """What two ranks have of the aspect in which they differ."""
    if kind == "collectives":
        return _describe_collectives(step, other)
    describe = _DESCRIPTIONS[kind]
    return describe(step), describe(other)


def _describe_step_guard(step: RankStep) -> str:
    return f"guard {_describe_guard(step.recompile)}" if step.recompile else "no recompile"


def _describe_outcome(step: RankStep) -> str:
    return ", ".join(filter(None, step.outcome)) or "unknown"


def _describe_breaks(step: RankStep) -> str:
    return format_names(step.breaks) if step.breaks else "no graph break"


def _describe_graph(step: RankStep) -> str:
    counts = zip(step.graph, ("calls", "nodes", "inputs"), strict=True)
    return ", ".join(f"{count} {name}" for count, name in counts if count is not None)


def _describe_caches(step: RankStep) -> str:
    counts = Counter(f"{cache}{' remote' if tier == 'remote' else ''} {end}" for cache, tier, end in step.caches)
    return ", ".join(f"{what}{f' {n}x' if n > 1 else ''}" for what, n in counts.items()) or "no lookup"


_DESCRIPTIONS = {
    "guard": _describe_step_guard,
    "outcome": _describe_outcome,
    "graph_breaks": _describe_breaks,
    "graph": _describe_graph,
    "caches": _describe_caches,
}


def _describe_collectives(step: RankStep, other: RankStep) -> tuple[str, str]:
    """The first collectives that two ranks do not have in common."""
    pairs = enumerate(zip_longest(step.collectives, other.collectives), 1)
    number, (own, usual) = next((number, ops) for number, ops in pairs if ops[0] != ops[1])
    return f"number {number} is {own or 'no more'}", usual or "no more"


def name_ranks(ranks: Sequence[int]) -> str:
    """`rank 3`, or `ranks 0, 1, 2, 3 and 60 more`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    shown = ", ".join(str(rank) for rank in ranks[:4])
    return f"ranks {shown}" + (f" and {len(ranks) - 4} more" if len(ranks) > 4 else "")


def count_groups(groups: Sequence[Any]) -> str:
    """How many groups of ranks differ beside the two that are described."""
    return (
        f" ({format_amount(len(groups), 'more group of ranks differs', 'more groups of ranks differ')} there)"
        if groups
        else ""
    )
