"""The live widget: the dashboard of a session, and the explorer, its other page on the same model. This module is
imported when a widget is made, because recording must run without anywidget.

Searching, filtering and sorting happen in the browser, so they work while the kernel is busy. The traits that the
browser reads are documented at the top of `static/widget.js`.

The output of a widget in a notebook is first the live widget, then, once the watch has ended, its record (`record.py`).
"""

from __future__ import annotations

import re
import sys
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..diagnosis import Finding
from ..errors import CompilediagError
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
from .record import PLACEHOLDER, WidgetTexts, make_dashboard_texts, make_plain_texts, make_plan_texts
from .report import write_report

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as error:
    if error.name not in ("anywidget", "traitlets"):
        raise
    raise CompilediagError("the dashboard needs anywidget: pip install anywidget") from None


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
    path = _choose_path(str(data.meta.get("title") or "session"), format)
    if format == "cdiag":
        return data.write_copy(path)
    return write_report(data, path) if format == "html" else export_session(data, path, format)


def _choose_path(title: str, format: str) -> Path:
    """A name that is free: `train-20261122-143000.html`, `train-20261122-143000-csv`."""
    stem = re.sub(r"\W+", "-", Path(title).stem).strip("-")[:60] or "session"
    name = f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}" + ("" if ENDINGS[format] else f"-{format}")
    folder = make_absolute(".")
    candidates = (folder / f"{name}{f'-{n}' if n else ''}{ENDINGS[format]}" for n in range(1000))
    return next(path for path in candidates if not path.exists())


#: What else a page can ask for: the type of its message -> what answers it. The magics add to it, because a view runs
#: no program.
ANSWERS: dict[str, Callable[[DashboardWidget, Mapping[str, Any]], dict[str, Any]]] = {}

#: Hosts show this type before any other, and an error if the widget is gone.
_VIEW = "application/vnd.jupyter.widget-view+json"


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
        """
        self._display({**(self._view if _needs_view() else {}), **record})

    def _display(self, bundle: dict[str, Any]) -> None:
        from IPython.display import display

        if not is_kernel():
            display({"text/plain": bundle["text/plain"]}, raw=True)
        elif self._handle is None:
            self._handle = display(bundle, raw=True, display_id=True)
        else:
            self._handle.update(bundle, raw=True)


def _needs_view() -> bool:
    """True for hosts where the page cannot take the record's place.

    Colab shows outputs in frames that only a widget view fills. VS Code loads widgets when it sees a view, and shows
    the other types by itself if the widget is gone.
    """
    names = getattr(find_shell(), "user_ns", {})
    return "google.colab" in sys.modules or "__vsc_ipynb_file__" in names


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
        output = NotebookOutput(self._make_view())
        if is_kernel():
            self._outputs.append(output)
        if self.model.data.state != "watching":
            output.finish(self._texts.make_record(self.record))
        elif is_kernel():
            output.show(PLACEHOLDER)
        else:
            output.show({"text/plain": repr(self)})

    def _make_view(self) -> dict[str, Any]:
        """The MIME bundle of the widget itself, without a text. Empty where there is no comm."""
        bundle = super()._repr_mimebundle_()
        data: dict[str, Any] = dict(bundle[0]) if bundle else {}
        return {name: value for name, value in data.items() if name.startswith("application/")}

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
    return DashboardWidget(ViewModel(data), make_plan_texts(data), page="plan")


def make_explorer(data: SessionData, finding: Finding | None = None) -> DashboardWidget:
    """The widget, opened at the guard behind `finding` if one is given."""
    events = [] if finding is None else list(finding.evidence)
    texts = make_plain_texts(lambda: format_explorer(data))
    return DashboardWidget(ViewModel(data), texts, page="explorer", events=events)
