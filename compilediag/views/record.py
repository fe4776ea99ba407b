"""The record of a session that a saved notebook keeps: text, and HTML that needs neither scripts nor a kernel.

It stands in the place of the widget: a few words while the watch runs, and from its end on its plan, totals, other
findings and a timeline. Both are MIME bundles. The second one is made once, when the watch ends.

Notebook hosts remove scripts, and some of them styles, so the HTML needs neither. The timeline is a table with one row
per function, whose text has the colors of the page that it is in. Only the bars are SVG, in an `img`: JupyterLab and
GitHub remove inline SVG. Their colors have a contrast of at least 3:1 on white as well as on black, and recompiles are
lower than first compiles, so color is not the only sign.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from typing import Any

from ..diagnosis.evidence import group_by, sum_seconds
from ..diagnosis.finding import describe_finding
from ..diagnosis.plan import make_plan
from ..diagnosis.plan.plan import describe_plan
from ..document import Block, Code, CodeBlock, Drawing, Items, Lines, Para, Section, shorten, to_html
from ..events import Compile
from ..formatting import format_amount, format_function, format_line, format_seconds
from ..storage.data import SessionData
from .summary import (
    IN_NOTEBOOK,
    SessionResults,
    collect_results,
    describe_gaps,
    explain_no_findings,
    format_results,
    format_summary,
    format_totals,
)

#: The encoding of notebooks.
UTF_8 = "utf-8"
#: Items of each list at most, and characters of a block of code.
MAX_ITEMS, MAX_CHARS = 20, 4_000
_WATCHING = "compilediag: a watch is running"
_REPLACED = (
    "The live page needs a notebook that can show Jupyter widgets. When the watch stops, this text is replaced by what "
    "was recorded."
)
#: What a notebook keeps if it is saved while the watch runs, and no longer.
PLACEHOLDER = {
    "text/plain": f"{_WATCHING}. {_REPLACED}",
    "text/html": f"<p><strong>{_WATCHING}.</strong> {_REPLACED}</p>",
}


@dataclass(frozen=True)
class WidgetTexts:
    """What stands for a widget where it cannot be shown: a text, and what a notebook keeps in the end, as a text and as
    a document.
    """

    make_text: Callable[[], str]
    make_last: Callable[[], tuple[str, Block]]

    def make_record(self, name: str) -> dict[str, str]:
        """What a notebook keeps; `name` is a class for the outermost element."""
        text, document = self.make_last()
        return {"text/plain": text, "text/html": to_html(document, f"cdiag-record {name}")}


def make_dashboard_texts(data: SessionData) -> WidgetTexts:
    """The texts of a session's dashboard. The summary of a watch that runs is not its last word."""

    def make_text() -> str:
        if data.state != "watching":
            return format_summary(data)
        if not data.rows(Compile):
            return f"{_WATCHING}. Nothing was compiled so far.\n"
        return f"{_WATCHING}. So far:\n\n{format_summary(data)}"

    def make_last() -> tuple[str, Block]:
        with data.settled():
            results, meta, compiles = collect_results(data), data.meta, data.rows(Compile)
        return format_results(results, UTF_8), describe_record(results, meta, compiles)

    return WidgetTexts(make_text, make_last)


def make_plan_texts(data: SessionData) -> WidgetTexts:
    """The texts of the plan's card."""

    def make_last() -> tuple[str, Block]:
        with data.settled():
            plan = make_plan(data)
        return str(plan), shorten(describe_plan(plan, with_code=True), MAX_ITEMS, MAX_CHARS)

    return WidgetTexts(lambda: str(make_plan(data)), make_last)


def make_plain_texts(make_text: Callable[[], str]) -> WidgetTexts:
    """The same text in every place."""

    def make_last() -> tuple[str, Block]:
        text = make_text()
        return text, CodeBlock(text)

    return WidgetTexts(make_text, make_last)


# The document


def describe_record(results: SessionResults, meta: dict[str, Any], compiles: Sequence[Compile]) -> Section:
    """The plan with the block to paste, the totals, the findings that are not in it, and each function's compiles."""
    plan = results.plan
    shown = (
        [shorten(describe_plan(plan, with_code=True), MAX_ITEMS, MAX_CHARS)] if plan.recompiles or plan.costs else []
    )
    headline, *others = format_totals(results.totals, results.missing)
    facts_line = f"<p><small>{escape(_describe_recording(meta))}</small></p>"
    return Section(
        *shown,
        Lines(Para(headline, strong=True), *others),
        *_list_findings(results),
        *describe_gaps(results.gaps),
        Drawing(lambda rows: format_timeline(compiles, rows)),
        Drawing(lambda rows: facts_line),
    )


def _list_findings(results: SessionResults) -> list[Block]:
    """The findings that the plan does not have, or why there are none at all."""
    findings, plan = results.findings, results.plan
    if not findings:
        return [explain_no_findings(results)]
    rest = [finding for finding in findings if plan.find_step(finding) is None and not plan.has_cost(finding)]
    if not rest:
        return []
    items = [describe_finding(finding) for finding in rest[:MAX_ITEMS]]
    title = "Other findings:" if len(rest) < len(findings) else "Findings:"
    return [title, Items(items, "numbered", (" in ", Code(IN_NOTEBOOK.findings)), len(rest) - len(items))]


