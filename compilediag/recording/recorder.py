"""The recorder: hooks append to a deque, and one thread writes batches to the session's file.

A hook hands over a function and its arguments, not an event: whatever can wait is computed in the writer's thread. An
event is in the file at most `LONGEST_S` after it was handed over; a killed process loses no more than that.
After a fork the child continues in the same file, with a connection and a thread of its own.

All writing happens in that thread, also what another thread waits for: whatever is raised there is ours, so it is
counted and the recording goes on; what is raised in a thread that waits is the user's, and leaves it.

Listeners in this process get what is recorded: metrics, warnings, a line in the console. They read no file.

    stop = listen(count)  # `count(turn)` is called in the writer's thread, four times a second, with a `Turn`

A listener gets everything that is recorded after it was added, also by recordings that begin later. What it raises is
counted at the writer (`sources`), and never reaches the program. `diagnosis.incidents.IncidentFinder` finds the
incidents in what a listener gets.
"""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import itertools
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..events import Artifact, Event, SourceStatus, WarmupEnd
from ..sources.compile_context import MAX_WAITING, CompileContext, Counter, Feed, Made, Noting, Running, SessionFacts
from ..storage.rows import TextQuota, clean
from ..storage.session_writer import Batch, SessionWriter, Unwritten, mark_lost
from ..system import clock
from ..system.interrupts import finish_start, pass_on
from ..system.own_errors import describe_error, log_debug
from ..system.source_files import CellNames

# Listeners


@dataclass(frozen=True)
class Turn:
    """What is new since the last turn: events, each once and in order, and what compiles now.

    `running` has one dict per thread, as `Session.progress` has them. `warmup` is the end of the warm-up; None before.
    An event has no rank and no pid: they are those of this process; `rank` is None without a distributed job.
    """

    events: Sequence[Event]
    running: Sequence[Mapping[str, Any]]
    warmup: WarmupEnd | None
    rank: int | None = None


Listener = Callable[[Turn], object]

#: As all state of a module, it outlives `importlib.reload`.
registered: list[Listener] = globals().get("registered", [])


def listen(listener: Listener) -> Callable[[], None]:
    """Call `listener` at every turn of any recording of this process, until what this returns is called."""
    registered.append(listener)

    def stop() -> None:
        with contextlib.suppress(ValueError):
            registered.remove(listener)

    return stop


# The recorder

#: Seconds until the next batch: the longer time after a batch that wrote something, unless a listener waits for news.
#: A batch takes some ms, of which most do not depend on the number of events. `flush` asks for one at once.
INTERVAL_S, LONGEST_S = 0.25, 1.0
#: Seconds that the end of a counter waits for the thread.
RELEASE_S = 1.0
#: At most so many hand-overs are one batch.
BATCH = 5_000
#: Seconds without progress of the thread after which the end of a recording gives it up: a disk can hang.
PATIENCE_S = 8.0
#: Seconds between two rows of the state of a source.
STATES_S = 1.0
#: Steps of the program that are remembered at least: a compile is given its step when it is over.
REMEMBERED = 32_768

Result = TypeVar("Result")


class ProgramSteps:
    """When each of the program's own steps began, so that what is recorded can be given the step in which it began. All
    threads of the program begin steps here; no lock is taken, and one call takes less than a microsecond.
    """

    def __init__(self) -> None:
        #: (time in ns, number) of each step.
        self._begun: list[tuple[int, int]] = []
        self._numbers = itertools.count()
        self._counts = itertools.count(1)

    def begin(self, number: int | None = None) -> int:
        """A step begins: the one after the last, if it has no number. Returns how many have begun."""
        if number is None:
            number = next(self._numbers)
        else:
            self._numbers = itertools.count(number + 1)
        self._begun.append((clock.now_ns(), number))
        if len(self._begun) > 2 * REMEMBERED:
            del self._begun[:REMEMBERED]
        return next(self._counts)

    def find(self, time_ns: int) -> int | None:
        """The step that ran at this time; None before the first one, and for a time that is not remembered."""
        begun = self._begun
        at = bisect.bisect_left(begun, (time_ns + 1,))
        return begun[at - 1][1] if at else None

    def add_to(self, event: Event) -> Event:
        """The event with its step, if its kind has one and it is not known yet."""
        if not self._begun or getattr(event, "step", 0) is not None:
            return event
        return dataclasses.replace(event, step=self.find(event.time_ns))  # type: ignore[call-arg]


