"""Patches on their way to a live page: only what is new, at a pace that leaves the CPU to the compiler.

Of a part that the page has already, a *delta* is sent, which makes the new value from the old one. It is one of
- `{"=": value}`: the new value itself;
- `{"t": [kept, rest]}` for a text: the number of characters that stay, and what follows them;
- `{"k": {key: delta}, "x": [keys that are gone]}` for an object;
- `{"l": [...]}` for a list, whose items are `[start, count]` for old items that stay, `[index, delta]` for one that
  changed, and `{"=": [items]}` for new ones.
`static/core/deltas.js` applies it.

A thread of its own sends up to twenty times a second. Nothing is sent per event: the server drops what is beyond 1,000
messages a second. After a while of constant news it sends less often, but at least every `LONGEST_S`.
"""

from __future__ import annotations

import atexit
import queue
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

from ..system import clock
from ..system.interrupts import ignore, pass_on
from .model import ViewModel, dumps
from .page_types import Delta, PagePatch, PageRow, StoredText

#: The parts that grow with a session. All others are small, or are rows, each of which is sent once.
GROWING = ("findings", "plan", "examples", "torch_docs", "ranks", "vllm", "panels")
#: The table whose rows are [id, document]; the document of a function has all that happened to it.
DOCUMENTS = "functions"
#: Characters at the beginning of a text that are worth to be left out.
LEAST_KEPT = 100


class PatchDeltas:
    """Replaces the growing parts of patches by deltas. It remembers what was sent."""

    def __init__(self) -> None:
        #: Name of a part, or id of a document -> what was sent last.
        self._sent: dict[str | int, Any] = {}

    def forget(self) -> None:
        """Send all parts whole again: a page has got them in another way."""
        self._sent.clear()

    def shorten(self, patch: PagePatch) -> PagePatch:
        """The patch with deltas, in `changes` and `documents`, instead of what the pages have already."""
        shortened = dict(patch)
        changes: dict[str, Delta] = {}
        for name in GROWING:
            if name in patch and (delta := self._replace(name, shortened[name])) is not None:
                changes[name] = delta
                del shortened[name]
        whole: list[PageRow] = []
        documents: list[tuple[int, Delta]] = []
        for number, document in patch.get("rows", {}).get(DOCUMENTS, []):
            if (delta := self._replace(number, document)) is not None:
                documents.append((number, delta))
            else:
                whole.append([number, document])
        if documents:
            rows = {**patch["rows"], DOCUMENTS: whole}
            shortened["rows"] = {name: rows[name] for name in rows if rows[name]}
            shortened["documents"] = documents
        if changes:
            shortened["changes"] = changes
        return cast(PagePatch, shortened)

    def _replace(self, key: str | int, value: Any) -> Delta | None:
        """The delta from what was sent last; None if there was nothing, or the whole value is as short."""
        delta = find_delta(self._sent[key], value) if key in self._sent else None
        self._sent[key] = value
        return delta


def find_delta(old: Any, new: Any) -> Delta | None:
    """The delta from `old` to `new`; None if that is no shorter than `new`."""
    delta = _make_delta(old, new)
    return delta if len(dumps(delta)) < len(dumps(new)) else None


