"""The recorder: hooks append to a deque, and one thread writes batches to the session's file.

A hook hands over a function and its arguments, not an event: whatever can wait is computed in the writer's thread. An
event is in the file `INTERVAL_S` after it was handed over at the latest; a killed process loses no more than that.
After a fork the child continues in the same file, with a connection and a thread of its own.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from .events import Artifact, Event, SourceStatus
from .notebook_cells import CellNames
from .storage.rows import Owner
from .storage.store import Store
from .storage.texts import clean, digest_of

logger = logging.getLogger("compilediag")

INTERVAL_S = 0.25
STATUS_INTERVAL_S = 1.0
#: At most so many hand-overs wait for the writer; more are dropped and counted.
MAX_WAITING = 200_000

#: What a source's function returns: events, and artifacts with their text.
Made = Iterable["Event | tuple[Artifact, str]"]


class Feed(Protocol):
    """A source, as the recorder sees it."""

    events: int
    dropped: int

    @property
    def name(self) -> str: ...
    def note_error(self, error: BaseException) -> None: ...
    def status(self) -> SourceStatus: ...


class Counter(Protocol):
    """Counts in the user's program, and hands over its counts at every `tick`."""

    def tick(self, final: bool = False) -> None: ...
    def reset_after_fork(self) -> None: ...
    def note_error(self, error: BaseException) -> None: ...


class Running(Protocol):
    """The compile that runs in one thread."""

    def state(self) -> dict[str, Any]: ...


