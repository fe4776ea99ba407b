"""The live widget: the dashboard of a session, and the explorer, its other page on the same model. This module is
imported when a widget is made, because recording must run without anywidget.

Searching, filtering and sorting happen in the browser, so they work while the kernel is busy. The traits that the
browser reads are documented at the top of `static/widget.js`.

The output of a widget in a notebook is first the live widget, then, once the watch has ended, its record: text, and
HTML that needs neither scripts nor a kernel. It stands in the place of the widget: a few words while the watch runs,
and from its end on its plan, totals, other findings and a timeline. Both are MIME bundles. The second one is made once,
when the watch ends.

Notebook hosts remove scripts, and some of them styles, so the HTML needs neither. The timeline is a table with one row
per function, whose text has the colors of the page that it is in. Only the bars are SVG, in an `img`: JupyterLab and
GitHub remove inline SVG. Their colors have a contrast of at least 3:1 on white as well as on black, and recompiles are
lower than first compiles, so color is not the only sign.
"""

from __future__ import annotations

import re
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from ..diagnosis import Finding
from ..diagnosis.evidence import group_by, sum_seconds
from ..diagnosis.finding import describe_finding
from ..diagnosis.plan import make_plan
from ..diagnosis.plan.plan import describe_plan
from ..document import Block, Code, CodeBlock, Drawing, Items, Lines, Para, Section, shorten, to_html
from ..errors import CompilediagError
from ..events import Compile
from ..formatting import format_amount, format_function, format_line, format_seconds
from ..storage.data import SessionData
from ..storage.recorded_data import RecordedData
from ..system.files import make_absolute
from ..system.interrupts import pass_on
from ..system.source_files import find_shell
from . import esm
from .explorer import format_explorer
from .export import export_session
from .model import ViewModel, dumps
from .patches import Pump
from .report import write_report
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


# The record

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
    words = {"first": "first compile", "recompile": "recompile (lower)", "failed": "failed"}
    kinds = set(map(_get_kind, compiles))
    legend = ", ".join(f"{_format_image(_draw(k, [(0, 9)]), 9, '')} {words[k]}" for k in words if k in kinds)
    titles = ("Function", f"Compiles over {format_seconds(span_s)}: {legend}", "Compile time")
    head = "".join(f"<th{_LEFT}>{title}</th>" for title in titles)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _get_kind(row: Compile) -> str:
    if row.outcome not in (None, "ok"):
        return "failed"
    return "recompile" if row.is_recompile else "first"


def _format_lane(compiles: Sequence[Compile], begin_ns: int, span_s: float) -> str:
    """The row of a function."""
    #: Kind -> first and last px of each compile, which is at least 2 px wide.
    bars: dict[str, list[tuple[int, int]]] = defaultdict(list)
    scale = (WIDTH - 2) / span_s if span_s > 0 else 0
    for row in compiles:
        start_s = (row.time_ns - begin_ns) / 1e9
        begin = int(start_s * scale)
        bars[_get_kind(row)].append((begin, max(begin + 2, int((start_s + (row.duration_s or 0)) * scale))))
    drawn = "".join(_draw(kind, _merge(bars[kind])) for kind in COLORS if kind in bars)
    shapes = f"<path d='M0 {HEIGHT - 1}h{WIDTH}v1H0z' fill='#888'/>{drawn}"
    # For those who do not see the picture: when each compile began and how long it took.
    words = {"first": "compile", "recompile": "recompile", "failed": "failed compile"}
    listed = [
        f"{words[_get_kind(row)]} after {format_seconds((row.time_ns - begin_ns) / 1e9)}: "
        f"{format_seconds(row.duration_s)}"
        for row in compiles[:DESCRIBED]
    ]
    rest = len(compiles) - len(listed)
    image = _format_image(shapes, WIDTH, "; ".join(listed) + (f"; and {rest} more" if rest else ""))
    first, seconds = compiles[0], sum_seconds(row.duration_s for row in compiles)
    name = format_line(format_function(first.function, first.file, first.line), MAX_FUNCTION)
    amount = f"{format_seconds(seconds)} in {format_amount(len(compiles), 'compile')}"
    return f"<tr><td{_LEFT}>{escape(name)}</td><td{_LEFT}>{image}</td><td{_LEFT}>{amount}</td></tr>"


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


