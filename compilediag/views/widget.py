"""The live widget. This module is imported when a widget is made, because recording must run without anywidget.

Searching, filtering and sorting happen in the browser, so they work while the kernel is busy. The traits that the
browser reads are documented at the top of `static/widget.js`.

What a notebook shows and saves for the widget is in `notebook_output.py`.
"""

from __future__ import annotations

import threading
import uuid
from typing import Any

import anywidget
import traitlets

from . import esm, page_json
from .model import ViewModel
from .notebook_output import NotebookOutput, is_kernel
from .page_exports import answer_export
from .patch_pump import Pump
from .record import WidgetTexts

#: Bytes of base64 for the texts of artifacts in the state that a notebook stores; the longest are cut.
STORED_TEXTS = 1_000_000


def _serialize_snapshot(_value: object, widget: DashboardWidget) -> str:
    return page_json.dumps(widget.pump.make_snapshot(widget.text_budget))


class DashboardWidget(anywidget.AnyWidget):
    """Shows a view model and keeps it up to date while the session is recorded.

    `texts` makes what stands for the widget where no widget can be shown.
    """

    _esm = esm.join_modules("widget.js")
    _css = esm.join_styles()

    #: Everything so far. It is made anew whenever a page asks for the widget's state, so a reloaded page is complete.
    snapshot = traitlets.Any().tag(sync=True, to_json=_serialize_snapshot)
    #: The page that a view opens with.
    page = traitlets.Enum(("dashboard", "explorer"), default_value="dashboard").tag(sync=True)
    #: Event ids; the explorer opens at the guard behind the first that it knows.
    events = traitlets.List(traitlets.Int()).tag(sync=True)
    #: Class of the element that has this widget's record in a notebook; the live page is shown in its place.
    record = traitlets.Unicode().tag(sync=True)

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
        if model.data.is_recorded_here:
            model.data.call_when_ended(self._finish)

    def close(self) -> None:
        self.pump.stop()
        super().close()

    def __repr__(self) -> str:
        return self._texts.make_text()

    def _ipython_display_(self) -> None:
        """Show the widget. In a notebook its record takes its place when the watch ends, or at once if it has ended."""
        output = NotebookOutput(self._make_view())
        if self.model.data.state != "watching":
            output.finish(self._texts.make_record(self.record))
        elif is_kernel():
            self._outputs.append(output)
            output.show(self._texts.make_placeholder())
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
            self._replace_outputs()
            self.text_budget = STORED_TEXTS
            try:
                self.send_state("snapshot")
            finally:
                self.text_budget = None
            self.pump.send_rest_at_exit()

    def _replace_outputs(self) -> None:
        if self._outputs:
            record = self._texts.make_record(self.record)
            for output in self._outputs:
                output.finish(record)

    def _handle_message(self, _widget: object, message: object, _buffers: object) -> None:
        if isinstance(message, dict) and message.get("type") == "export":
            self.send(answer_export(self.model.data, message))
        else:
            self.pump.handle_message(message)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is not None:
            bundle[0]["text/plain"] = repr(self)
        return bundle