def _make_delta(old: Any, new: Any) -> Delta:
    if isinstance(old, dict) and isinstance(new, dict):
        changed = [(key, value) for key, value in new.items() if old.get(key, old) != value]
        keys: dict[str, Delta] = {k: _make_delta(old[k], v) if k in old else {"=": v} for k, v in changed}
        gone = [key for key in old if key not in new]
        return {"k": keys, "x": gone} if gone else {"k": keys}
    if isinstance(old, (list, tuple)) and isinstance(new, (list, tuple)):
        return {"l": _list_steps(old, new)}
    if isinstance(old, str) and isinstance(new, str):
        differing = (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
        kept = next(differing, min(len(old), len(new)))
        # JavaScript counts characters in another way.
        if kept >= LEAST_KEPT and old[:kept].isascii():
            return {"t": (kept, new[kept:])}
    return {"=": new}


def _list_steps(old: list[Any] | tuple[Any, ...], new: list[Any] | tuple[Any, ...]) -> list[Any]:
    """The steps that make one list from another. An item that stays is found wherever it was."""
    texts, wanted = [dumps(item) for item in old], [dumps(item) for item in new]
    places, stays = {text: at for at, text in enumerate(texts)}, set(wanted)
    steps: list[Any] = []
    at = 0
    for item, text in zip(new, wanted, strict=True):
        if at < len(old) and texts[at] == text:
            _copy(steps, at)
        elif text in places:
            at = places[text]
            _copy(steps, at)
        elif at < len(old) and texts[at] not in stays:
            delta = _make_delta(old[at], item)
            if "=" in delta or len(dumps(delta)) >= len(text):
                _add_new(steps, item)
            else:
                steps.append([at, delta])
        else:
            _add_new(steps, item)
            continue
        at += 1
    return steps


def _copy(steps: list[Any], at: int) -> None:
    last = steps[-1] if steps else None
    if isinstance(last, list) and isinstance(last[1], int) and last[0] + last[1] == at:
        last[1] += 1
    else:
        steps.append([at, 1])


def _add_new(steps: list[Any], item: Any) -> None:
    if steps and isinstance(steps[-1], dict):
        steps[-1]["="].append(item)
    else:
        steps.append({"=": [item]})


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
#: The parts of a patch that describe its rows: each of the first comes by itself, the others come together at the end.
ADVICE, STATE = ("findings", "plan"), ("meta", "totals", "now")
#: After so many errors in a row the pump stops.
MAX_ERRORS = 5
#: How long the exit of the interpreter waits at most for the thread of a pump, which sends a last message: on a busy
#: machine that takes seconds, and a thread that still sends when the kernel sends by itself mixes their messages.
EXIT_WAIT_S = 10.0


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
        self._is_idle = threading.Event()  # The thread sends nothing any more, unless it is given last work.
        self._last_work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="compilediag-dashboard", daemon=True)
        self._errors = 0
        self._last_sent = 0.0

    def start(self) -> None:
        _started.add(self)
        # Exit functions run in reverse order, and the first watch can have begun after this module was imported.
        atexit.unregister(_end_threads)
        atexit.register(_end_threads)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()

    def stop_at_exit(self) -> None:
        """Stop, and wait a moment for what the thread is sending."""
        self.stop()
        if self._thread.is_alive():
            self._is_idle.wait(EXIT_WAIT_S)

    def finish(self, work: Callable[[], None]) -> None:
        """Do the last work on the page. If the interpreter ends, the thread does it, and sends what is new; this waits
        until the kernel has sent it.

        To ipykernel the main thread is dead by then: it closes the pipe by which this thread sends, every ten seconds.
        """
        if _is_exiting.is_set() and self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._last_work.put(work)
            self._thread.join(EXIT_WAIT_S)
        else:
            work()

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
        self._is_idle.set()
        if not _is_exiting.is_set():
            return
        try:
            self._last_work.get(timeout=EXIT_WAIT_S)()
            self._advance()
            # The standard output of a kernel is in line behind all messages so far: once it is flushed, they are sent.
            if sys.stdout is not None:
                with ignore(OSError, ValueError):
                    sys.stdout.flush()
        except queue.Empty:
            return  # Another process records, or the watch does not end.
        except Exception as error:
            pass_on(error)
            self._send_error(error)

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
    """Split a patch into JSON texts of about `size` characters: rows in slices, texts of artifacts, advice, totals.

    All parts have the patch's `seq`; `part` counts them from 0. Totals and state come last, so that a page never
    shows "stopped", or a total, before it has the rows.
    """
    whole = dumps(patch)
    if len(whole) <= size:
        yield whole
        return
    first = {key: value for key, value in patch.items() if key not in ("rows", "texts", *ADVICE, *STATE)}
    advice = [{key: value} for key, value in patch.items() if key in ADVICE]
    last = {key: value for key, value in patch.items() if key in STATE}
    slices: list[dict[str, Any]] = [first]
    for table, rows in patch.get("rows", {}).items():
        count = 1 + len(dumps(rows)) // size
        step = -(-len(rows) // count)
        slices += [{"rows": {table: rows[begin : begin + step]}} for begin in range(0, len(rows), step)]
    slices += [*_slice_texts(patch.get("texts", {}), size), *advice, last]
    for number, piece in enumerate(slices):
        yield dumps({"seq": patch["seq"], "reset": False, **piece, "part": number})


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


def _end_threads() -> None:
    """Runs before the watches end, and so before pyzmq's own exit function (see `active_recording`). Of a large message
    after that one only the first parts arrive, and JupyterLab reports an invalid message.
    """
    _is_exiting.set()
    for pump in list(_started):
        pump.stop_at_exit()
