"""Write a session for other tools: a trace for Perfetto, a profile of tracing for speedscope, tables as Parquet or CSV
files, Markdown for an issue, or SARIF.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..decode.guards.path import format_expression
from ..diagnosis import explain_gaps, find_gaps
from ..diagnosis.evidence import Place as FunctionPlace
from ..diagnosis.evidence import get_place, group_by, sum_seconds
from ..diagnosis.plan import make_plan
from ..diagnosis.plan.plan import describe_plan
from ..diagnosis.trace_tree import build_trace_tree, walk_trace_tree
from ..document import Block, Code, CodeBlock, Items, Para, Part, Place, Section, Table, fit, to_markdown
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
    RefusedCall,
    Rows,
    SymbolicShape,
    columns,
)
from ..formatting import format_amount, format_change, format_count, format_function_name, format_place, format_seconds
from ..storage.data import SessionData, table_columns
from ..system.files import (
    CSV,
    MARKDOWN,
    PARQUET,
    SARIF,
    SPEEDSCOPE,
    TRACE,
    OutputKind,
    check_output,
    create_folder,
    make_absolute,
    write_file,
)
from ..version import __version__
from .redaction import NOTE, RedactedData, Redactor, redact_plan
from .repro import make_repro
from .review import find_repository, make_sarif
from .totals import compute_totals

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

FORMATS = ("perfetto", "speedscope", "parquet", "csv", "markdown", "sarif")

TraceEvent = dict[str, Any]


def export_session(data: SessionData, path: str | os.PathLike[str], format: str, redact: bool | None = None) -> Path:
    """Write a session to `path` and return the path. `redact` is for Markdown, which is redacted if it is None.

    CompilediagError if it cannot be written, for an unknown `format`, or for one that cannot be redacted.
    """
    texts: dict[str, tuple[OutputKind, Callable[[SessionData], str]]] = {
        "perfetto": (TRACE, _make_perfetto),
        "speedscope": (SPEEDSCOPE, _make_speedscope),
        "markdown": (MARKDOWN, lambda data: make_markdown(data, redact is not False)),
        "sarif": (SARIF, lambda data: make_sarif(data, find_repository())),
    }
    if format not in FORMATS:
        raise CompilediagError(f"unknown format {format!r}; choose one of: {', '.join(FORMATS)}")
    if redact and format != "markdown":
        raise CompilediagError(f"format {format!r} cannot be redacted; use 'markdown', or a redacted report")
    target = make_absolute(path)
    if format not in texts:
        (_write_csv if format == "csv" else _write_parquet)(data, target)
        return target
    kind, make = texts[format]
    check_output(target, kind)
    with data.settled():
        text = make(data)
    write_file(target, text)
    return target


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


def _make_perfetto(data: SessionData) -> str:
    """The JSON of Chrome's trace events, which ui.perfetto.dev opens. Times are in us since 1970."""
    long = [row for kind in SPANS for row in data.rows(kind)]
    short = [row for kind in MOMENTS for row in data.rows(kind)]
    ranks: dict[int, int | None] = {}
    for row in (*long, *short):
        if row.pid is not None and ranks.get(row.pid) is None:
            ranks[row.pid] = row.rank
    names = {pid: f"process {pid}" if rank is None else f"rank {rank}, process {pid}" for pid, rank in ranks.items()}
    spans = [
        {**_make_trace_event(row), "ph": "X", "dur": row.duration_s * 1e6} for row in long if row.duration_s is not None
    ]
    events = [
        *({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}} for pid, name in names.items()),
        *chain.from_iterable(map(_assign_lanes, group_by(spans, lambda span: span["pid"]).values())),
        *({**_make_trace_event(row), "ph": "i", "s": "p", "tid": 1} for row in short),
    ]
    return json.dumps({"otherData": _WRITER, "traceEvents": events, "displayTimeUnit": "ms"})


