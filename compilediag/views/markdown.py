"""A session as Markdown for an issue: environment, totals, plan and recompiles, redacted unless asked otherwise.

GitHub takes comments of 65,536 characters. What does not fit is left out, and the document says so.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..diagnosis import explain_gaps, find_gaps
from ..diagnosis.plan import make_plan
from ..diagnosis.plan.plan_text import format_settings
from ..events import GraphBreak, Recompile, RefusedCall
from ..formatting import (
    escape_lines,
    format_amount,
    format_change,
    format_count,
    format_function_name,
    format_place,
    format_seconds,
)
from ..version import __version__
from .markdown_text import format_block, format_sentence, format_span, format_table
from .redacted_plan import NOTE, redact_plan
from .redaction import RedactedData, Redactor
from .totals import compute_totals

if TYPE_CHECKING:
    from ..diagnosis.compile_cost import CompileCost
    from ..diagnosis.plan import Plan, PlanStep, UnresolvedCause
    from ..events import Rows
    from ..storage.data import SessionData

#: Bytes of the document at most, and of the plan, so that the recompiles fit too.
MAX_SIZE, MAX_PLAN_SIZE = 60_000, 35_000
#: Lines and characters of one block of code.
MAX_CODE_LINES, MAX_CODE = 60, 4_000
#: Rows of a table.
MAX_ROWS = 40
#: What one guard changed: function, file, line, guarded value, kind of guard.
Change = tuple[str | None, str | None, int | None, str | None, str | None]


def make_markdown(data: SessionData, redact: bool = True) -> str:
    """The document; `redact` leaves out source code, values and paths, as in a redacted report."""
    with data.settled():
        redactor = Redactor() if redact else None
        rows: Rows = data if redactor is None else RedactedData(data, redactor)
        plan = make_plan(data)
        shown = plan if redactor is None else redact_plan(plan, redactor, rows)
        head = [_format_totals(data), _format_environment(data.meta)]
        parts = [*head, *_fit(_format_plan(shown), MAX_PLAN_SIZE)]
        used = sum(len(part.encode()) + 2 for part in parts)
        parts += _fit([*_format_recompiles(rows), *_format_gaps(data, redact)], MAX_SIZE - used - 500)
    note = "Source code, values and paths are left out. " if redact else ""
    return escape_lines("\n\n".join([*parts, f"<sub>{note}Written by compilediag {__version__}.</sub>"])) + "\n"


def _fit(parts: Iterable[str], size: int) -> Iterator[str]:
    """The parts that fit into `size` bytes, and how many do not."""
    left_out = 0
    for part in parts:
        length = len(part.encode()) + 2
        if left_out or length > size:
            left_out += 1
        else:
            size -= length
            yield part
    if left_out:
        yield f"*{format_amount(left_out, 'more part does', 'more parts do')} not fit here.*"


def _format_totals(data: Rows) -> str:
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
    return f"**torch.compile: {known or 'nothing was collected'}**"


def _format_environment(meta: dict[str, Any]) -> str:
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
    return format_table(("environment", ""), [(name, format_span(str(fact))) for name, fact in facts.items() if fact])


# The plan


def _format_plan(plan: Plan) -> Iterator[str]:
    yield f"### Plan\n\n{format_sentence(plan.headline)}"
    if plan.tried:
        yield format_sentence(str(plan.tried["text"]))
    for number, step in enumerate(plan.steps, 1):
        yield _format_step(number, step)
    if plan.settings and len(plan.steps) > 1:
        yield f"All settings together:\n\n{_format_code(format_settings(plan.settings))}"
    if plan.unresolved:
        yield "Not resolved:"
        yield "\n".join(map(_format_unresolved, plan.unresolved[:MAX_ROWS]))
    for spec in plan.specs:
        yield f"{format_sentence(spec.title)}\n\n{_format_code(spec.change.code)}"
    if plan.costs:
        yield "Where compile time goes:"
    for cost in plan.costs[:MAX_ROWS]:
        yield _format_cost(cost)
    for note in plan.notes:
        if note != NOTE:  # The end of the document says that.
            yield format_sentence(note)


def _format_step(number: int, step: PlanStep) -> str:
    """An item of a numbered list; what belongs to it is indented by the width of its number."""
    indent = " " * len(f"{number}. ")
    where = ": ".join(filter(None, (format_span(step.place), format_span(step.code or ""))))
    change = _format_code(step.change, indent) if step.can_be_applied else indent + format_sentence(step.change)
    lines = [f"{number}. {where or 'place not known'}", f"{indent}{format_sentence(step.what)}."]
    return "\n\n".join(["  \n".join(lines), change, indent + format_sentence(step.saving)])


def _format_code(code: str, indent: str = "") -> str:
    kept = "\n".join(code[:MAX_CODE].splitlines()[:MAX_CODE_LINES])
    return format_block(kept if kept == code.rstrip("\n") else f"{kept}\n# ...", "python", indent)


def _format_unresolved(cause: UnresolvedCause) -> str:
    where = f"{format_span(cause.place)}: " if cause.place else ""
    reason = f": {format_sentence(cause.reason)}" if cause.reason else ""
    return f"- {where}{format_sentence(cause.what)}{reason}"


def _format_cost(cost: CompileCost) -> str:
    code = [_format_code(cost.code, "  ")] if cost.code else []
    return "\n\n".join([f"- {format_sentence(cost.what)}.", *code, f"  {format_sentence(cost.advice)}"])


# Recompiles, graph breaks and refused calls


def _format_recompiles(data: Rows) -> Iterator[str]:
    """One row per guard of a function that failed first, most seconds first."""
    groups: dict[Change, list[Recompile]] = defaultdict(list)
    for row in data.rows(Recompile):
        groups[row.function, row.file, row.line, row.guard_source, row.guard_kind].append(row)
    ordered = sorted(groups.values(), key=lambda rows: (-_sum_lost(rows), -len(rows)))
    if ordered:
        head = ("function", "guard that failed first", "values", "recompiles", "lost")
        table = [_make_row(rows) for rows in ordered[:MAX_ROWS]]
        has_values = any(row[2] for row in table)
        shown = [index for index in range(len(head)) if index != 2 or has_values]
        yield "### Recompiles\n\n" + format_table([head[i] for i in shown], [[row[i] for i in shown] for row in table])
        if len(ordered) > MAX_ROWS:
            yield f"*{format_count(len(ordered) - MAX_ROWS)} more guards failed.*"
    # By torch's number of the kind: the reasons of graph breaks quote the program.
    yield from _format_counts("Graph breaks", ((row.break_id or "no number", 1) for row in data.rows(GraphBreak)))
    refused = ((row.refused_by or "unknown", row.count or 0) for row in data.rows(RefusedCall))
    yield from _format_counts("Refused calls", refused)


def _sum_lost(rows: list[Recompile]) -> float:
    return sum(row.lost_s or 0.0 for row in rows)


def _make_row(rows: list[Recompile]) -> tuple[str, ...]:
    """The cells of the recompiles of one guard."""
    first = rows[0]
    values = [value for value in (first.expected, *(row.actual for row in rows)) if value is not None]
    place = format_span(format_place(first.file, first.line))
    function = format_span(format_function_name(first.function) or "")
    kind = format_sentence((first.guard_kind or "").replace("_", " "))
    guard = " ".join(filter(None, (format_span(first.guard_source or ""), kind)))
    timed = any(row.lost_s is not None for row in rows)
    return (
        " ".join(filter(None, (function, place))),
        guard,
        format_span(format_change(values).removeprefix("was ")) if len(values) > 1 else "",
        format_count(len(rows)),
        format_seconds(_sum_lost(rows)) if timed else "not timed",
    )


def _format_counts(what: str, counted: Iterable[tuple[str, int]]) -> Iterator[str]:
    """`Graph breaks: GB0059 2x`: the sum of each name's counts; nothing if all are 0."""
    counts: Counter[str] = Counter()
    for name, count in counted:
        counts[name] += count
    if counts.total():
        listed = ", ".join(f"{format_span(name)} {format_count(count)}x" for name, count in sorted((+counts).items()))
        yield f"{what}: {listed}"


def _format_gaps(data: Rows, redact: bool) -> Iterator[str]:
    """What was not collected. A reason can name files, so a redacted document has none."""
    gaps = explain_gaps(data)
    if gaps and redact:
        yield f"Not collected: {format_sentence(', '.join(gaps))}"
    elif gaps:
        yield "\n".join(f"- Not collected: {format_sentence(f'{name}: {why}')}" for name, why in gaps.items())
