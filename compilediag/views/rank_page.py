"""What the page shows of a job's ranks: where they diverge, each rank, and each compile over all ranks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ..decode.guards.path import format_expression
from ..decode.rank_steps import RankStep, Steps, estimate_runtimes, find_steps, has_ranks
from ..diagnosis.rank_comparison import (
    GraphRow,
    RankGroup,
    RankRow,
    find_all_divergences,
    group_ranks,
    list_columns,
    make_graph_rows,
    make_rank_groups,
    make_rank_rows,
)
from ..events import Rows
from .page_types import PageRankGraph, PageRanks, RankCell

#: Ranks and compiles that are shown; the page also has their total numbers.
MAX_RANKS, MAX_GRAPHS = 64, 300


def make_rank_page(data: Rows, is_live: bool, whole: Rows | None = None) -> PageRanks | None:
    """The part of a patch for the page "Ranks"; None if the session has fewer than two ranks.

    Of many ranks it has one of each group, then those that diverge, then those that compiled longest. If `data` is
    redacted, `whole` is the session without redaction, which decides the groups.
    """
    if not has_ranks(data):
        return None
    steps = find_steps(data)
    found = find_all_divergences(data, steps, is_live)
    ranks, graphs = make_rank_rows(steps, found), make_graph_rows(steps, estimate_runtimes(data))
    alike = group_ranks(data, steps) if whole is None else group_ranks(whole, find_steps(whole))
    groups = make_rank_groups(alike, steps, ranks)
    shown = _choose_shown(ranks, groups)
    return {
        "count": steps.count,
        "loaded": sorted(steps)[:MAX_RANKS] if steps.is_grouped else [],
        "shown": shown,
        "group_count": len(groups),
        "graph_count": len(graphs),
        "differences": [
            {"kind": one.kind, "sentence": one.sentence, "evidence": list(one.evidence), "order": one.position}
            for one in found
        ],
        "ranks": [_get_cells(row) for row in ranks[:MAX_RANKS]],
        "groups": [{**_get_cells(row), "ranks": row.ranks[:MAX_RANKS]} for row in groups[:MAX_RANKS]],
        "graphs": [_describe_graph(row, shown, steps) for row in graphs[:MAX_GRAPHS]],
    }


def _choose_shown(ranks: Sequence[RankRow], groups: Sequence[RankGroup]) -> list[int]:
    """The ranks that compiles have cells of: one of each group, then those that diverge, then the slowest ones."""
    first = {group.rank for group in groups}
    ordered = sorted(ranks, key=lambda row: (row.rank not in first, row.first_difference is None))
    return sorted(row.rank for row in ordered[:MAX_RANKS])


def _get_cells(row: RankRow | RankGroup | GraphRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in list_columns(type(row))}


def _describe_graph(row: GraphRow, shown: list[int], steps: Steps) -> PageRankGraph:
    """A compile with a cell for each shown rank; None for a rank that did not compile it."""
    own = {**_get_cells(row), "ranks": len(row.ranks), "missing": row.missing[:MAX_RANKS], "missed": len(row.missing)}
    cells = []
    for rank in shown:
        step = row.steps.get(steps.like[rank])
        cells.append(None if step is None else _describe_step(step, row.seconds.get(rank)))
    return cast(PageRankGraph, {**own, "cells": cells})


def _describe_step(step: RankStep, seconds: float | None) -> RankCell:
    guard = step.recompile
    return {
        "seconds": seconds,
        "caches": step.letters,
        "guard": format_expression(guard.guard_source) if guard and guard.guard_source else None,
        "expected": guard.expected if guard else None,
        "actual": guard.actual if guard else None,
        "collectives": list(step.collectives[:MAX_RANKS]),
    }
