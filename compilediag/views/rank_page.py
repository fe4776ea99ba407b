"""What the page shows of a job's ranks: where they diverge, each rank, and each compile over all ranks."""

from __future__ import annotations

from typing import Any, TypedDict

from ..diagnosis.ranks.divergence import find_all_divergences
from ..diagnosis.ranks.rank_comparison import GraphRow, RankRow, list_columns, make_graph_rows, make_rank_rows
from ..diagnosis.ranks.rank_steps import RankStep, estimate_runtimes, find_steps, list_ranks
from ..events import Rows

#: Ranks and compiles that are shown; the page also has their total numbers.
MAX_RANKS, MAX_GRAPHS = 64, 300


class RankDifference(TypedDict):
    """Where ranks diverge; `order` is its place in the order of compiles."""

    kind: str
    sentence: str
    evidence: list[int]
    order: int | None


class RankPage(TypedDict):
    """The page "Ranks". `count` and `graph_count` are total numbers; `shown` are the ranks that compiles have cells of.

    `ranks` and `graphs` have the fields of `RankRow` and `GraphRow`.
    """

    count: int
    shown: list[int]
    graph_count: int
    differences: list[RankDifference]
    ranks: list[dict[str, Any]]
    graphs: list[dict[str, Any]]


class RankCell(TypedDict):
    """A compile on one rank."""

    seconds: float | None
    caches: str
    guard: str | None
    expected: str | None
    actual: str | None
    collectives: list[str]


def make_rank_page(data: Rows, is_live: bool) -> RankPage | None:
    """The part of a patch for the page "Ranks"; None if the session has fewer than two ranks.

    Of many ranks it has those that diverge, then those that compiled longest.
    """
    if len(list_ranks(data)) < 2:
        return None
    steps = find_steps(data)
    found = find_all_divergences(data, steps, is_live)
    ranks, graphs = make_rank_rows(steps, found), make_graph_rows(steps, estimate_runtimes(data))
    diverging = {rank for one in found for rank in one.ranks}
    shown = sorted([row.rank for row in sorted(ranks, key=lambda row: row.rank not in diverging)][:MAX_RANKS])
    return {
        "count": len(steps),
        "shown": shown,
        "graph_count": len(graphs),
        "differences": [
            {"kind": one.kind, "sentence": one.sentence, "evidence": list(one.evidence), "order": one.position}
            for one in found
        ],
        "ranks": [_get_cells(row) for row in ranks[:MAX_RANKS]],
        "graphs": [_describe_graph(row, shown) for row in graphs[:MAX_GRAPHS]],
    }


def _get_cells(row: RankRow | GraphRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in list_columns(type(row))}


def _describe_graph(row: GraphRow, shown: list[int]) -> dict[str, Any]:
    """A compile with a cell for each shown rank; None for a rank that did not compile it."""
    own = {**_get_cells(row), "ranks": len(row.ranks), "missing": row.missing[:MAX_RANKS], "missed": len(row.missing)}
    return {**own, "cells": [_describe_step(row.steps[rank]) if rank in row.steps else None for rank in shown]}


def _describe_step(step: RankStep) -> RankCell:
    guard = step.recompile
    return {
        "seconds": step.duration_s,
        "caches": step.letters,
        "guard": guard.guard_source if guard else None,
        "expected": guard.expected if guard else None,
        "actual": guard.actual if guard else None,
        "collectives": list(step.collectives[:MAX_RANKS]),
    }
