"""Ranks and what they compiled as rows: stragglers first. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any

from ..rows import is_timed, seconds
from .divergence import ASPECTS, Divergence, Step

#: Letters of a rank's look-ups that are shown; a long run has thousands.
MOST_LETTERS = 200


@dataclass
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


@dataclass
class GraphRow:
    """One compile over all ranks: the same id, function and trigger, the n-th time that the id is used.

    `ranks` have it, `missing` do not; `differs` names what is not the same on all that have it. `order` is its place in
    the order of the most ranks. `spread_s`: seconds that the median rank is done before the slowest one; one that
    did not compile it is done at once. `runtime_ms`: what torch expects the graph to take on the rank where it takes
    longest, where it logged that.
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
    steps: dict[int, Step]


def rank_rows(steps: dict[int, list[Step]], found: list[Divergence]) -> list[RankRow]:
    """A row a rank, the one that compiled longest first."""
    spent = {rank: seconds(step.row["duration_s"] for step in own) for rank, own in steps.items()}
    usual = statistics.median(spent.values()) if spent else 0.0
    rows = [
        RankRow(
            rank=rank,
            compiles=len(own),
            recompiles=sum(step.recompile is not None for step in own),
            graph_breaks=sum(len(step.breaks) for step in own),
            compile_s=spent[rank],
            behind_s=spent[rank] - usual,
            lookups="".join(step.letters for step in own)[:MOST_LETTERS],
            first_difference=next((_label(one) for one in found if rank in one.ranks), None),
        )
        for rank, own in steps.items()
    ]
    return sorted(rows, key=lambda row: (-row.compile_s, row.rank))


def _label(one: Divergence) -> str:
    kind = "another way" if one.kind == "way" else one.kind.replace("_", " ")
    return f"{kind} at {one.compile_id}" if one.compile_id else kind


def graph_rows(
    steps: dict[int, list[Step]], runtimes: Mapping[tuple[int, str | None], float] = MappingProxyType({})
) -> list[GraphRow]:
    """A row a compile, the one with the slowest straggler first; `runtimes` is what `rank_runs.estimates` gives."""
    alike: dict[tuple[Any, ...], dict[int, Step]] = defaultdict(dict)
    places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for rank, own in steps.items():
        times: dict[tuple[Any, ...], int] = defaultdict(int)
        for position, step in enumerate(own):
            key = (*step.way, times[step.way])
            times[step.way] += 1
            alike[key][rank] = step
            places[key].append(position)
    ordered = sorted(alike, key=lambda key: (statistics.median(places[key]), -len(alike[key]), str(key)))
    rows = [_graph_row(order, alike[key], list(steps), runtimes) for order, key in enumerate(ordered)]
    return sorted(rows, key=lambda row: (-(row.spread_s or 0.0), row.order))


def _graph_row(
    order: int, own: dict[int, Step], ranks: list[int], runtimes: Mapping[tuple[int, str | None], float]
) -> GraphRow:
    first = next(iter(own.values()))
    timed = {rank: step.row["duration_s"] for rank, step in own.items() if is_timed(step.row["duration_s"])}
    slowest = max(timed, key=lambda rank: timed[rank], default=None)
    median = statistics.median(timed.values()) if timed else None
    expected = [runtimes[rank, first.compile_id] for rank in own if (rank, first.compile_id) in runtimes]
    everywhere = [*timed.values(), *(0.0 for rank in ranks if rank not in own)]
    return GraphRow(
        order=order,
        **{name: first.row[name] for name in ("compile_id", "function", "file", "line", "trigger")},
        ranks=sorted(own),
        missing=[rank for rank in ranks if rank not in own],
        differs=[kind for kind, aspect in ASPECTS.items() if len({aspect(step) for step in own.values()}) > 1],
        slowest_rank=slowest,
        slowest_s=timed.get(slowest),
        median_s=median,
        spread_s=None if median is None else timed[slowest] - statistics.median(everywhere),
        runtime_ms=max(expected, default=None),
        steps=own,
    )


def columns(cls: type) -> list[str]:
    """The columns of rows of a kind, without what is no cell."""
    return [f.name for f in fields(cls) if f.name != "steps"]
