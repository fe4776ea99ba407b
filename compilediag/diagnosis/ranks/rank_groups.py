"""Ranks that compiled the same, for the same reasons, in the same order: one row per group."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ...decode.rank_steps import Steps, digest_steps, find_graph_runs
from ...events import Rows
from ...formatting import format_amount
from .divergence import find_divergences
from .rank_rows import RankRow

#: Groups that are compared with the largest one.
MOST_COMPARED = 64


@dataclass(frozen=True)
class RankGroup:
    """Ranks that compiled the same. `rank` is the first of them, whose rows the session has; all numbers of seconds
    are computed from all ranks of the group. `difference` is where that rank first differs from the first of the
    largest group.
    """

    rank: int
    count: int
    ranks: list[int]
    compiles: int
    recompiles: int
    graph_breaks: int
    lookups: str
    median_s: float
    slowest_rank: int
    slowest_s: float
    difference: str | None


def group_ranks(data: Rows, steps: Steps) -> list[list[int]]:
    """Return the groups of ranks that the session has rows of and that compiled the same, the largest group first."""
    runs = find_graph_runs(data)
    alike: dict[str, list[int]] = defaultdict(list)
    for rank, own in steps.items():
        alike[digest_steps(own, (run.compile_id for run in runs.get(rank, ())))].append(rank)
    return sorted(alike.values(), key=lambda loaded: (-len(steps.expand(loaded)), loaded))


def make_rank_groups(groups: Sequence[list[int]], steps: Steps, rows: Sequence[RankRow]) -> list[RankGroup]:
    """One row per group that `group_ranks` gives. `rows` are those of all ranks."""
    by_rank = {row.rank: row for row in rows}
    return [
        _make_group([by_rank[rank] for rank in steps.expand(loaded)], _compare(loaded, groups[0], steps, number))
        for number, loaded in enumerate(groups)
    ]


def _compare(loaded: Sequence[int], largest: Sequence[int], steps: Steps, number: int) -> str | None:
    """Return where the first rank of a group differs from the first of the largest one; None for too many groups."""
    if not 0 < number < MOST_COMPARED:
        return None
    found = find_divergences(steps.select((largest[0], loaded[0])))
    return found[0].sentence if found else None


def name_group(group: RankGroup) -> str:
    """`2,000 ranks like rank 0`, or `rank 3` if it is alone."""
    return f"{format_amount(group.count, 'rank')} like rank {group.rank}" if group.count > 1 else f"rank {group.rank}"


def _make_group(rows: Sequence[RankRow], difference: str | None) -> RankGroup:
    first, slowest = rows[0], max(rows, key=lambda row: row.compile_s)
    return RankGroup(
        rank=first.rank,
        count=len(rows),
        ranks=[row.rank for row in rows],
        compiles=first.compiles,
        recompiles=first.recompiles,
        graph_breaks=first.graph_breaks,
        lookups=first.lookups,
        median_s=statistics.median(row.compile_s for row in rows),
        slowest_rank=slowest.rank,
        slowest_s=slowest.compile_s,
        difference=difference,
    )
