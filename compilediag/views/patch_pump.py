"""Sends a live widget what is new, up to twenty times a second, from a thread of its own.

Nothing is sent per event: the server drops what is beyond 1,000 messages a second. To leave the CPU to the
compiler, it sends less often after a while of constant news, but at least every `LONGEST_S`.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from .. import clock
from ..interrupts import ignore, pass_on
from . import page_json
from .model import ViewModel
from .page_types import PagePatch, PageRow, StoredText
from .patch_deltas import PatchDeltas

#: Seconds between two looks at the session: while nothing happens, and while something does.
QUIET_S, BUSY_S = 0.1, 0.05
MIN_PAUSE_S = 0.02
#: Share of a core that the thread may take, and the CPU seconds that it can save up for a burst of news.
SHARE, MOST_SAVED_S = 0.008, 0.05
#: The longest pause between two looks.
LONGEST_S = 0.2
#: The page reports "no news from the kernel" after a silence, so an "alive" message is sent this often.
ALIVE_S = 2.0
#: Characters of JSON in one message.
MESSAGE_SIZE = 1_500_000
#: The parts of a patch that describe its rows.
SENT_LAST = ("meta", "totals", "findings", "plan", "now")
#: After so many errors in a row the pump stops.
MAX_ERRORS = 5
#: How long the exit of the interpreter waits for the thread of a pump.
EXIT_WAIT_S = 1.0


class CpuPace:
    """Computes the pauses that limit the thread which creates it to `SHARE` of a core."""

    def __init__(self) -> None:
        self._saved_s = MOST_SAVED_S
        self._at, self._cpu_at = time.monotonic(), time.thread_time()

    def pause_s(self) -> float:
        """The pause after the work since the last call; 0 while there is CPU time left."""
        now, cpu = time.monotonic(), time.thread_time()
        earned_s, spent_s = SHARE * (now - self._at), cpu - self._cpu_at
        self._at, self._cpu_at = now, cpu
        # A long step lengthens later pauses by no more than a burst would.
        self._saved_s = max(-MOST_SAVED_S, min(MOST_SAVED_S, self._saved_s + earned_s - spent_s))
        return min(LONGEST_S, max(0.0, -self._saved_s / SHARE))


class Pump:
    """Takes patches from a model and passes them to `send` (one JSON-able dict a call) until the recording ends.

    Then `on_end` is called, in the pump's thread.
    """

    def __init__(
        self, model: ViewModel, send: Callable[[dict[str, Any]], None], on_end: Callable[[], None] = lambda: None
    ):
        self._model = model
        self._send = send
        self._on_end = on_end
        self._lock = threading.RLock()  # a patch is made and sent under the lock, so patches arrive in order
        self._deltas = PatchDeltas()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compilediag-dashboard", daemon=True)
        self._errors = 0
        self._last_sent = 0.0

    def start(self) -> None:
        _started.add(self)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def end_thread(self) -> None:
        """Stop, and wait a moment for what the thread is sending."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join(EXIT_WAIT_S)

    def send_rest_at_exit(self) -> None:
        """Send what is new if the interpreter ends, which has ended the thread; wait until the kernel has sent it."""
        if _is_exiting.is_set():
            self._advance()
            _flush_kernel()

    def handle_message(self, message: Any) -> None:
        """Send everything again to a page that missed a patch, or that is behind (`seq` is its last patch). An error
        is shown in the widget; the page asks again.
        """
        if not isinstance(message, dict) or message.get("type") != "resync":
            return
        try:
            with self._lock:
                if message.get("seq") != self._model.seq:
                    self._send_patch(self.make_snapshot())
        except Exception as error:
            pass_on(error)
            self._send_error(error)

    def make_snapshot(self, text_budget: int | None = None) -> PagePatch:
        """Everything so far. Its parts can be newer than those that were sent, so the next ones are sent whole."""
        with self._lock:
            snapshot = self._model.snapshot(text_budget)
            self._deltas.forget()
            return snapshot

    def _run(self) -> None:
        """Step at an even pace. Beside a busy compiler a step is slow, because it waits for the interpreter."""
        pace = CpuPace()
        while not self._ended.is_set():
            began = time.monotonic()
            self._step()
            next_s = BUSY_S if self._last_sent >= began else QUIET_S
            self._ended.wait(max(MIN_PAUSE_S, began + next_s - time.monotonic(), pace.pause_s()))

    def _step(self) -> None:
        """Send what is new. An error is shown in the widget; it never fails the user's cell."""
        try:
            if self._advance() != "watching":
                self.stop()
                self._on_end()
            self._errors = 0
        except Exception as error:
            pass_on(error)
            self._errors += 1
            if self._errors == MAX_ERRORS:
                self.stop()
            self._send_error(error)

    def _advance(self) -> str:
        """Send what is new; return the session's state from before, so that nothing is sent after "stopped"."""
        state = self._model.data.state
        with self._lock:
            patch = self._model.patch()
            if patch is not None:
                self._send_patch(self._deltas.shorten(patch))
            elif time.monotonic() - self._last_sent > ALIVE_S:
                self._send_message({"type": "alive"})
        return state

    def _send_error(self, error: Exception) -> None:
        rest = "; the display stops here, the recording continues" if self._ended.is_set() else ""
        try:
            self._send_message(
                {"type": "error", "text": f"compilediag's dashboard: {type(error).__name__}: {error}{rest}"}
            )
        except Exception as worse:
            pass_on(worse)
            # The channel is closed as well (the kernel shuts down): nobody can receive the error.
            self.stop()

    def _send_patch(self, patch: PagePatch) -> None:
        for part in split_patch(patch, MESSAGE_SIZE):
            self._send_message({"type": "patch", "patch": part})

    def _send_message(self, message: dict[str, Any]) -> None:
        self._last_sent = time.monotonic()
        self._send({**message, "sent_ms": clock.now_ns() / 1e6})