def _assign_lanes(spans: list[TraceEvent]) -> Iterator[TraceEvent]:
    """Give every span the first lane where it lies inside what is open there: threads are not recorded."""
    lanes: list[list[float]] = []
    for event in sorted(spans, key=lambda span: (span["ts"], -(span["ts"] + span["dur"]))):
        end = event["ts"] + event["dur"]
        for ends in lanes:
            while ends and ends[-1] <= event["ts"]:
                ends.pop()
        free = (number for number, ends in enumerate(lanes) if not ends or end <= ends[-1])
        number = next(free, len(lanes))
        if number == len(lanes):
            lanes.append([])
        lanes[number].append(end)
        yield {**event, "tid": number + 1}


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


# speedscope

#: What says that a file is a profile of speedscope.
SCHEMA = "https://www.speedscope.app/file-format-schema.json"
_NOT_TRACED = (
    "the session does not say what Dynamo traced, so there is nothing for speedscope; record it with tracing=True"
)


def _make_speedscope(data: SessionData) -> str:
    """What Dynamo traced as a profile that speedscope.app opens: s of each function with its callers."""
    found = [*walk_trace_tree(build_trace_tree(data))]
    if not found:
        raise CompilediagError(_NOT_TRACED)
    numbers: dict[FunctionPlace, int] = {}
    samples = [[numbers.setdefault(each.place, len(numbers)) for each in (*around, calls)] for calls, around in found]
    weights = [max(0.0, calls.own_s) for calls, _ in found]
    frames = ({"name": function or "unknown function", "file": file, "line": line} for function, file, line in numbers)
    shared = [{name: value for name, value in frame.items() if value is not None} for frame in frames]
    profile = {"type": "sampled", "name": "Tracing by Dynamo", "unit": "seconds", "startValue": 0}
    profile |= {"endValue": sum(weights), "samples": samples, "weights": weights}
    whole = {"exporter": f"compilediag {__version__}", "$schema": SCHEMA, "shared": {"frames": shared}}
    return json.dumps({**whole, "profiles": [profile]})


# Markdown for an issue: environment, totals, plan and recompiles, redacted unless asked otherwise. GitHub takes
# comments of 65,536 characters. What does not fit is left out, and the document says so.

#: Bytes of the document at most.
MAX_SIZE = 60_000
#: The first of `document.LIMITS` that is tried: 40 rows of a table, items of a list.
FIRST_LIMIT = 2


def make_markdown(data: SessionData, redact: bool = True) -> str:
    """The document; `redact` leaves out source code, values and paths, as in a redacted report."""
    with data.settled():
        redactor = Redactor() if redact else None
        rows: Rows = data if redactor is None else RedactedData(data, redactor)
        plan = make_plan(data)
        shown = plan if redactor is None else redact_plan(plan, redactor, rows)
        shown = replace(shown, notes=tuple(note for note in shown.notes if note != NOTE))  # The last line says that.
        # The script for the costliest recompile that fake inputs can show. It has values of the program.
        repro: list[Block] = []
        with contextlib.suppress(CompilediagError):
            repro = [] if redact else [Section(CodeBlock(make_repro(data)), title="The guard fails with fake inputs")]
        gaps = explain_gaps(data)
        reasons = Items([[f"Not collected: {name}: {why}"] for name, why in gaps.items()])
        # A reason can name files.
        missing = f"Not collected: {', '.join(gaps)}" if redact else reasons
        meta = data.meta
        watched = None
        if meta.get("created_ns") and meta.get("stopped_ns"):
            watched = f"watched for {format_seconds((meta['stopped_ns'] - meta['created_ns']) / 1e9)}"
        recorded = ", ".join(filter(None, (meta.get("compilediag_version"), f"detail {meta.get('detail')}", watched)))
        facts = {
            "torch": meta.get("torch_version"),
            "Python": meta.get("python_version"),
            "device": meta.get("device"),
            "platform": meta.get("platform"),
            "compilediag": recorded,
        }
        document = Section(
            Para(_describe_totals(data), strong=True),
            Table(("environment", ""), [(name, Para(Code(str(fact)))) for name, fact in facts.items() if fact]),
            Section(describe_plan(shown), title="Plan"),
            *_describe_recompiles(rows),
            *repro,
            *([missing] if gaps else []),
        )
    note = "Source code, values and paths are left out. " if redact else ""
    last = f"\n\n<sub>{note}Written by compilediag {__version__}.</sub>\n"
    return fit(document, to_markdown, MAX_SIZE - len(last), FIRST_LIMIT) + last


