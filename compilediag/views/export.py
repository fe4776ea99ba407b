"""A session for other tools: a trace for Perfetto, or its tables as Parquet or CSV. See `Session.export`."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompilediagError
from ..events import BY_TABLE
from ..output_paths import check_output
from ..storage.tables import table_columns
from .report import write_whole

if TYPE_CHECKING:
    import pandas as pd

    from ..session import Session

#: Events of a moment in Perfetto, by table.
MOMENTS = (
    *("recompiles", "cache_lookups", "graph_breaks", "dynamic_decisions"),
    *("symbolic_shapes", "export_problems"),
)
#: Events with a length; those of one process nest in its lanes.
SPANS = ("compiles", "phases", "kernels")
#: Columns that Perfetto shows elsewhere.
PLACED = ("event_id", "time", "rank", "pid", "duration_s")

Span = tuple[float, float, dict[str, Any]]


def export(session: Session, path: str | os.PathLike[str], format: str) -> Path:
    """Write `session`; the path that was written. CompilediagError if it can't be, or the format is unknown."""
    writers = {"perfetto": _perfetto, "parquet": _parquet, "csv": _csv}
    if format not in writers:
        raise CompilediagError(f"no format {format!r}: use {', '.join(writers)}")
    target = Path(path).absolute()
    writers[format](session, target)
    return target


# Tables


def _csv(session: Session, folder: Path) -> None:
    for name, frame in _plain_tables(session, folder):
        write_whole(folder / f"{name}.csv", frame.to_csv(index=False))


def _parquet(session: Session, folder: Path) -> None:
    if not any(importlib.util.find_spec(package) for package in ("pyarrow", "fastparquet")):
        raise CompilediagError("Parquet needs a package that writes it: pip install pyarrow")
    for name, frame in _plain_tables(session, folder):
        frame.to_parquet(folder / f"{name}.parquet", index=False)


def _plain_tables(session: Session, folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables, lists and dicts in them as JSON; `folder` is made if need be."""
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise CompilediagError(f"can't write {folder}: {error.strerror}") from None
    with session.settled():
        for name in BY_TABLE:
            frame = getattr(session, name)
            for column, spec in table_columns(name).items():
                if spec["dtype"] == "json":
                    frame[column] = [None if value is None else json.dumps(value) for value in frame[column]]
            yield name, frame


# Perfetto


def _perfetto(session: Session, target: Path) -> None:
    """Chrome's JSON of trace events, which ui.perfetto.dev opens. Times are in us since 1970."""
    check_output(target)
    with session.settled():
        events = [*_spans(session), *_moments(session)]
        named = [*_processes(session)]
    write_whole(target, json.dumps({"traceEvents": [*named, *events], "displayTimeUnit": "ms"}))


def _rows(session: Session, table: str) -> Iterator[dict[str, Any]]:
    frame = getattr(session, table)
    missing = frame.isna()
    for row, gaps in zip(frame.to_dict("records"), missing.to_dict("records"), strict=True):
        yield {name: value for name, value in row.items() if not gaps[name]}


def _processes(session: Session) -> Iterator[dict[str, Any]]:
    frame = session.events[["pid", "rank"]].drop_duplicates().dropna(subset="pid")
    ranks = frame.sort_values("rank").drop_duplicates("pid")
    for pid, rank in zip(ranks["pid"], ranks["rank"].fillna(-1), strict=True):
        name = f"process {pid}" if rank < 0 else f"rank {rank}, process {pid}"
        yield {"ph": "M", "name": "process_name", "pid": int(pid), "args": {"name": name}}


def _spans(session: Session) -> Iterator[dict[str, Any]]:
    by_process: dict[int, list[Span]] = {}
    for table in SPANS:
        for row in _rows(session, table):
            if "duration_s" in row:
                event = _event(table, row, ph="X", dur=row["duration_s"] * 1e6)
                by_process.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"], event))
    for spans in by_process.values():
        yield from _in_lanes(spans)


def _in_lanes(spans: list[Span]) -> Iterator[dict[str, Any]]:
    """Threads are not told: each span goes to the first lane where it lies within what is open there."""
    lanes: list[list[float]] = []
    for begin, end, event in sorted(spans, key=lambda span: (span[0], -span[1])):
        for ends in lanes:
            while ends and ends[-1] <= begin:
                ends.pop()
        free = (number for number, ends in enumerate(lanes) if not ends or end <= ends[-1])
        number = next(free, len(lanes))
        if number == len(lanes):
            lanes.append([])
        lanes[number].append(end)
        yield {**event, "tid": number + 1}


def _moments(session: Session) -> Iterable[dict[str, Any]]:
    for table in MOMENTS:
        yield from (_event(table, row, ph="i", s="p", tid=1) for row in _rows(session, table))


def _event(table: str, row: dict[str, Any], **more: Any) -> dict[str, Any]:
    titles = {
        "compiles": f"compile {row.get('function', '?')} {row.get('compile_id', '')}".strip(),
        "phases": row.get("name", "phase"),
        "kernels": f"kernel {row.get('name', '?')}",
        "recompiles": f"recompile: {row.get('guard_source', '?')}",
        "cache_lookups": f"{row.get('cache', 'cache')} {row.get('outcome', '')}".strip(),
        "graph_breaks": f"graph break: {row.get('reason', '?')}",
        "dynamic_decisions": f"dynamic: {row.get('source', '?')}",
        "symbolic_shapes": f"{row.get('action', 'shape')}: {row.get('expression') or row.get('symbol', '?')}",
        "export_problems": f"export: {row.get('op') or row.get('expression', '?')}",
    }
    told = {name: _json(value) for name, value in row.items() if name not in PLACED}
    common = {"name": titles[table], "cat": table, "ts": row["time"].value / 1000, "pid": int(row.get("pid", 0))}
    return {**common, **more, "args": told}


def _json(value: Any) -> Any:
    """A cell as JSON has it."""
    return value.item() if hasattr(value, "item") else value