try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:
    if error.name not in ("anywidget", "traitlets"):
        raise
    raise CompilediagError("the dashboard needs anywidget: pip install anywidget") from None


# Exports

#: Format that a page asks for -> the end of the name of what is written; "" for a folder.
ENDINGS = {"html": ".html", "cdiag": ".cdiag", "markdown": ".md", "csv": "", "parquet": "", "perfetto": ".json"}


def answer_export(data: SessionData, message: Mapping[str, Any]) -> dict[str, Any]:
    """Write what a page asks for, in the kernel's folder; the answer has the path, or the error in one line."""
    return _answer(message, lambda: {"path": str(_write(data, str(message.get("format"))))})


def _answer(message: Mapping[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `make` gives, or its error in one line: the page waits for an answer."""
    answer = {"type": "answer", "request": message.get("request")}
    try:
        return {**answer, **make()}
    except Exception as error:
        pass_on(error)
        is_explained = isinstance(error, CompilediagError | OSError)
        return {**answer, "error": str(error) if is_explained else f"{type(error).__name__}: {error}"}


def _write(data: SessionData, format: str) -> Path:
    if format not in ENDINGS:
        raise CompilediagError(f"unknown format {format!r}: use one of {', '.join(ENDINGS)}")
    stem = re.sub(r"\W+", "-", Path(str(data.meta.get("title") or "session")).stem).strip("-")[:60] or "session"
    # `train-20261122-143000.html`, `train-20261122-143000-csv`: a name that is free.
    name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}" + ("" if ENDINGS[format] else f"-{format}")
    folder = make_absolute(".")
    candidates = (folder / f"{name}{f'-{n}' if n else ''}{ENDINGS[format]}" for n in range(1000))
    path = next(path for path in candidates if not path.exists())
    if format == "cdiag":
        return data.write_copy(path)
    return write_report(data, path) if format == "html" else export_session(data, path, format)


#: What else a page can ask for: the type of its message -> what answers it. The magics add to it, because a view runs
#: no program.
ANSWERS: dict[str, Callable[[DashboardWidget, Mapping[str, Any]], dict[str, Any]]] = {}


# The live widget


def is_kernel() -> bool:
    """True in a kernel, whose outputs can be replaced; false in a terminal."""
    return getattr(find_shell(), "kernel", None) is not None


class NotebookOutput:
    """One output. `view` is the MIME bundle of the widget itself, without any text."""

    def __init__(self, view: dict[str, Any]):
        self._view = view
        self._handle: Any = None

    def show(self, texts: dict[str, str]) -> None:
        """Show the widget, or `texts` where widgets cannot be shown."""
        self._display({**self._view, **texts})

    def finish(self, record: dict[str, str]) -> None:
        """Show a record; it replaces the output that is there.

        The widget leaves the saved output, because a host would show its own error for it once the kernel is gone.
        The living page finds the record in the host's document and takes its place there (`static/record-pages.js`).
        In two hosts it cannot: Colab shows outputs in frames that only a widget view fills. VS Code loads widgets when
        it sees a view, and shows the other types by itself if the widget is gone.
        """
        is_vs_code = "__vsc_ipynb_file__" in getattr(find_shell(), "user_ns", {})
        self._display({**(self._view if is_vs_code or "google.colab" in sys.modules else {}), **record})

    def _display(self, bundle: dict[str, Any]) -> None:
        from IPython.display import display

        if not is_kernel():
            display({"text/plain": bundle["text/plain"]}, raw=True)
        elif self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


#: Bytes of base64 for the texts of artifacts in the state that a notebook stores; the longest are cut.
STORED_TEXTS = 1_000_000


class DashboardWidget(anywidget.AnyWidget):
    """Shows a view model and keeps it up to date while the session is recorded.

    `texts` makes what stands for the widget where no widget can be shown.
    """

    _esm = esm.join_modules("widget.js")
    _css = esm.join_styles()

    #: Everything so far. It is made anew whenever a page asks for the widget's state, so a reloaded page is complete.
    snapshot = traitlets.Any().tag(
        sync=True, to_json=lambda _, widget: dumps(widget.pump.make_snapshot(widget.text_budget))
    )
    #: The page that a view opens with.
    page = traitlets.Enum(("dashboard", "plan", "explorer"), default_value="dashboard").tag(sync=True)
    #: Event ids; the explorer opens at the guard behind the first that it knows.
    events = traitlets.List(traitlets.Int()).tag(sync=True)
    #: Class of the element that has this widget's record in a notebook; the live page is shown in its place.
    record = traitlets.Unicode().tag(sync=True)
    #: A search for a change that a page has started, see `PageSearch`; empty without one.
    search = traitlets.Dict().tag(sync=True)

    def __init__(self, model: ViewModel, texts: WidgetTexts, **traits: Any):
        self.model = model
        self.pump = Pump(model, self.send, self._finish)
        self.text_budget: int | None = None
        self._texts = texts
        self._outputs: list[NotebookOutput] = []
        self._finishing = threading.Lock()
        self._is_finished = False
        super().__init__(record=f"cdiag-record-{uuid.uuid4().hex[:12]}", **traits)
        self.on_msg(self._handle_message)
        if model.data.state == "watching":
            self.pump.start()
        if isinstance(model.data, RecordedData) and model.data.is_recorded_here:
            model.data.call_when_ended(self._finish)

    def close(self) -> None:
        self.pump.stop()
        super().close()

    def __repr__(self) -> str:
        return self._texts.make_text()

    def _ipython_display_(self) -> None:
        """Show the widget. In a notebook its record takes its place when the watch ends, or at once if it has ended."""
        bundle = super()._repr_mimebundle_()  # Empty where there is no comm.
        view: dict[str, Any] = dict(bundle[0]) if bundle else {}
        output = NotebookOutput({name: value for name, value in view.items() if name.startswith("application/")})
        if is_kernel():
            self._outputs.append(output)
        if self.model.data.state != "watching":
            output.finish(self._texts.make_record(self.record))
        elif is_kernel():
            output.show(PLACEHOLDER)
        else:
            output.show({"text/plain": repr(self)})

    def _finish(self) -> None:
        """At the end of the watch: replace what notebooks show, and send the final state to those that store it.

        The thread that stops the watch does this, because a program that executes notebooks reads the output when the
        cell ends. If another process records the session, the pump does it.
        """
        with self._finishing:
            if self._is_finished:
                return
            self._is_finished = True
            self.pump.finish(self._send_final_state)

    def _send_final_state(self) -> None:
        self._finish_outputs()
        self.text_budget = STORED_TEXTS
        try:
            self.send_state("snapshot")
        finally:
            self.text_budget = None

    def _finish_outputs(self) -> None:
        record = self._texts.make_record(self.record) if self._outputs else {}
        for output in self._outputs:
            output.finish(record)

    def show_outcome(self) -> None:
        """Show what was stored in the session since: on the page, and in records of a watch that has ended."""
        self.pump.handle_message({"type": "resync"})
        with self._finishing:
            if self.model.data.state != "watching":
                self._finish_outputs()

    def _handle_message(self, _widget: object, message: object, _buffers: object) -> None:
        action = message.get("type") if isinstance(message, dict) else None
        if isinstance(message, dict) and action == "export":
            self.send(answer_export(self.model.data, message))
        elif isinstance(message, dict) and action in ANSWERS:
            self.send(_answer(message, lambda: ANSWERS[action](self, message)))
        else:
            self.pump.handle_message(message)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is not None:
            bundle[0]["text/plain"] = repr(self)
        return bundle


def make_dashboard(data: SessionData) -> DashboardWidget:
    """The live widget of a session."""
    return DashboardWidget(ViewModel(data), make_dashboard_texts(data))


def make_plan_card(data: SessionData) -> DashboardWidget:
    """The widget that shows the plan alone."""

    def make_last() -> tuple[str, Block]:
        with data.settled():
            plan = make_plan(data)
        return str(plan), shorten(describe_plan(plan, with_code=True), MAX_ITEMS, MAX_CHARS)

    texts = WidgetTexts(lambda: str(make_plan(data)), make_last)
    return DashboardWidget(ViewModel(data), texts, page="plan")


def make_explorer(data: SessionData, finding: Finding | None = None) -> DashboardWidget:
    """The widget, opened at the guard behind `finding` if one is given."""

    def make_last() -> tuple[str, Block]:
        text = format_explorer(data)
        return text, CodeBlock(text)

    events = [] if finding is None else list(finding.evidence)
    texts = WidgetTexts(lambda: format_explorer(data), make_last)
    return DashboardWidget(ViewModel(data), texts, page="explorer", events=events)
