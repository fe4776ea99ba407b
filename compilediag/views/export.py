"""Write a session for other tools: a trace for Perfetto, tables as Parquet or CSV files, or Markdown for an issue."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompilediagError
from ..events import (
    BY_TABLE,
    CacheLookup,
    Compile,
    DynamicDecision,
    Event,
    ExportProblem,
    GraphBreak,
    KernelCompile,
    Phase,
    Recompile,
    SymbolicShape,
    columns,
)
from ..files import CSV, MARKDOWN, PARQUET, TRACE, OutputKind, check_output, create_folder, make_absolute, write_file
from ..storage.data import SessionData
from ..storage.tables import table_columns
from ..version import __version__
from .markdown import make_markdown

if TYPE_CHECKING:
    import pandas as pd

#: Events that Perfetto shows as a span; those of one process nest in its lanes.
SPANS: tuple[type[Event], ...] = (Compile, Phase, KernelCompile)
#: Events that Perfetto shows as a moment.
MOMENTS: tuple[type[Event], ...] = (
    Recompile,
    CacheLookup,
    GraphBreak,
    DynamicDecision,
    SymbolicShape,
    ExportProblem,
)

#: The first characters of what spreadsheets take for a formula, full-width forms and white space before it included.
_FORMULA = re.compile(r"[\t\r\n]|[\s\ufeff\u200b]*[=+\-@＝＋－＠]")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")

#: The first field of a trace. Perfetto shows it with the trace's other facts.
_WRITER = {"writer": f"compilediag {__version__}"}

TraceEvent = dict[str, Any]
#: Begin and end in us, and the event.
Span = tuple[float, float, TraceEvent]


def export_session(data: SessionData, path: str | os.PathLike[str], format: str, redact: bool | None = None) -> Path:
    """Write a session to `path` and return the path. `redact` is for Markdown, which is redacted if it is None.

    CompilediagError if it cannot be written, for an unknown `format`, or for one that cannot be redacted.
    """
    writers: dict[str, Callable[[SessionData, Path], None]] = {
        "perfetto": _write_perfetto,
        "parquet": _write_parquet,
        "csv": _write_csv,
        "markdown": lambda data, file: _write_markdown(data, file, redact is not False),
    }
    if format not in writers:
        raise CompilediagError(f"unknown format {format!r}; choose one of: {', '.join(writers)}")
    if redact and format != "markdown":
        raise CompilediagError(f"format {format!r} cannot be redacted; use 'markdown', or a redacted report")
    target = make_absolute(path)
    writers[format](data, target)
    return target


def _write_markdown(data: SessionData, target: Path, redact: bool) -> None:
    check_output(target, MARKDOWN)
    write_file(target, make_markdown(data, redact))


# Tables


def _write_csv(data: SessionData, folder: Path) -> None:
    for name, frame in _read_plain_tables(data, folder, "csv", CSV):
        for column, spec in table_columns(name).items():
            if spec["dtype"] == "string":
                frame[column] = frame[column].map(escape_formula, na_action="ignore")
        # With "\n" alone a carriage return in a text stays unquoted, and what follows it is a row.
        write_file(folder / f"{name}.csv", frame.to_csv(index=False, lineterminator="\r\n"))


def escape_formula(text: str) -> str:
    """A cell that a spreadsheet does not run: an apostrophe before what could be a formula. Numbers stay numbers."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def _write_parquet(data: SessionData, folder: Path) -> None:
    if not any(importlib.util.find_spec(package) for package in ("pyarrow", "fastparquet")):
        raise CompilediagError("format 'parquet' needs pyarrow: pip install pyarrow")
    for name, frame in _read_plain_tables(data, folder, "parquet", PARQUET):
        write_file(folder / f"{name}.parquet", frame.to_parquet(None, index=False))


def _read_plain_tables(
    data: SessionData, folder: Path, ending: str, kind: OutputKind
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables, with lists and dicts as JSON text. Creates `folder` if it does not exist."""
    create_folder(folder)
    for name in BY_TABLE:
        check_output(folder / f"{name}.{ending}", kind)
    with data.settled():
        for name in BY_TABLE:
            frame = data.table(name)
            for column, spec in table_columns(name).items():
                if spec["dtype"] == "json":
                    frame[column] = [None if value is None else json.dumps(value) for value in frame[column]]
            yield name, frame


# Perfetto


def _write_perfetto(data: SessionData, target: Path) -> None:
    """Write the JSON of Chrome's trace events, which ui.perfetto.dev opens. Times are in us since 1970."""
    check_output(target, TRACE)
    with data.settled():
        events = [*_make_spans(data), *_make_moments(data)]
        names = [*_name_processes(data)]
    write_file(target, json.dumps({"otherData": _WRITER, "traceEvents": [*names, *events], "displayTimeUnit": "ms"}))


def _name_processes(data: SessionData) -> Iterator[TraceEvent]:
    ranks: dict[int, int | None] = {}
    for kind in (*SPANS, *MOMENTS):
        for event in data.rows(kind):
            if event.pid is not None:
                rank = ranks.setdefault(event.pid, event.rank)
                ranks[event.pid] = event.rank if rank is None else rank
    for pid, rank in ranks.items():
        name = f"process {pid}" if rank is None else f"rank {rank}, process {pid}"
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}


def _make_spans(data: SessionData) -> Iterator[TraceEvent]:
    by_process: dict[int, list[Span]] = {}
    for kind in SPANS:
        for row in data.rows(kind):
            if row.duration_s is not None:
                event = {**_make_trace_event(row), "ph": "X", "dur": row.duration_s * 1e6}
                by_process.setdefault(event["pid"], []).append((event["ts"], event["ts"] + event["dur"], event))
    for spans in by_process.values():
        yield from _assign_lanes(spans)


def _assign_lanes(spans: list[Span]) -> Iterator[TraceEvent]:
    """Give every span the first lane where it lies inside what is open there: threads are not recorded."""
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


def _make_moments(data: SessionData) -> Iterable[TraceEvent]:
    for kind in MOMENTS:
        yield from ({**_make_trace_event(row), "ph": "i", "s": "p", "tid": 1} for row in data.rows(kind))


def _make_trace_event(row: Event) -> TraceEvent:
    """What spans and moments have in common. The arguments are the columns that the trace shows nowhere else."""
    cells = {name: getattr(row, name) for name in ("compile_id", "compile_key", *columns(type(row)))}
    arguments = {name: value for name, value in cells.items() if value is not None and name != "duration_s"}
    title = f"{row.title} {row.compile_id or ''}".strip() if isinstance(row, Compile) else row.title
    return {
        "name": title if isinstance(row, Phase) else f"{row.kind.replace('_', ' ')}: {title}",
        "cat": row.table,
        "ts": row.time_ns / 1000,
        "pid": row.pid or 0,
        "args": arguments,
    }
