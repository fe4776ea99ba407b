"""The live widget. This module is imported when a widget is made, because recording must run without anywidget.

Searching, filtering and sorting happen in the browser, so they work while the kernel is busy. The traits that the
browser reads are documented at the top of `static/widget.js`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anywidget
import traitlets

from . import esm, page_json
from .model import ViewModel
from .patch_pump import Pump


def _serialize_snapshot(_value: object, widget: DashboardWidget) -> str:
    return page_json.dumps(widget.model.snapshot())


class DashboardWidget(anywidget.AnyWidget):
    """Shows a view model and keeps it up to date while the session is recorded.

    `make_text` returns the plain text that stands for the widget where no widget can be shown.
    """

    _esm = esm.join_modules("widget.js")
    _css = esm.join_styles()

    #: Everything so far. It is made anew whenever a page asks for the widget's state, so a reloaded page is complete.
    snapshot = traitlets.Any().tag(sync=True, to_json=_serialize_snapshot)
    #: The page that a view opens with.
    page = traitlets.Enum(("dashboard", "explorer"), default_value="dashboard").tag(sync=True)
    #: Event ids; the explorer opens at the guard behind the first that it knows.
    events = traitlets.List(traitlets.Int()).tag(sync=True)

    def __init__(self, model: ViewModel, make_text: Callable[[], str], **traits: Any):
        self.model = model
        self.pump = Pump(model, self.send)
        self._make_text = make_text
        super().__init__(**traits)
        self.on_msg(self._handle_message)
        if model.data.state == "watching":
            self.pump.start()

    def close(self) -> None:
        self.pump.stop()
        super().close()

    def _handle_message(self, _widget: object, message: object, _buffers: object) -> None:
        self.pump.handle_message(message)

    def _repr_mimebundle_(self, **options: Any) -> Any:
        bundle = super()._repr_mimebundle_(**options)
        if bundle is not None:
            bundle[0]["text/plain"] = self._make_text()
        return bundle