class Recorder:
    """Takes events from any thread and writes them from one, from `begin` to `close`.

    `path` must not exist; if `meta` is None, it is the file of another process's recording, which this one joins. Texts
    beyond `max_payload_mb` are dropped and counted. `rank` returns the rank in a distributed job, or None.
    """

    def __init__(
        self,
        path: Path,
        meta: dict[str, Any] | None,
        max_payload_mb: float = 256,
        rank: Callable[[], int | None] = lambda: None,
    ):
        self.path = path
        self.feeds: list[Feed] = []
        self.progress: dict[int, Running] = {}
        #: compile id -> what is known in addition to torch's metrics: function, file, line, backend, attempt.
        self.frames: dict[str, dict[str, Any]] = {}
        #: They hand over their counts before every batch.
        self.counters: list[Counter] = []
        #: What is known of the session when it ends, for its meta.
        self.facts: dict[str, Any] = {}
        #: Objects that several sources share, by name.
        self.shared: dict[str, Any] = {}
        self.cpu_ns = 0
        self._meta = meta
        self._owner = meta is not None
        self._store: Store | None = None
        self._thread: threading.Thread | None = None
        self._payload_left = int(max_payload_mb * 2**20)
        self._digests: set[str] = set()
        self._cells = CellNames()
        self._waiting: deque[tuple[Feed, Callable[..., Made], tuple[Any, ...]]] = deque()
        self._lock = threading.RLock()
        self._ask_rank = rank
        self._rank: int | None = None
        self._has_no_rank_yet = False
        self._shown_progress: dict[int, dict[str, Any]] = {}
        self._shown_status: dict[str | None, SourceStatus] = {}
        self._status_due = 0.0
        self._asleep = False
        self._is_ended = False
        self._stop = threading.Event()

    def begin(self) -> Recorder:
        """Open the file and start to write. Whatever ends this early, `close` cleans up."""
        if self._meta is None:
            self._store = Store.open(self.path, writable=True)
        else:
            self._store = Store.create(self.path, self._meta)
        self._begin_thread()
        return self

    @property
    def is_open(self) -> bool:
        return self._store is not None

    def _begin_thread(self) -> None:
        self._asleep = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="compilediag-writer", daemon=True)
        self._thread.start()

    def put(self, feed: Feed, make: Callable[..., Made], *args: Any) -> None:
        """Hand over what will be `make(*args)`. Called from hooks: appends and returns."""
        if len(self._waiting) >= MAX_WAITING:
            feed.dropped += 1
            return
        self._waiting.append((feed, make, args))
        if self._asleep:
            self._wake_in_child()

    def release(self, counter: Counter) -> None:
        """Ask `counter` for the last time. Under the lock: the writer may be asking it now."""
        with self._lock:
            if counter in self.counters:
                self.counters.remove(counter)
            counter.tick(final=True)

    def flush(self, statuses: bool = False) -> None:
        """Everything that was handed over so far is in the file when this returns. `statuses`: also what the sources
        have counted since their last status, which is written once a second.
        """
        with self._lock:
            self._write_batch(final=statuses)

    def close(self) -> None:
        """Write what is left, end the thread and the connection. Called again after an interrupt, it goes on."""
        self._end_thread()
        with self._lock:
            self.progress.clear()
            if self._store is not None:
                self._end_file(self._store)
                self._store.close()
                self._store = None

    def _end_file(self, store: Store) -> None:
        if self._is_ended:
            return
        self._write_batch(final=True)
        if self._owner:
            store.set_meta(**self.facts, stopped_ns=time.time_ns())
        self._is_ended = True

    def _end_thread(self) -> None:
        self._stop.set()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        if not thread.is_alive():
            _finish_start(thread)
        thread.join(timeout=10)

    def _run(self) -> None:
        stop = self._stop
        while not stop.wait(INTERVAL_S):
            with self._lock:
                if self._store is None or stop is not self._stop:
                    return
                self._write_batch(final=False)

    def _write_batch(self, final: bool) -> None:
        """One transaction. A file that can't be written now (a full disk) costs this batch, never the host."""
        store = self._store
        if store is None:
            return
        begin = time.thread_time_ns()
        self._note_rank(store)
        self._ask_counters()
        events, payloads = self._take()
        events += self._changed_statuses(final)
        states = {thread: self._state(running) for thread, running in list(self.progress.items())}
        progress = (os.getpid(), states) if states != self._shown_progress else None
        try:
            if events or progress:
                store.append(events, payloads, progress, owners=self._owners(events))
                self._shown_progress = states
        except sqlite3.OperationalError as error:
            self._count_lost(events, error)
        except Exception as error:
            # One event with a value that its column can't hold must not take the batch with it.
            logger.debug("compilediag: a batch is written one by one: %s", error)
            self._write_singly(store, events, payloads)
        self.cpu_ns += time.thread_time_ns() - begin

    def _note_rank(self, store: Store) -> None:
        """A process has no rank until torch.distributed begins, and keeps its rank when that ends: what it recorded
        before gets it too.
        """
        rank = self._ask_rank()
        if rank is None or rank == self._rank:
            return
        self._rank = rank
        if self._has_no_rank_yet:
            try:
                store.set_rank(os.getpid(), rank)
                self._has_no_rank_yet = False
            except sqlite3.OperationalError as error:
                logger.debug("compilediag: the rank of earlier events in %s stays unknown: %s", self.path, error)

    def _ask_counters(self) -> None:
        for counter in list(self.counters):
            try:
                counter.tick()
            except Exception as error:
                counter.note_error(error)

    def _state(self, running: Running) -> dict[str, Any]:
        state = running.state()
        return {**state, "file": self._cells.name(state["file"])} if "file" in state else state

    def _take(self) -> tuple[list[Event], list[tuple[str, str]]]:
        events: list[Event] = []
        payloads: list[tuple[str, str]] = []
        for _ in range(len(self._waiting)):
            feed, make, args = self._waiting.popleft()
            try:
                made = [self._keep(feed, i, payloads) if isinstance(i, tuple) else i for i in make(*args)]
            except Exception as error:
                feed.note_error(error)
                continue
            events += made
            feed.events += len(made)
        self._has_no_rank_yet = self._has_no_rank_yet or (bool(events) and self._rank is None)
        return [self._cells.rename(event) for event in events], payloads

    def _keep(self, feed: Feed, item: tuple[Artifact, str], payloads: list[tuple[str, str]]) -> Artifact:
        artifact, text = item
        text = clean(text)
        size = len(text) if text.isascii() else len(text.encode())
        digest = digest_of(text)
        if digest not in self._digests:
            if size > self._payload_left:
                feed.dropped += 1
                return dataclasses.replace(artifact, size=size)
            self._payload_left -= size
            self._digests.add(digest)
            payloads.append((digest, text))
        return dataclasses.replace(artifact, size=size, digest=digest)

    def _changed_statuses(self, final: bool) -> list[Event]:
        now = time.monotonic()
        if not final and now < self._status_due:
            return []
        self._status_due = now + STATUS_INTERVAL_S
        changed: list[Event] = []
        for status in self._statuses():
            shown = self._shown_status.get(status.name)
            if shown is None or _state(shown) != _state(status):
                self._shown_status[status.name] = status
                changed.append(status)
        return changed

    def _statuses(self) -> Iterable[SourceStatus]:
        for feed in self.feeds:
            try:
                yield feed.status()
            except Exception as error:
                feed.note_error(error)

    def _owners(self, events: list[Event]) -> list[Owner]:
        return [(self._rank, os.getpid())] * len(events)

    def _write_singly(self, store: Store, events: list[Event], payloads: list[tuple[str, str]]) -> None:
        for event in events:
            try:
                store.append([event], payloads, owners=self._owners([event]))
                payloads = []
            except Exception as error:
                self._count_lost([event], error)

    def _count_lost(self, events: list[Event], error: Exception) -> None:
        """Count what could not be written, at the last feed, the writer itself."""
        logger.warning("compilediag: %d events could not be written to %s: %s", len(events), self.path, error)
        for feed in self.feeds[-1:]:
            feed.dropped += len(events)
            feed.note_error(error)

    def before_fork(self) -> None:
        self._lock.acquire()
        if self._store is not None:
            self._store.release()

    def after_fork_in_parent(self) -> None:
        try:
            if self._store is not None:
                self._store.reopen()
        except sqlite3.Error as error:
            self._store = None
            self._count_lost([], error)
        finally:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """The child has no writer thread and must not use the parent's connection: both begin with its first event."""
        self._store, self._owner = None, False
        self._lock = threading.RLock()
        self._waiting.clear()
        self.progress.clear()
        self._shown_progress, self._shown_status = {}, {}
        self._rank, self._has_no_rank_yet = None, False
        for feed in self.feeds:
            feed.events = feed.dropped = 0
        for counter in self.counters:
            counter.reset_after_fork()
        self._asleep = True

    def _wake_in_child(self) -> None:
        with self._lock:
            if not self._asleep:
                return
            self._store = Store.open(self.path, writable=True)
            self._begin_thread()
            if "multiprocessing.util" in sys.modules:
                # multiprocessing ends its children with os._exit, which runs no atexit functions.
                sys.modules["multiprocessing.util"].Finalize(self, self.flush, args=(True,), exitpriority=10)


def _finish_start(thread: threading.Thread) -> None:
    """Complete a start that was interrupted, so that the thread can be joined and the interpreter forgets it.

    The interrupt may have come after the thread itself began; then the thread has an identifier soon.
    """
    end = time.monotonic() + 1
    while thread.ident is None and time.monotonic() < end:
        time.sleep(0.01)
    if thread.ident is None:
        thread.start()
    elif not thread.is_alive():
        time.sleep(0.01)


def _state(status: SourceStatus) -> tuple[Any, ...]:
    """What makes a status worth a new row; its cost to the millisecond, as the writer's own grows with each row."""
    return (status.status, status.reason, status.events, status.dropped, round(status.overhead_s or 0, 3))
