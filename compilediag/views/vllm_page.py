"""What the page shows of models that vLLM compiles: each part, and each of its pieces for each range of sizes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TypedDict

from ..events import Artifact, Rows, VllmCompile, VllmConfig

#: Parts and pieces that are shown; the page also has their total numbers.
MAX_PARTS, MAX_PIECES, MAX_RANGES = 32, 300, 40
#: The texts of a whole part, with what they are.
TEXTS = {
    "vllm_piecewise_split_graph": "graph that calls all pieces",
    "vllm_execution_code": "code that calls all pieces",
}
#: Fields of a configuration that ranks of one job need not share.
_OWN = ("time_ns", "compile_id", "compile_key", "duration_s", "rank", "pid", "event_id")

#: Smallest and largest size.
Sizes = tuple[int | None, int | None]


class VllmText(TypedDict):
    """A text of the session: its event id, and what it is."""

    event_id: int
    label: str
    name: str
    size: int | None


class VllmRange(TypedDict):
    """A range of sizes; `seconds` are those of all pieces, None if none ended."""

    start: int | None
    end: int | None
    is_cudagraph_size: bool
    seconds: float | None


class VllmPiece(TypedDict):
    """A piece with a cell for each range: None if it was not compiled for it."""

    name: str
    graph_ops: int | None
    seconds: float | None
    cells: list[dict[str, float | None] | None]


class VllmPart(TypedDict):
    """A part of a model on the ranks that compile it in the same way; all seconds are those of the slowest of them,
    `rank`. `config` has the columns of `vllm_configs`.
    """

    ranks: list[int]
    rank: int | None
    compile_id: str | None
    config: dict[str, Any]
    compiles: int
    seconds: float | None
    piece_count: int
    ranges: list[VllmRange]
    pieces: list[VllmPiece]
    texts: list[VllmText]


class VllmPage(TypedDict):
    """The page "vLLM"; `count` and `compiles` are total numbers."""

    count: int
    compiles: int
    parts: list[VllmPart]


class _Part:
    """The rows of one part on one rank."""

    def __init__(self, config: VllmConfig, compiles: Sequence[VllmCompile]):
        self.config = config
        self.compiles = compiles
        self.seconds = _sum(row.duration_s for row in compiles)
        settings = {name: value for name, value in asdict(config).items() if name not in _OWN}
        #: What makes it the same part on several ranks.
        self.signature = repr((settings, [(row.piece, row.range_start, row.range_end) for row in compiles]))


def make_vllm_page(data: Rows) -> VllmPage | None:
    """The part of a patch for the page "vLLM"; None if vLLM compiled nothing."""
    configs, rows = data.rows(VllmConfig), data.rows(VllmCompile)
    if not configs:
        return None
    by_key: dict[str | None, list[VllmCompile]] = defaultdict(list)
    for row in rows:
        by_key[row.compile_key].append(row)
    alike: dict[str, list[_Part]] = defaultdict(list)
    for config in configs:
        part = _Part(config, sorted(by_key.get(config.compile_key, ()), key=lambda row: row.time_ns))
        alike[part.signature].append(part)
    shown = [_describe_part(parts, data) for parts in list(alike.values())[:MAX_PARTS]]
    return {"count": len(alike), "compiles": len(rows), "parts": shown}


def _describe_part(parts: Sequence[_Part], data: Rows) -> VllmPart:
    slowest = max(parts, key=lambda part: part.seconds or 0)
    config, compiles = slowest.config, slowest.compiles
    sizes = _list_sizes(compiles)
    by_piece: dict[str, list[VllmCompile]] = defaultdict(list)
    for row in compiles:
        by_piece[row.piece or "?"].append(row)
    return {
        "ranks": sorted({part.config.rank for part in parts if part.config.rank is not None}),
        "rank": config.rank,
        "compile_id": config.compile_id,
        "config": {name: value for name, value in asdict(config).items() if name not in _OWN},
        "compiles": len(compiles),
        "seconds": slowest.seconds,
        "piece_count": len(by_piece),
        "ranges": [_describe_range(each, compiles, config.cudagraph_mode != "NONE") for each in sizes],
        "pieces": [_describe_piece(name, rows, sizes) for name, rows in list(by_piece.items())[:MAX_PIECES]],
        "texts": _list_texts(config, list(by_piece), data),
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
        "seconds": _sum(row.duration_s for row in rows),
    }


def _describe_piece(name: str, rows: Sequence[VllmCompile], sizes: Sequence[Sizes]) -> VllmPiece:
    seconds = {each: _sum(row.duration_s for row in rows if _get_sizes(row) == each) for each in map(_get_sizes, rows)}
    return {
        "name": name,
        "graph_ops": next((row.graph_ops for row in rows if row.graph_ops is not None), None),
        "seconds": _sum(row.duration_s for row in rows),
        "cells": [{"seconds": seconds[each]} if each in seconds else None for each in sizes],
    }


def _list_texts(config: VllmConfig, pieces: Sequence[str], data: Rows) -> list[VllmText]:
    labels = {**TEXTS, **{f"vllm_{piece}": piece for piece in pieces[:MAX_PIECES]}}
    found: dict[str, VllmText] = {}
    for row in data.rows(Artifact):
        if row.compile_key == config.compile_key and row.name in labels and row.event_id is not None:
            found[row.name] = {
                "event_id": row.event_id,
                "label": labels[row.name],
                "name": row.name,
                "size": row.size,
            }
    return [found[name] for name in labels if name in found]


def _sum(values: Any) -> float | None:
    """The sum of the known values; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