def _describe_recording(meta: dict[str, Any]) -> str:
    """When it was recorded, and with which torch."""
    began_ns, ended_ns = meta.get("created_ns"), meta.get("stopped_ns")
    parts = ["compilediag"]
    if began_ns:
        began = datetime.fromtimestamp(began_ns / 1e9).astimezone()
        parts.append(f"watch of {began:%Y-%m-%d %H:%M:%S %Z}")
    if began_ns and ended_ns:
        parts.append(f"{format_seconds((ended_ns - began_ns) / 1e9)} long")
    versions = (("torch", "torch_version"), ("Python", "python_version"))
    parts += [f"{name} {meta[key]}" for name, key in versions if meta.get(key)]
    return " · ".join(parts)


# The timeline

#: Of a picture, in px
WIDTH, HEIGHT, LOW = 320, 16, 9
#: Kind of bar -> its color.
COLORS = {"first": "#4f7fd6", "recompile": "#c9761f", "failed": "#d64550"}
#: Compiles that the text of a picture lists.
DESCRIBED = 6
#: Characters of a function's name and place.
MAX_FUNCTION = 100
_SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'>"
    "{shapes}</svg>"
)
_LEFT = ' style="text-align:left"'


def format_timeline(compiles: Sequence[Compile], limit: int) -> str:
    """The timeline as HTML; the `limit` functions that took most time, in the order of their first compile."""
    if not compiles or not limit:
        return ""
    ordered = sorted(compiles, key=lambda row: row.time_ns)
    lanes = group_by(ordered, lambda row: (row.rank, row.function, row.file, row.line))
    shown = sorted(lanes, key=lambda function: -sum_seconds(row.duration_s for row in lanes[function]))[:limit]
    begin_ns = min(row.time_ns for row in compiles)
    span_s = max((row.time_ns - begin_ns) / 1e9 + (row.duration_s or 0) for row in compiles)
    rows = "".join(_format_lane(own, begin_ns, span_s) for function, own in lanes.items() if function in shown)
    rest = len(lanes) - len(shown)
    more = f"<p>{format_amount(rest, 'function')} with less compile time not shown.</p>" if rest else ""
    head = "".join(
        f"<th{_LEFT}>{text}</th>"
        for text in ("Function", f"Compiles over {format_seconds(span_s)}: {_format_legend(compiles)}", "Compile time")
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _format_legend(compiles: Iterable[Compile]) -> str:
    words = {"first": "first compile", "recompile": "recompile (lower)", "failed": "failed"}
    kinds = {_get_kind(row) for row in compiles}
    return ", ".join(f"{_format_image(_draw(kind, [(0, 9)]), 9, '')} {words[kind]}" for kind in words if kind in kinds)


def _get_kind(row: Compile) -> str:
    if row.outcome not in (None, "ok"):
        return "failed"
    return "recompile" if row.is_recompile else "first"


def _format_lane(compiles: Sequence[Compile], begin_ns: int, span_s: float) -> str:
    """The row of a function."""
    bars = group_by(compiles, _get_kind)
    merged = {kind: _merge(_place_bar(row, begin_ns, span_s) for row in own) for kind, own in bars.items()}
    drawn = "".join(_draw(kind, merged[kind]) for kind in COLORS if kind in merged)
    shapes = f"<path d='M0 {HEIGHT - 1}h{WIDTH}v1H0z' fill='#888'/>{drawn}"
    image = _format_image(shapes, WIDTH, _describe_lane(compiles, begin_ns))
    first, seconds = compiles[0], sum_seconds(row.duration_s for row in compiles)
    name = format_line(format_function(first.function, first.file, first.line), MAX_FUNCTION)
    amount = f"{format_seconds(seconds)} in {format_amount(len(compiles), 'compile')}"
    return f"<tr><td{_LEFT}>{escape(name)}</td><td{_LEFT}>{image}</td><td{_LEFT}>{amount}</td></tr>"


def _place_bar(row: Compile, begin_ns: int, span_s: float) -> tuple[int, int]:
    """First and last px of a compile; it is at least 2 px wide."""
    start_s = (row.time_ns - begin_ns) / 1e9
    scale = (WIDTH - 2) / span_s if span_s > 0 else 0
    first = int(start_s * scale)
    return first, max(first + 2, int((start_s + (row.duration_s or 0)) * scale))


def _merge(bars: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Bars that touch become one, so a picture has at most 107 of a kind."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(bars):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged


def _draw(kind: str, bars: Iterable[tuple[int, int]]) -> str:
    high = LOW if kind == "recompile" else HEIGHT - 2
    path = "".join(f"M{first} {HEIGHT - 1 - high}h{last - first}v{high}H{first}z" for first, last in bars)
    return f"<path d='{path}' fill='{COLORS[kind]}'/>"


def _format_image(shapes: str, width: int, text: str) -> str:
    svg = _SVG.format(width=width, height=HEIGHT, shapes=shapes)
    source = svg.replace("%", "%25").replace("#", "%23").replace("<", "%3C").replace(">", "%3E")
    return f'<img src="data:image/svg+xml,{source}" width="{width}" height="{HEIGHT}" alt="{escape(text)}">'


def _describe_lane(compiles: Sequence[Compile], begin_ns: int) -> str:
    """When each compile began and how long it took, for those who do not see the picture."""
    words = {"first": "compile", "recompile": "recompile", "failed": "failed compile"}
    listed = [
        f"{words[_get_kind(row)]} after {format_seconds((row.time_ns - begin_ns) / 1e9)}: "
        f"{format_seconds(row.duration_s)}"
        for row in compiles[:DESCRIBED]
    ]
    rest = len(compiles) - len(listed)
    return "; ".join(listed) + (f"; and {rest} more" if rest else "")
