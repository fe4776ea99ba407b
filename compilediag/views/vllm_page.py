"""What the page shows of models that vLLM compiles: each part, and each of its pieces for each range of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import islice

from ..diagnosis.evidence import find_first, group_by, sum_known
from ..events import Artifact, Rows, VllmCompile, VllmConfig
from .page_types import PageVllmParts, VllmPart, VllmPiece, VllmRange, VllmText

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