def _describe_totals(data: Rows) -> str:
    """The first line: what was compiled, in numbers. What was not collected has none."""
    totals, missing = compute_totals(data), find_gaps(data)
    lookups, refused = totals["cache_hits"] + totals["cache_misses"], totals["refused_calls"]
    hits = f"{format_amount(totals['cache_hits'], 'cache hit')} of {format_amount(lookups, 'lookup')}"
    counts = (
        ("compiles", format_amount(totals["compiles"], "compile")),
        ("compiles", f"{format_seconds(totals['compile_s'])} compiling"),
        ("recompiles", format_amount(totals["recompiles"], "recompile")),
        ("recompiles", f"{format_seconds(totals['lost_s'])} lost to recompiles"),
        ("graph_breaks", format_amount(totals["graph_breaks"], "graph break")),
        *([("refused_calls", format_amount(refused, "refused call"))] if refused else []),
        *([("compile_caches", hits)] if lookups else []),
    )
    known = ", ".join(text for table, text in counts if table not in missing)
    return f"torch.compile: {known or 'nothing was collected'}"


def _describe_recompiles(data: Rows) -> list[Block]:
    """One row per guard of a function that failed first, most seconds first."""
    groups = group_by(data.rows(Recompile), lambda row: (*get_place(row), row.guard_source, row.guard_kind))
    ordered = sorted(groups.values(), key=lambda rows: (-_sum_lost(rows), -len(rows)))
    blocks: list[Block] = []
    if ordered:
        head = ("function", "guard that failed first", "values", "recompiles", "lost")
        table = [_make_row(rows) for rows in ordered]
        shown = [at for at in range(len(head)) if at != 2 or any(row[2] for row in table)]
        rows = [[row[at] for at in shown] for row in table]
        table_block = Table([head[at] for at in shown], rows, rest=(" guards failed",))
        blocks.append(Section(table_block, title="Recompiles"))
    # By torch's number of the kind: the reasons of graph breaks quote the program.
    blocks += _describe_counts("Graph breaks", ((row.break_id or "no number", 1) for row in data.rows(GraphBreak)))
    refused = ((row.refused_by or "unknown", row.count or 0) for row in data.rows(RefusedCall))
    return [*blocks, *_describe_counts("Refused calls", refused)]


def _sum_lost(rows: list[Recompile]) -> float:
    return sum_seconds(row.lost_s for row in rows)


def _make_row(rows: list[Recompile]) -> tuple[str | Para, ...]:
    """The cells of the recompiles of one guard."""
    first = rows[0]
    values = [value for value in (first.expected, *(row.actual for row in rows)) if value is not None]
    function, kind = format_function_name(first.function) or "", (first.guard_kind or "").replace("_", " ")
    place = format_place(first.file, first.line)
    timed = any(row.lost_s is not None for row in rows)
    return (
        _join_words(Code(function), Place(place)),
        _join_words(Code(format_expression(first.guard_source or "")), kind),
        Para(Code(format_change(values).removeprefix("was "))) if len(values) > 1 else "",
        format_count(len(rows)),
        format_seconds(_sum_lost(rows)) if timed else "not timed",
    )


def _join_words(*words: Part) -> Para:
    """The parts that have a text, with a space between them."""
    known = [word for word in words if (word if isinstance(word, str) else word.text)]
    return Para(*[part for word in known for part in (" ", word)][1:])


def _describe_counts(what: str, counted: Iterable[tuple[str, int]]) -> list[Para]:
    """`Graph breaks: GB0059 2x`: the sum of each name's counts; nothing if all are 0."""
    counts: Counter[str] = Counter()
    for name, count in counted:
        counts[name] += count
    listed = [
        part for name, count in sorted((+counts).items()) for part in (", ", Code(name), f" {format_count(count)}x")
    ]
    return [Para(f"{what}: ", *listed[1:])] if listed else []
