"""What the page shows of a job's ranks: where they parted, each rank, each compile over all ranks."""

from __future__ import annotations

from typing import Any

from ..diagnosis.ranks.divergence import find_all_divergences
from ..diagnosis.ranks.rank_comparison import GraphRow, RankRow, list_columns, make_graph_rows, make_rank_rows
from ..diagnosis.ranks.rank_steps import RankStep, estimate_runtimes, find_steps, list_ranks

#: Ranks and compiles that are shown; the page says how many there are.
MOST_RANKS, MOST_GRAPHS = 64, 300


def rank_part(tables: Any, live: bool) -> dict[str, Any] | None:
    """The part of a patch for the page "Ranks"; None of a session with fewer than two.

    Of many ranks those that differ are shown, then those that compiled longest.
    """
    if len(list_ranks(tables)) < 2:
        return None
    steps = find_steps(tables)
    found = find_all_divergences(tables, steps, live)
    ranks, graphs = make_rank_rows(steps, found), make_graph_rows(steps, estimate_runtimes(tables))
    parted = {rank for one in found for rank in one.ranks}
    shown = sorted([row.rank for row in sorted(ranks, key=lambda row: row.rank not in parted)][:MOST_RANKS])
    return {
        "count": len(steps),
        "shown": shown,
        "graph_count": len(graphs),
        "differences": [
            {"kind": one.kind, "sentence": one.sentence, "evidence": list(one.evidence), "order": one.position}
            for one in found
        ],
        "ranks": [_cells(row) for row in ranks[:MOST_RANKS]],
        "graphs": [_graph(row, shown) for row in graphs[:MOST_GRAPHS]],
    }


def _cells(row: RankRow | GraphRow) -> dict[str, Any]:
    return {name: getattr(row, name) for name in list_columns(type(row))}


def _graph(row: GraphRow, shown: list[int]) -> dict[str, Any]:
    """A compile with what each shown rank has of it; None for a rank without it."""
    told = {**_cells(row), "ranks": len(row.ranks), "missing": row.missing[:MOST_RANKS], "missed": len(row.missing)}
    return {**told, "cells": [_cell(row.steps[rank]) if rank in row.steps else None for rank in shown]}


def _cell(step: RankStep) -> dict[str, Any]:
    guard = step.recompile
    return {
        "seconds": step.duration_s,
        "caches": step.letters,
        "guard": guard.guard_source if guard else None,
        "expected": guard.expected if guard else None,
        "actual": guard.actual if guard else None,
        "collectives": list(step.collectives[:MOST_RANKS]),
    }
