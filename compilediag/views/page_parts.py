"""The parts of a patch that are made of whole tables: the plan, a job's ranks, and models that vLLM compiles.

The plan has its patch, the lines of the cells and files that it changes, and the evidence of each step, which are the
compiles of the function that it recompiled. Of ranks it has where they diverge, each rank, and each compile over all
ranks. Of a model it has each part, and each of its pieces for each range of sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict
from itertools import islice
from typing import Any, cast

from ..decode.guards.path import format_expression
from ..decode.rank_steps import RankStep, Steps, has_ranks
from ..diagnosis.evidence import Evidence, find_first, get_place, group_by, sum_known, sum_seconds
from ..diagnosis.plan import Plan
from ..diagnosis.plan.plan import ChangedSource, make_patch
from ..diagnosis.rank_comparison import (
    GraphRow,
    RankGroup,
    RankRow,
    Ranks,
    list_columns,
)
from ..events import Artifact, Compile, GuardFailure, Recompile, Rows, VllmCompile, VllmConfig
from ..formatting import format_function, format_line
from .page_rows import to_ms
from .page_types import (
    PageChangedSource,
    PageEvidence,
    PagePlan,
    PageRankGraph,
    PageRanks,
    PageStepCompile,
    PageVllmParts,
    RankCell,
    VllmPart,
    VllmPiece,
    VllmRange,
    VllmText,
)

#: Compiles and values that the evidence of a step lists.
MAX_COMPILES, MAX_NAMES = 20, 3
#: Characters of a value.
MAX_VALUE = 40


def make_plan_page(plan: Plan, data: Rows, try_command: str, has_sources: bool) -> PagePlan:
    """The plan with its sources. `data` has the rows that may be shown; without `has_sources`, the user's code is
    left out.
    """
    searched = str(plan.searched.get("patch") or "") if plan.searched else ""
    sources = plan.changed_sources() if has_sources else ()
    evidence = Evidence.of(data)
    found: dict[str, Any] = plan.to_dict()
    for values, step in zip(found["steps"], plan.steps, strict=True):
        values["proof"] = _list_compiles(evidence, frozenset(step.evidence))
    return cast(
        PagePlan,
        {
            **found,
            "patch": searched or make_patch(sources) if has_sources else None,
            "sources": [_describe_source(source) for source in sources],
            "try_command": try_command if has_sources else "",
        },
    )


def _describe_source(source: ChangedSource) -> PageChangedSource:
    """The texts are those of cells, which a page can replace."""
    is_cell = source.cell is not None
    return {
        "place": source.place,
        "cell": source.cell,
        "lines": list(source.lines),
        "before": source.before if is_cell else None,
        "after": source.after if is_cell else None,
    }


def _list_compiles(evidence: Evidence, own: Set[int]) -> PageEvidence | None:
    """The compiles of the function whose recompiles took most time; None if they are not known."""
    recompiles = [row for row in evidence.rows(Recompile) if row.event_id in own]
    if not recompiles:
        return None
    places = group_by(recompiles, lambda row: (row.rank, row.pid, *get_place(row)))
    place, rows = max(places.items(), key=lambda item: sum_seconds(row.lost_s for row in item[1]))
    recompiled = evidence.by_compile(Recompile)
    compiles = [
        (key, found)
        for key, found in evidence.by_compile(Compile).items()
        if key is not None and (found[0].rank, found[0].pid, *get_place(found[0])) == place
    ]
    failures = evidence.by_compile(GuardFailure)
    names = dict.fromkeys(format_expression(row.guard_source) for row in rows if row.guard_source)
    shown = list(names)[:MAX_NAMES]
    first_values = {format_expression(row.guard_source): row.expected for row in rows[::-1] if row.guard_source}
    listed = [
        _describe_compile(parts, recompiled.get(key, ()), failures.get(key, ()), shown, own)
        for key, parts in compiles[:MAX_COMPILES]
    ]
    if listed and listed[0]["change"] is None:
        listed[0]["values"] = [_shorten(first_values.get(name)) for name in shown]
    return {
        "function": format_function(*place[2:]),
        "names": shown,
        "compiles": listed,
        "hidden": max(0, len(compiles) - MAX_COMPILES),
    }


def _describe_compile(
    parts: Sequence[Compile],
    recompiles: Sequence[Recompile],
    failures: Sequence[GuardFailure],
    names: Sequence[str],
    own: Set[int],
) -> PageStepCompile:
    came = {format_expression(row.guard_source): row.actual for row in failures if row.guard_source}
    recompile, change = (recompiles[-1] if recompiles else None), None
    if recompile is not None:
        name = format_expression(recompile.guard_source or "") or "a guard"
        came.setdefault(name, recompile.actual)
        change = f"{format_line(name, 80)}: {_shorten(recompile.expected)} → {_shorten(recompile.actual)}"
    return {
        "event": None if recompile is None else recompile.event_id,
        "time": to_ms(parts[0].time_ns),
        "values": [_shorten(came.get(name)) for name in names],
        "change": change,
        "is_own": recompile is not None and recompile.event_id in own,
        "seconds": sum_seconds(row.duration_s for row in parts),
    }


def _shorten(value: str | None) -> str:
    return "" if value is None else format_line(value, MAX_VALUE)


# Ranks

#: Ranks and compiles that are shown; the page also has their total numbers.
MAX_RANKS, MAX_GRAPHS = 64, 300


def make_rank_page(data: Rows, is_live: bool, whole: Rows | None = None) -> PageRanks | None:
    """The part of a patch for the page "Ranks"; None if the session has fewer than two ranks.

    Of many ranks it has one of each group, then those that diverge, then those that compiled longest. `whole`: see
    `Ranks`.
    """
    if not has_ranks(data):
        return None
    found = Ranks(data, is_live, whole)
    steps, ranks, groups, graphs = found.steps, found.rows, found.group_rows, found.graph_rows
    first = {group.rank for group in groups}
    ordered = sorted(ranks, key=lambda row: (row.rank not in first, row.first_difference is None))
    shown = sorted(row.rank for row in ordered[:MAX_RANKS])
    return {
        "count": steps.count,
        "loaded": sorted(steps)[:MAX_RANKS] if steps.is_grouped else [],
        "shown": shown,
        "group_count": len(groups),
        "graph_count": len(graphs),
        "differences": [
            {"kind": one.kind, "sentence": one.sentence, "evidence": list(one.evidence), "order": one.position}
            for one in found.divergences
        ],
        "ranks": [_get_cells(row) for row in ranks[:MAX_RANKS]],
        "groups": [{**_get_cells(row), "ranks": row.ranks[:MAX_RANKS]} for row in groups[:MAX_RANKS]],
        "graphs": [_describe_graph(row, shown, steps) for row in graphs[:MAX_GRAPHS]],
    }


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


# vLLM

#: Parts and pieces that are shown; the page also has their total numbers.
MAX_PARTS, MAX_PIECES, MAX_RANGES = 32, 300, 40
#: The texts of a whole part: the graph and the code that call all pieces.
TEXTS = ("vllm_piecewise_split_graph", "vllm_execution_code")
#: Fields of a configuration that can differ between the ranks of one job.
_OWN = ("time_ns", "compile_id", "compile_key", "duration_s", "rank", "pid", "event_id")

#: Smallest and largest size.
Sizes = tuple[int | None, int | None]


class _Part:
    """The rows of one part on one rank."""

    def __init__(self, config: VllmConfig, compiles: Sequence[VllmCompile]):
        self.config = config
        self.compiles = compiles
        self.seconds = sum_known(row.duration_s for row in compiles)
        self.settings = {name: value for name, value in asdict(config).items() if name not in _OWN}
        #: Equal on all ranks that compile the part in the same way.
        self.signature = repr((self.settings, [(row.piece, row.range_start, row.range_end) for row in compiles]))


def make_vllm_page(data: Rows) -> PageVllmParts | None:
    """The part of a patch for the page "vLLM"; None if vLLM compiled nothing."""
    configs, rows = data.rows(VllmConfig), data.rows(VllmCompile)
    if not configs:
        return None
    by_key = group_by(sorted(rows, key=lambda row: row.time_ns), lambda row: row.compile_key)
    alike = group_by((_Part(config, by_key.get(config.compile_key, ())) for config in configs), lambda p: p.signature)
    texts = group_by(data.rows(Artifact), lambda row: row.compile_key)
    shown = [_describe_part(parts, texts) for parts in list(alike.values())[:MAX_PARTS]]
    return {"count": len(alike), "compiles": len(rows), "parts": shown}


def _describe_part(parts: Sequence[_Part], texts: Mapping[str | None, Sequence[Artifact]]) -> VllmPart:
    slowest = max(parts, key=lambda part: part.seconds or 0)
    config, compiles = slowest.config, slowest.compiles
    sizes = _list_sizes(compiles)
    by_piece = group_by(compiles, lambda row: row.piece or "?")
    return {
        "ranks": sorted({part.config.rank for part in parts if part.config.rank is not None}),
        "rank": config.rank,
        "compile_id": config.compile_id,
        "config": slowest.settings,
        "compiles": len(compiles),
        "seconds": slowest.seconds,
        "piece_count": len(by_piece),
        "ranges": [_describe_range(each, compiles, config.cudagraph_mode != "NONE") for each in sizes],
        "pieces": [_describe_piece(name, rows, sizes) for name, rows in list(by_piece.items())[:MAX_PIECES]],
        "texts": _list_texts(texts.get(config.compile_key, ()), by_piece),
    }


def _list_sizes(compiles: Sequence[VllmCompile]) -> list[Sizes]:
    """The single sizes, then the ranges, in order."""
    sizes = {_get_sizes(row) for row in compiles}
    return sorted(sizes, key=lambda size: (size[0] != size[1], size[0] or 0, size[1] or 0))[:MAX_RANGES]


def _get_sizes(row: VllmCompile) -> Sizes:
    return row.range_start, row.range_end


def _describe_range(sizes: Sizes, compiles: Sequence[VllmCompile], has_graphs: bool) -> VllmRange:
    rows = [row for row in compiles if _get_sizes(row) == sizes]
    return {
        "start": sizes[0],
        "end": sizes[1],
        "is_cudagraph_size": has_graphs and any(row.is_cudagraph_size for row in rows),
        "seconds": sum_known(row.duration_s for row in rows),
    }


def _describe_piece(name: str, rows: Sequence[VllmCompile], sizes: Sequence[Sizes]) -> VllmPiece:
    by_sizes = group_by(rows, _get_sizes)
    seconds = {each: sum_known(row.duration_s for row in found) for each, found in by_sizes.items()}
    return {
        "name": name,
        "graph_ops": find_first(row.graph_ops for row in rows),
        "seconds": sum_known(row.duration_s for row in rows),
        "cells": [{"seconds": seconds[each]} if each in seconds else None for each in sizes],
    }


def _list_texts(texts: Iterable[Artifact], pieces: Iterable[str]) -> list[VllmText]:
    names = dict.fromkeys((*TEXTS, *(f"vllm_{piece}" for piece in islice(pieces, MAX_PIECES))))
    found: dict[str, VllmText] = {}
    for row in texts:
        if row.name in names and row.event_id is not None:
            found[row.name] = {"event_id": row.event_id, "name": row.name, "size": row.size}
    return [found[name] for name in names if name in found]
