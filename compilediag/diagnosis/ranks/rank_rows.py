"""The rows of a comparison of ranks: one per rank, and one per compile over all ranks."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, TypedDict

from ...decode.rank_steps import RankStep, Steps
from ..evidence import is_timed, sum_seconds
from .divergence import ASPECTS, Divergence

#: Letters of a rank's lookups that are shown; a long run has thousands.
MOST_LETTERS = 200
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class RankRow:
    """One rank. `behind_s`: seconds that it compiled longer than the median rank."""

    rank: int
    compiles: int
    recompiles: int
    graph_breaks: int
    compile_s: float
    behind_s: float
    lookups: str
    first_difference: str | None


@dataclass(frozen=True)
class GraphRow:
    """One compile over all ranks: the same id, function and trigger, the n-th time that the id is used.

    `ranks` have it, `missing` do not; `differs` names what is not the same on all that have it. `order` is its place in
    the order of most ranks. `spread_s`: seconds that the median rank is done before the slowest one; a rank that did
    not compile it is done at once. `runtime_ms`: what torch expects the graph to take on the rank where it takes
    longest, where it logged that. `steps` are those of the ranks that the session has rows of, `seconds` those of all
    ranks that have it.
    """

    order: int
    compile_id: str | None
    function: str | None
    file: str | None
    line: int | None
    trigger: str | None
    ranks: list[int]
    missing: list[int]
    differs: list[str]
    slowest_rank: int | None
    slowest_s: float | None
    median_s: float | None
    spread_s: float | None
    runtime_ms: float | None
    steps: dict[int, RankStep]
    seconds: dict[int, float]


#: A step, and its position among the steps of its rank.
PlacedStep = tuple[int, RankStep]


def make_rank_rows(steps: Steps, divergences: Sequence[Divergence]) -> list[RankRow]:
    """One row per rank, the one that compiled longest first."""
    spent = {rank: sum_seconds(steps.get_seconds(rank)) for rank in steps.like}
    median = statistics.median(spent.values()) if spent else 0.0
    differing = [(_name_divergence(one), frozenset(one.ranks)) for one in divergences]
    shared = {rank: _summarize_steps(own) for rank, own in steps.items()}
    rows = [
        RankRow(
            rank=rank,
            compile_s=spent[rank],
            behind_s=spent[rank] - median,
            first_difference=next((name for name, ranks in differing if rank in ranks), None),
            **shared[like],
        )
        for rank, like in steps.like.items()
    ]
    return sorted(rows, key=lambda row: (-row.compile_s, row.rank))


class _StepCounts(TypedDict):
    """What ranks that compiled the same have in common."""

    compiles: int
    recompiles: int
    graph_breaks: int
    lookups: str


def _summarize_steps(own: Sequence[RankStep]) -> _StepCounts:
    return {
        "compiles": len(own),
        "recompiles": sum(step.recompile is not None for step in own),
        "graph_breaks": sum(len(step.breaks) for step in own),
        "lookups": "".join(step.letters for step in own)[:MOST_LETTERS],
    }


def _name_divergence(one: Divergence) -> str:
    kind = "diverged" if one.kind == "way" else one.kind.replace("_", " ")
    return f"{kind} at {one.compile_id}" if one.compile_id else kind


def make_graph_rows(steps: Steps, runtimes: Mapping[str, float] = _NOTHING) -> list[GraphRow]:
    """One row per compile, the one with the slowest straggler first; `runtimes` is what `estimate_runtimes` gives."""
    alike: dict[tuple[object, ...], dict[int, PlacedStep]] = defaultdict(dict)
    places: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, own in steps.items():
        times: dict[tuple[object, ...], int] = defaultdict(int)
        for position, step in enumerate(own):
            key = (*step.target, times[step.target])
            times[step.target] += 1
            alike[key][rank] = position, step
            places[key] += [position] * len(steps.members[rank])
    ordered = sorted(alike, key=lambda key: (statistics.median(places[key]), -len(places[key]), str(key)))
    rows = [_make_graph_row(order, alike[key], steps, runtimes) for order, key in enumerate(ordered)]
    return sorted(rows, key=lambda row: (-(row.spread_s or 0.0), row.order))


def _make_graph_row(order: int, placed: dict[int, PlacedStep], steps: Steps, runtimes: Mapping[str, float]) -> GraphRow:
    own = {rank: step for rank, (_, step) in placed.items()}
    first = next(iter(own.values()))
    timed = _time_ranks(placed, steps)
    slowest = max(timed, key=lambda rank: timed[rank], default=None)
    slowest_s = None if slowest is None else timed[slowest]
    expected = [runtimes[key] for step in own.values() if (key := step.event.compile_key or "") in runtimes]
    missing = steps.expand(rank for rank in steps if rank not in own)
    everywhere = [*timed.values(), *(0.0 for _ in missing)]
    return GraphRow(
        order=order,
        compile_id=first.compile_id,
        function=first.event.function,
        file=first.event.file,
        line=first.event.line,
        trigger=first.trigger,
        ranks=steps.expand(own),
        missing=missing,
        differs=[kind for kind, aspect in ASPECTS.items() if len({aspect(step) for step in own.values()}) > 1],
        slowest_rank=slowest,
        slowest_s=slowest_s,
        median_s=statistics.median(timed.values()) if timed else None,
        spread_s=None if slowest_s is None else slowest_s - statistics.median(everywhere),
        runtime_ms=max(expected, default=None),
        steps=own,
        seconds=timed,
    )


def _time_ranks(placed: dict[int, PlacedStep], steps: Steps) -> dict[int, float]:
    """Rank -> the seconds of a compile on that rank, for all ranks that timed it."""
    timed: dict[int, float] = {}
    for loaded, (position, step) in placed.items():
        for rank in steps.members[loaded]:
            own = step.duration_s if rank == loaded else steps.get_member_seconds(rank, position)
            if is_timed(own):
                timed[rank] = own
    return dict(sorted(timed.items()))


def list_columns(cls: type[Any]) -> list[str]:
    """The columns of rows of a kind: the fields that are cells."""
    return [f.name for f in fields(cls) if f.name not in ("steps", "seconds")]
