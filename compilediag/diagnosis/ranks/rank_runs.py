"""What ranks ran, where torch logged it: the order of their graphs, and how long it expects each to take. Pure.

Two texts hold it. `graph_execution`: {"graph_execution_order": [{"compile_id": "0/0"}, ...]}, of what ran within
`torch._inductor.debug.record_and_log_graph_execution_order()`. `inductor_runtime_and_tensor_meta`: {"ops": [{"name",
"type", "estimated_runtime_ns"}, ...]}, of a graph.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from ...decode.records.shape_records import TENSOR_META
from ..rows import Row, is_timed, rows_of

EXECUTION = "graph_execution"


def runs(tables: Any) -> dict[int, list[tuple[str, Row]]]:
    """rank -> compile ids of the graphs that it ran, in order, each with the row of the text that tells it."""
    found: dict[int, list[tuple[str, Row]]] = defaultdict(list)
    for row, told in _texts(tables, EXECUTION):
        for one in _dicts(told.get("graph_execution_order")):
            found[int(row["rank"])].append((str(one.get("compile_id")), row))
    return dict(found)


def estimates(tables: Any) -> dict[tuple[int, str | None], float]:
    """(rank, compile id) -> ms that torch expects the latest such graph to run."""
    found = {}
    for row, told in _texts(tables, TENSOR_META):
        times = [one.get("estimated_runtime_ns") for one in _dicts(told.get("ops"))]
        known = [time for time in times if type(time) in (int, float) and is_timed(time)]
        found[int(row["rank"]), row["compile_id"]] = sum(known) / 1e6
    return found


def first_other_run(found: dict[int, list[tuple[str, Row]]]) -> tuple[int, dict[int, str | None]] | None:
    """(place, rank -> the graph that it ran there, None if it had ended) where ranks first ran different graphs."""
    columns = [[name for name, _ in own] for own in found.values()]
    for place, names in enumerate(zip_longest(*columns)):
        if len(set(names)) > 1:
            return place, dict(zip(found, names, strict=True))
    return None


def _texts(tables: Any, name: str) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The texts of a name that a session of several ranks has, as JSON; those that are none are passed over."""
    read = getattr(tables, "artifact", None)
    for row in rows_of(tables, "artifacts", ("name",)) if read else ():
        if row["name"] == name and row["rank"] is not None:
            try:
                told = json.loads(read(row["event_id"]))
            except (KeyError, ValueError, RecursionError):
                continue
            if isinstance(told, dict):
                yield row, told


def _dicts(told: Any) -> list[dict[str, Any]]:
    return [one for one in told if isinstance(one, dict)] if isinstance(told, list) else []
