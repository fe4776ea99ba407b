"""A session as Markdown for an issue: environment, totals, plan and recompiles, redacted unless asked otherwise.

GitHub takes comments of 65,536 characters. What does not fit is left out, and the document says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..diagnosis import explain_gaps, find_gaps
from ..diagnosis.plan import make_plan
from ..diagnosis.plan.plan import describe_plan
from ..document import Block, Code, Items, Para, Part, Place, Section, Table, fit, to_markdown
from ..events import GraphBreak, Recompile, RefusedCall
from ..formatting import (
    format_amount,
    format_change,
    format_count,
    format_function_name,
    format_place,
    format_seconds,
)
from ..version import __version__
from .redaction import NOTE, RedactedData, Redactor, redact_plan
from .totals import compute_totals

if TYPE_CHECKING:
    from ..events import Rows
    from ..storage.data import SessionData

#: Bytes of the document at most.
MAX_SIZE = 60_000
#: The first of `document.LIMITS` that is tried: 40 rows of a table, items of a list.
FIRST_LIMIT = 2
#: What one guard changed: function, file, line, guarded value, kind of guard.
Change = tuple[str | None, str | None, int | None, str | None, str | None]


def make_markdown(data: SessionData, redact: bool = True) -> str:
    """The document; `redact` leaves out source code, values and paths, as in a redacted report."""
    with data.settled():
        redactor = Redactor() if redact else None
        rows: Rows = data if redactor is None else RedactedData(data, redactor)
        plan = make_plan(data)
        shown = plan if redactor is None else redact_plan(plan, redactor, rows)
        shown = replace(shown, notes=tuple(note for note in shown.notes if note != NOTE))  # The last line says that.
        document = Section(
            Para(_describe_totals(data), strong=True),
            _describe_environment(data.meta),
            Section(describe_plan(shown), title="Plan"),
            *_describe_recompiles(rows),
            *_describe_gaps(data, redact),
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


def _describe_environment(meta: dict[str, Any]) -> Table:
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
    return Table(("environment", ""), [(name, Para(Code(str(fact)))) for name, fact in facts.items() if fact])


# Recompiles, graph breaks and refused calls


def _describe_recompiles(data: Rows) -> list[Block]:
    """One row per guard of a function that failed first, most seconds first."""
    groups: dict[Change, list[Recompile]] = defaultdict(list)
    for row in data.rows(Recompile):
        groups[row.function, row.file, row.line, row.guard_source, row.guard_kind].append(row)
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
    return sum(row.lost_s or 0.0 for row in rows)


def _make_row(rows: list[Recompile]) -> tuple[str | Para, ...]:
    """The cells of the recompiles of one guard."""
    first = rows[0]
    values = [value for value in (first.expected, *(row.actual for row in rows)) if value is not None]
    function, kind = format_function_name(first.function) or "", (first.guard_kind or "").replace("_", " ")
    place = format_place(first.file, first.line)
    timed = any(row.lost_s is not None for row in rows)
    return (
        _join_words(Code(function), Place(place)),
        _join_words(Code(first.guard_source or ""), kind),
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


def _describe_gaps(data: Rows, redact: bool) -> list[Block]:
    """What was not collected. A reason can name files, so a redacted document has none."""
    gaps = explain_gaps(data)
    if gaps and redact:
        return [f"Not collected: {', '.join(gaps)}"]
    return [Items([[f"Not collected: {name}: {why}"] for name, why in gaps.items()])] if gaps else []
