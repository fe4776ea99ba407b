"""The live widget: a thread that sends what is new to the browser, ten to twenty times a second.

All interaction is in the browser, so that it works while the kernel is busy. Nothing is sent per event:
the server drops what is beyond 1,000 messages a second.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import CompilediagError
from . import esm, page_json
from .model import ViewModel

if TYPE_CHECKING:
    import anywidget

    from ..session import Session

#: Between two looks at the session: while nothing happens, and while something does.
QUIET_S, BUSY_S = 0.1, 0.05
MIN_PAUSE_S = 0.02
#: The page says "no news from the kernel" if it hears nothing: with nothing new, a sign of life this often.
ALIVE_S = 2.0
#: Characters of JSON in one message.
MESSAGE_SIZE = 1_500_000
#: The parts of a patch that are about its rows.
SAID_LAST = ("meta", "totals", "findings", "now")
#: After so many errors in a row the pump gives up.
MAX_ERRORS = 5


def make_dashboard(session: Session) -> anywidget.AnyWidget:
    """The live widget of a session; CompilediagError if anywidget is not installed."""
    return widget_class()(ViewModel(session))


@functools.cache
def widget_class() -> type[anywidget.AnyWidget]:
    """Made when first needed: recording runs where anywidget is not installed."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise CompilediagError("the dashboard needs anywidget: pip install anywidget") from None

    class Dashboard(anywidget.AnyWidget):
        _esm = esm.join_modules("widget.js")
        _css = esm.join_styles()
        #: Serialised whenever a page asks for the widget's state: so a reloaded page has everything again.
        snapshot = traitlets.Any().tag(sync=True, to_json=lambda _, widget: page_json.dumps(widget.model.snapshot()))

        #: What a page opens at: "dashboard" or "explorer", and there what explains these events.
        page = traitlets.Unicode("dashboard").tag(sync=True)
        events = traitlets.List().tag(sync=True)

        def __init__(self, model: ViewModel, text: Callable[[Session], str] | None = None, **traits: Any):
            self.model = model
            self.pump = Pump(model, self.send)
            self._text = text or type(model.session).summary
            super().__init__(**traits)
            self.on_msg(lambda _, message, buffers: self.pump.answer(message))
            if model.session.state == "watching":
                self.pump.start()

        def close(self) -> None:
            self.pump.stop()
            super().close()

        def _repr_mimebundle_(self, **options: Any) -> Any:
            bundle = super()._repr_mimebundle_(**options)
            if bundle is not None:
                bundle[0]["text/plain"] = self._text(self.model.session)
            return bundle

    return Dashboard


class Pump:
    """Takes patches from a model and hands them to `send` (one JSON-able dict a call) until the recording ends."""

    def __init__(self, model: ViewModel, send: Callable[[dict[str, Any]], None]):
        self._model = model
        self._send = send
        self._lock = threading.Lock()  # a patch is made and sent in one go: their order is their numbers'
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compilediag-dashboard", daemon=True)
        self._errors = 0
        self._spoke = 0.0

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def answer(self, message: Any) -> None:
        """A page that missed something asks for everything."""
        if isinstance(message, dict) and message.get("type") == "resync":
            with self._lock:
                self._send_patch(self._model.snapshot())

    def _run(self) -> None:
        """Steps at an even pace: beside a busy compiler one takes long, as it often waits for the interpreter."""
        while not self._ended.is_set():
            began = time.monotonic()
            self._step()
            pace = BUSY_S if self._spoke >= began else QUIET_S
            self._ended.wait(max(MIN_PAUSE_S, began + pace - time.monotonic()))

    def _step(self) -> None:
        """An error here is told in the widget; it is never the user's cell that fails."""
        try:
            if self._advance() != "watching":
                self.stop()
            self._errors = 0
        except Exception as error:
            self._errors += 1
            if self._errors == MAX_ERRORS:
                self.stop()
            self._report(error)

    def _advance(self) -> str:
        """Send what is new; gives the session's state from before, so that nothing comes after "stopped"."""
        state = self._model.session.state
        with self._lock:
            patch = self._model.patch()
            if patch is not None:
                self._send_patch(patch)
            elif time.monotonic() - self._spoke > ALIVE_S:
                self._say({"type": "alive"})
        return state

    def _report(self, error: Exception) -> None:
        rest = "; the display stops here, the recording goes on" if self._ended.is_set() else ""
        try:
            self._say({"type": "error", "text": f"compilediag's dashboard: {type(error).__name__}: {error}{rest}"})
        except Exception:
            # Even the channel is gone (the kernel shuts down): there is nobody left to tell.
            self.stop()

    def _send_patch(self, patch: dict[str, Any]) -> None:
        for part in split(patch, MESSAGE_SIZE):
            self._say({"type": "patch", "patch": part})

    def _say(self, message: dict[str, Any]) -> None:
        self._spoke = time.monotonic()
        self._send({**message, "sent_ms": time.time() * 1e3})


def split(patch: dict[str, Any], size: int) -> Iterator[str]:
    """A patch as one or more JSON texts of about `size` characters: rows in slices, texts of artifacts last.

    They share the patch's number; `part` counts them from 0. What is said of the rows as a whole comes last: no
    page reads "stopped", or a total, before it has the rows.
    """
    whole = page_json.dumps(patch)
    if len(whole) <= size:
        yield whole
        return
    first = {key: value for key, value in patch.items() if key not in ("rows", "texts", *SAID_LAST)}
    last = {key: patch[key] for key in SAID_LAST if key in patch}
    slices = [first, *_row_slices(patch.get("rows", {}), size), *_text_slices(patch.get("texts", {}), size), last]
    for number, piece in enumerate(slices):
        yield page_json.dumps({"seq": patch["seq"], "reset": False, **piece, "part": number})


def _row_slices(rows: dict[str, list[Any]], size: int) -> Iterator[dict[str, Any]]:
    for table, all_rows in rows.items():
        count = 1 + len(page_json.dumps(all_rows)) // size
        step = -(-len(all_rows) // count)
        for begin in range(0, len(all_rows), step):
            yield {"rows": {table: all_rows[begin : begin + step]}}


def _text_slices(texts: dict[str, dict[str, Any]], size: int) -> Iterator[dict[str, Any]]:
    batch: dict[str, dict[str, Any]] = {}
    room = size
    for event_id, text in texts.items():
        length = len(text.get("z", ""))
        if batch and length > room:
            yield {"texts": batch}
            batch, room = {}, size
        batch[event_id] = text
        room -= length
    if batch:
        yield {"texts": batch}