class Recorder:
    """Takes events from any thread and writes them from one, from `begin` to `close`.

    `path` must not exist; if `meta` is None, it is the file of another process's recording, which this one joins. Texts
    beyond `max_payload_mb` are dropped and counted. `rank` returns the rank in a distributed job, or None. `lost`: why
    there is no file; everything is dropped and counted then.
    """

    def __init__(
        self,
        path: Path,
        meta: dict[str, Any] | None,
        max_payload_mb: float = 256,
        rank: Callable[[], int | None] = lambda: None,
        lost: str | None = None,
    ):
        self.path = path
        self.feeds: list[Feed] = []
        #: Thread -> the compile that runs in it.
        self.progress: dict[int, Running] = {}
        #: They hand over their counts before every batch.
        self.counters: list[Counter] = []
        self._asked: Counter | None = None
        self.context = CompileContext()
        self.facts = SessionFacts()
        self.steps = ProgramSteps()
        #: The end of the warm-up, once it has ended.
        self.warmup: WarmupEnd | None = None
        #: Those of this recording alone.
        self.listeners: list[Listener] = []
        self.states = SourceStates(lambda: [self._read_status(feed) for feed in self.feeds])
        self.cpu_ns = 0
        self._has_written = False
        self._writer = SessionWriter(path, meta, lost)
        self._quota = TextQuota(int(max_payload_mb * 2**20))
        self._cells = CellNames()
        self._waiting: deque[tuple[Feed, Callable[..., Made], tuple[Any, ...]]] = deque()
        self._lock = threading.RLock()
        self._ask_rank = rank
        self._rank: int | None = None
        self._has_no_rank_yet = False
        self._shown_progress: dict[int, dict[str, Any]] = {}
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        self._requests: deque[tuple[threading.Event, bool]] = deque()
        #: True when everything is written: hooks that are left have no effect.
        self.is_ended = False
        #: True if there were errors at the end, which the states of the sources in the file may not show.
        self.has_late_errors = False
        self._asleep = self._is_ending = self._is_incomplete = False
        #: Grows while the thread makes progress.
        self._beats = 0

    def begin(self) -> Recorder:
        """Open the file and start to write. Whatever ends this early, `close` cleans up."""
        self._writer.open()
        self._begin_thread()
        return self

    @property
    def is_open(self) -> bool:
        return self._writer.store is not None

    @property
    def lost(self) -> str | None:
        """Why nothing can be written to the file any more, in words; None while it can be."""
        return self._writer.lost

    def lose(self, why: str) -> None:
        """Write nothing to the file: it can't be read."""
        self._writer.lose(why)
        self._keep_unwritten(final=True)

    def _begin_thread(self) -> None:
        self._asleep = False
        self._thread = threading.Thread(target=self._run, args=(self._wake,), name="compilediag-writer", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # Too many threads, or the interpreter ends: `flush` and `close` write then.
            self._thread = None
            self.note_error(error)

    def put(self, feed: Feed, make: Callable[..., Made], *args: Any) -> None:
        """Hand over what will be `make(*args)`. Called from hooks: appends and returns."""
        if len(self._waiting) >= MAX_WAITING:
            feed.dropped += 1
            return
        self._waiting.append((feed, make, args))
        if self._asleep:
            with self._lock:
                if not self._asleep:
                    return
                self._shield(None, self._writer.join)
                self._begin_thread()
                if "multiprocessing.util" in sys.modules:
                    # multiprocessing ends its children with os._exit, which runs no atexit functions.
                    sys.modules["multiprocessing.util"].Finalize(self, self.flush, args=(True,), exitpriority=10)

    def find_step(self, time_ns: int) -> int | None:
        """The program's step that ran at this time."""
        return self.steps.find(time_ns)

    def release(self, counter: Counter) -> None:
        """Ask `counter` for the last time, once no other thread asks it any more."""
        if counter in self.counters:
            self.counters.remove(counter)
        # Without the lock: an interrupt that comes when a lock was just taken leaves it taken.
        end = time.monotonic() + RELEASE_S
        while self._asked is counter and time.monotonic() < end:
            time.sleep(0.001)
        counter.tick(final=True)

    def flush(self, statuses: bool = False) -> Unwritten | None:
        """Everything that was handed over so far is in the file when this returns; while another process locks it, in
        memory. If the file is lost, what it lacks is returned.

        `statuses`: also what the sources have counted since their last status, which is written once a second.
        """
        if not (self.is_ended or self._asleep or self._thread is threading.current_thread()):
            if not self._is_thread_alive():
                self._begin_thread()  # It could not start before, or something has killed it.
            request = (threading.Event(), statuses)
            while self._is_thread_alive() and not request[0].is_set():
                # Asked again because an error can lose it.
                if request not in self._requests:
                    self._requests.append(request)
                self._wake.set()
                request[0].wait(INTERVAL_S)
            if not request[0].is_set():
                with self._lock:
                    self._write_batch(final=statuses)
        return None if self.lost is None else self.unwritten

    @property
    def unwritten(self) -> Unwritten:
        """What the file lacks."""
        return Unwritten(self.states.unwritten, self._writer.waiting)

    def _is_thread_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def end(self) -> None:
        """Write what is left and end the thread. Called again after an interrupt, it goes on. A file that is locked and
        a disk that hangs are given up.
        """
        if self.is_ended and (self.lost is not None or not self._is_thread_alive()):
            return
        self._is_ending = True
        self._writer.begin_end()
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            if not thread.is_alive():
                finish_start(thread)
            beats = -1
            while thread.is_alive() and self._beats != beats:
                beats = self._beats
                thread.join(PATIENCE_S)
            if thread.is_alive():
                self.is_ended = True
                self._writer.give_up(f"{self.path} was not written within {PATIENCE_S:.0f} s")
                self._keep_unwritten(final=True)
                return
        with self._lock:
            self._finish()

    def close(self) -> None:
        """Write what is left, end the thread and close the file. Called again after an interrupt, it goes on."""
        self.end()
        self._shield(None, self._writer.close)

    def _finish(self) -> None:
        if self.is_ended:
            return
        self.progress.clear()
        self._shield(None, self._write_batch, True)
        if self._is_incomplete:
            # What the last one could not write is counted in the states of the sources.
            self._shield(None, self._write_batch, True)
        self._shield(None, self._mark_end, feed=self._writer)
        if self._writer.problem is not None and self.lost is None:
            self._shield(None, self._writer.lose, self._writer.problem)
        self.is_ended = True
        self._shield(None, self._keep_unwritten, True)

    def _mark_end(self) -> None:
        self.facts.last_step = self.steps.find(clock.now_ns())
        self._writer.mark_end(self.facts.to_meta(), clock.now_ns())

    def _run(self, wake: threading.Event) -> None:
        """The thread. `wake` is its own: after a fork the child has another one."""
        while True:
            try:
                while wake is self._wake and not self.is_ended:
                    self._take_turn(wake)
                return
            except BaseException as error:
                self._shield(None, self.note_error, error)
                # What waits for a batch goes on without it: the next turn may fail as well.
                self._shield(None, self._answer_requests)
                if self._is_ending:
                    return  # `end` writes what is left.
                self._shield(None, time.sleep, INTERVAL_S)

    def _answer_requests(self) -> None:
        while self._requests:
            self._requests.popleft()[0].set()

    def _take_turn(self, wake: threading.Event) -> None:
        """Wait for the next batch and write it, for all that wait for it."""
        # Listeners have a turn with every batch.
        wake.wait(INTERVAL_S if self._list_listeners() or not self._has_written else LONGEST_S)
        wake.clear()
        with self._lock:
            if wake is not self._wake or self.is_ended:
                return
            requests = [self._requests.popleft() for _ in range(len(self._requests))]
            try:
                if self._is_ending:
                    self._finish()
                else:
                    self._write_batch(final=any(statuses for _, statuses in requests))
            finally:
                for written, _ in requests:
                    written.set()

    def _shield(self, otherwise: Result, step: Callable[..., Result], *args: Any, feed: Noting | None = None) -> Result:
        """What `step` returns; `otherwise` if it raises, which is counted at `feed`, else at the writer.

        In the writer's thread nothing is raised that is not ours: no interrupt, and no exit.
        """
        try:
            return step(*args)
        except BaseException as error:
            if threading.current_thread() is not self._thread:
                pass_on(error)
            self.note_error(error, feed)
            return otherwise

    def note_error(self, error: BaseException, feed: Noting | None = None) -> None:
        """Count an error at `feed`, else at the last one, which is the writer. Never raises."""
        self.has_late_errors = self.has_late_errors or self._is_ending
        for counted in [feed] if feed is not None else self.feeds[-1:]:
            try:
                counted.note_error(error)
            except BaseException as worse:
                if threading.current_thread() is not self._thread:
                    pass_on(worse)
                log_debug("compilediag: %r could not be counted: %r", error, worse)
                if feed is not None:
                    self.note_error(worse)

    def _write_batch(self, final: bool) -> None:
        """One transaction. Each step is shielded: what fails costs itself."""
        if self.is_ended:
            return
        begin = time.thread_time_ns()
        self._has_written = False
        if self._writer.lost is not None and not self._list_listeners():
            for _ in range(len(self._waiting)):
                self._waiting.popleft()[0].dropped += 1
        else:
            self._shield(None, self._note_rank)
            self._shield(None, self._ask_counters)
            count = len(self._waiting)
            for _ in range(0, count - BATCH, BATCH):
                self._write(*self._take(BATCH), final=False)
            self._write(*self._take(count), final)
        self._keep_unwritten(final)
        self.cpu_ns += time.thread_time_ns() - begin

    def _write(self, events: list[Event], texts: list[tuple[str, str]], final: bool) -> None:
        events += self._shield([], self.states.find_changed, final)
        states = self._shield(self._shown_progress, self._list_progress)
        if told := self._list_listeners():
            turn = Turn(events, list(states.values()), self.warmup, self._rank)
            for listener in told:
                self._shield(None, listener, turn)
        if self._writer.lost is not None:
            for feed in self.feeds[-1:]:
                feed.dropped += len(events)
            return
        progress = (os.getpid(), states) if states != self._shown_progress else None
        self._beats += 1
        if not events and progress is None and not self._writer.waiting:
            return
        self._has_written = True
        owner = self._rank, os.getpid()
        failed = self._shield(
            None, lambda: self._writer.write(Batch(events, texts, progress, owner)), feed=self._writer
        )
        if failed is None:
            failed = [(len(events), RuntimeError(self._writer.problem))]
        for count, error in failed:
            for feed in self.feeds[-1:]:
                feed.dropped += count
            self.note_error(error)
        self._is_incomplete = failed != []
        if not failed:
            self._shown_progress = states
        else:
            # Some of these are not in the file: they are written again once they can be.
            self.states.forget_written()
            self._quota.give_back(texts)

    def _list_listeners(self) -> list[Listener]:
        return [*self.listeners, *registered]

    def list_last_states(self) -> tuple[SourceStatus, ...]:
        """The states of the sources when the recording is over, as those of this process."""
        self.states.keep_unwritten(None if self._writer.is_complete else self.lost, self._rank, is_final=True)
        return self.states.unwritten

    def _list_progress(self) -> dict[int, dict[str, Any]]:
        states = {thread: running.state() for thread, running in list(self.progress.items())}
        for state in states.values():
            if "file" in state:
                state["file"] = self._cells.name(state["file"])
        return states

    def _keep_unwritten(self, final: bool) -> None:
        if self._writer.problem is None:
            self.states.unwritten = ()
        else:
            lost = None if self._writer.is_complete else self.lost
            self._shield(None, self.states.keep_unwritten, lost, self._rank, final)

    def _note_rank(self) -> None:
        """A process has no rank until torch.distributed begins, and keeps its rank when that ends: what it recorded
        before gets it too.
        """
        rank = self._ask_rank()
        if rank is None or rank == self._rank or self._writer.waiting:
            return
        if self._has_no_rank_yet:
            self._writer.set_rank(rank)
            self._has_no_rank_yet = False
        self._rank = rank

    def _ask_counters(self) -> None:
        for counter in list(self.counters):
            self._asked = counter
            if counter in self.counters:  # `release` looks at these two in the other order.
                self._shield(None, counter.tick, feed=counter)
            self._asked = None

    def _take(self, most: int) -> tuple[list[Event], list[tuple[str, str]]]:
        events: list[Event] = []
        payloads: list[tuple[str, str]] = []
        for _ in range(min(most, BATCH, len(self._waiting))):
            self._beats += 1
            feed, make, args = self._waiting.popleft()
            events += self._shield([], self._make_events, feed, make, args, payloads, feed=feed)
        self._has_no_rank_yet = self._has_no_rank_yet or (bool(events) and self._rank is None)
        return events, payloads

    def _make_events(
        self, feed: Feed, make: Callable[..., Made], args: tuple[Any, ...], texts: list[tuple[str, str]]
    ) -> list[Event]:
        """The events of `make(*args)`, which `feed` has handed over; its texts that are kept go into `texts`."""
        made = make(*args) or ()
        items = (made,) if isinstance(made, Event) else made
        events = [self._keep_text(feed, *each, texts) if isinstance(each, tuple) else each for each in items]
        named = [self.steps.add_to(self._cells.rename(event)) for event in events]
        feed.events += len(named)
        return named

    def _keep_text(self, feed: Feed, artifact: Artifact, text: str, texts: list[tuple[str, str]]) -> Artifact:
        text = clean(text)
        kept = self._quota.take(text)
        if kept.digest is None:
            feed.dropped += 1
        elif kept.is_new:
            texts.append((kept.digest, text))
        return dataclasses.replace(artifact, size=kept.size, digest=kept.digest)

    def _read_status(self, feed: Feed) -> SourceStatus:
        """The state of a source; one that says why, if it can't be read."""
        try:
            return feed.status()
        except Exception as error:
            pass_on(error)
            self.note_error(error, feed)
            reason = f"its state can't be read: {type(error).__name__}: {error}"
            now = clock.now_ns()
            return SourceStatus(time_ns=now, name=feed.name, status="failed", reason_code="errors", reason=reason)

    def before_fork(self) -> None:
        """Nothing is written until the process has forked."""
        self._lock.acquire()
        self._shield(None, self._writer.prepare_fork)
        self._keep_unwritten(final=True)

    def release_file(self) -> None:
        """Close the connection, which a child must not have."""
        self._shield(None, self._writer.release)

    def after_fork_in_parent(self) -> None:
        try:
            self._shield(None, self._writer.reopen)
        finally:
            self._lock.release()

    def after_fork_in_child(self) -> None:
        """The child has no writer thread and must not use the parent's connection: both begin with its first event."""
        self._writer.leave_to_parent()
        self._thread, self._wake, self._is_ending = None, threading.Event(), False
        self._lock = threading.RLock()
        self._requests.clear()
        self._waiting.clear()
        self.progress.clear()
        self._shown_progress = {}
        self.states.reset()
        self._rank, self._has_no_rank_yet = None, False
        self._asked = None
        for feed in self.feeds:
            feed.events = feed.dropped = 0
        for counter in self.counters:
            counter.reset_after_fork()
        self._asleep = True


class WriterStatus:
    """The status of the writing thread: its CPU seconds, and what it could not write."""

    name = "writer"

    def __init__(self, recorder: Recorder):
        self.recorder = recorder
        self.events = 0
        self.dropped = 0
        self._errors = 0
        self._last_error = ""

    def note_error(self, error: BaseException) -> None:
        self._errors += 1
        self._last_error = describe_error(error)

    def status(self) -> SourceStatus:
        code, reason = None, None
        if self.recorder.lost is not None:
            code, reason = "lost", self.recorder.lost
        elif self._errors:
            count = "1 error" if self._errors == 1 else f"{self._errors} errors, the last"
            code, reason = "errors", f"{count}: {self._last_error}"
        return SourceStatus(
            time_ns=clock.now_ns(),
            name=self.name,
            status="active" if code is None else "failed",
            reason=reason,
            reason_code=code,
            events=self.events,
            dropped=self.dropped,
            overhead_s=self.recorder.cpu_ns / 1e9,
        )


class SourceStates:
    """`list_states` returns the state of each source; it is called once a second, and when all are asked for."""

    def __init__(self, list_states: Callable[[], list[SourceStatus]]):
        #: States that are not in the file, because it can't be written.
        self.unwritten: tuple[SourceStatus, ...] = ()
        self._list = list_states
        self._shown: dict[str | None, SourceStatus] = {}
        self._due = 0.0

    def find_changed(self, is_final: bool) -> list[SourceStatus]:
        """The states that have changed since they were written; none within a second, unless `is_final`."""
        if not self._is_due(is_final):
            return []
        changed: list[SourceStatus] = []
        for state in self._list():
            shown = self._shown.get(state.name)
            if shown is None or _outline(shown) != _outline(state):
                self._shown[state.name] = state
                changed.append(state)
        return changed

    def forget_written(self) -> None:
        """All are written again: some of the last ones are not in the file."""
        self._shown.clear()

    def keep_unwritten(self, lost: str | None, rank: int | None, is_final: bool) -> None:
        """Keep all here, as those of this process. Where the file is `lost`, what an active source saw is lost, too."""
        if not self.unwritten or self._is_due(is_final):
            own = (dataclasses.replace(state, rank=rank, pid=os.getpid()) for state in self._list())
            self.unwritten = tuple(state if lost is None else mark_lost(state, lost) for state in own)

    def reset(self) -> None:
        """Forget everything: another process begins."""
        self._shown, self.unwritten = {}, ()

    def _is_due(self, is_final: bool) -> bool:
        now = time.monotonic()
        if not is_final and now < self._due:
            return False
        self._due = now + STATES_S
        return True


def _outline(state: SourceStatus) -> tuple[Any, ...]:
    """What makes a state worth a new row; its cost to the millisecond, as the writer's own grows with each row."""
    return (state.status, state.reason, state.events, state.dropped, round(state.overhead_s or 0, 3))