def split_patch(patch: PagePatch, size: int) -> Iterator[str]:
    """Split a patch into JSON texts of about `size` characters: rows in slices, then artifact texts, then totals.

    All parts have the patch's `seq`; `part` counts them from 0. Totals and state come last, so that a page never
    shows "stopped", or a total, before it has the rows.
    """
    whole = page_json.dumps(patch)
    if len(whole) <= size:
        yield whole
        return
    first = {key: value for key, value in patch.items() if key not in ("rows", "texts", *SENT_LAST)}
    last = {key: value for key, value in patch.items() if key in SENT_LAST}
    slices = [first, *_slice_rows(patch.get("rows", {}), size), *_slice_texts(patch.get("texts", {}), size), last]
    for number, piece in enumerate(slices):
        yield page_json.dumps({"seq": patch["seq"], "reset": False, **piece, "part": number})


def _slice_rows(rows: dict[str, list[PageRow]], size: int) -> Iterator[dict[str, Any]]:
    for table, all_rows in rows.items():
        count = 1 + len(page_json.dumps(all_rows)) // size
        step = -(-len(all_rows) // count)
        for begin in range(0, len(all_rows), step):
            yield {"rows": {table: all_rows[begin : begin + step]}}


def _slice_texts(texts: dict[str, StoredText], size: int) -> Iterator[dict[str, Any]]:
    batch: dict[str, StoredText] = {}
    free = size
    for event_id, text in texts.items():
        length = len(text.get("z", ""))
        if batch and length > free:
            yield {"texts": batch}
            batch, free = {}, size
        batch[event_id] = text
        free -= length
    if batch:
        yield {"texts": batch}


_started: weakref.WeakSet[Pump] = weakref.WeakSet()
_is_exiting = threading.Event()


@atexit.register
def _end_threads() -> None:
    """Runs before the watches end, and so before pyzmq's own exit function (see `active_recording`). Of a large message
    after that one only the first parts arrive, and JupyterLab reports an invalid message.
    """
    _is_exiting.set()
    for pump in list(_started):
        pump.end_thread()


def _flush_kernel() -> None:
    """Wait until a kernel has sent all messages so far: its standard output is in line behind them."""
    if sys.stdout is not None:
        with ignore(OSError, ValueError):
            sys.stdout.flush()
