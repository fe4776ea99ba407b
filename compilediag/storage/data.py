"""The data of one session file, read-only: typed rows, DataFrames and texts. Imports neither diagnosis nor views."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import own_log
from ..errors import CompilediagError
from ..events import Compile, Event, Recompile, SourceStatus
from ..events.rows import LostSeconds, keep_last_states
from ..interrupts import ignore, pass_on
from . import tables
from .lost_files import add_unwritten, copy_to_memory, reopen_or_empty
from .session_writer import Unwritten
from .store import Store
from .table_properties import TableProperties
from .tables import fetch_rows, find_last_id, unless_damaged
from .texts import inflate

if TYPE_CHECKING:
    import pandas as pd


E = TypeVar("E", bound=Event)
Flush = Callable[[bool], Unwritten | None]


class _Settled(threading.local):
    """Whether this thread reads what it has flushed already, and the kinds that it has read since."""

    active = False

    def __init__(self) -> None:
        self.kinds: set[type[Event]] = set()


class SessionData(TableProperties):
    """The data of one session file, which this process, another one or nobody is recording to.

    `flush` writes what this process has recorded so far; it is called before the file is read, and returns what the
    file lacks if it is lost. `store` is read instead of the file, if the file can't be read.
    """

    def __init__(self, path: Path, flush: Flush | None = None, store: Store | None = None):
        self.path = path
        self.store = store or Store.open(path)
        self.lock = threading.RLock()
        self._application_id = self.store.application_id
        self._last_states: Sequence[SourceStatus] = ()
        self._is_whole = True
        #: What could not be added to the session in memory yet, and facts.
        self._not_added: tuple[Unwritten, Mapping[str, Any]] | None = None
        self._flush = flush
        #: True if this process recorded the session.
        self.is_ours = flush is not None
        self._settled = _Settled()
        self._frames: dict[str, tuple[int, pd.DataFrame]] = {}
        self._rows: dict[type[Event], list[Any]] = {}
        self._pool: tables.Pool = {}
        self._lost = LostSeconds()
        self._compiles_added = 0
        self._when_ended: list[Callable[[], None]] = []

    @property
    def state(self) -> str:
        """watching (also if another living process records it), stopped (recorded by this process), lost (as well, but
        its file could not be written to the end), or loaded.
        """
        if self._flush is not None:
            return "watching"
        if self.is_ours:
            return "lost" if self.store.is_in_memory else "stopped"
        with self.lock:
            return "watching" if unless_damaged(self.store.is_recorded_elsewhere, False) else "loaded"

    @property
    def is_recorded_here(self) -> bool:
        """True while this process records the session."""
        return self.is_ours and self._flush is not None

    def end_recording(self) -> None:
        """The recording is over: from here on the file alone is read."""
        self._flush = None

    def reread_rows(self) -> None:
        """Read all rows that were read before once more: some have changed."""
        with self.lock, self.store.snapshot():
            self._frames.clear()
            for kind in self._rows:
                self._rows[kind] = tables.read_events_of(self.store, kind, self._pool)
            self._lost, self._compiles_added = LostSeconds(), 0

    def call_when_ended(self, function: Callable[[], None]) -> None:
        """Call a function once, in the thread of this process that ends the recording."""
        self._when_ended.append(function)

    def announce_end(self) -> None:
        """Call what waits for the end of the recording. An error there never reaches the program that is recorded."""
        while self._when_ended:
            function = self._when_ended.pop(0)
            try:
                function()
            except Exception as error:
                pass_on(error)
                own_log.warning("compilediag: what is shown was not updated at the end of the watch: %s", error)

    # Rows and tables

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`. Recompiles have `lost_s`; of each source, the last
        state. Only what was added since the last call is read.
        """
        self.flush(statuses=kind is SourceStatus)
        with self.lock:
            if kind is Recompile:
                with self.store.snapshot():
                    return self._with_lost_seconds(self._stored_events(kind))  # type: ignore[return-value]
            rows = self._stored_events(kind)
            return keep_last_states(rows) if kind is SourceStatus else rows[:]  # type: ignore[return-value]

    def _stored_events(self, kind: type[Event]) -> list[Any]:
        """Every event of a kind: those that were read before, and what the file has after them."""
        known = self._rows.setdefault(kind, [])
        if not (self._settled.active and kind in self._settled.kinds):
            known += tables.read_events_of(self.store, kind, self._pool, known[-1].event_id if known else 0)
            self._settled.kinds.add(kind)
        return known

    def _with_lost_seconds(self, recompiles: list[Recompile]) -> Sequence[Recompile]:
        compiles = self._stored_events(Compile)
        self._lost.add_recompiles(recompiles[len(self._lost.recompiles) :])
        self._lost.add_compiles(compiles[self._compiles_added :])
        self._compiles_added = len(compiles)
        return self._lost.recompiles[:]

    def table(self, name: str) -> pd.DataFrame:
        """The table with this name, as a new DataFrame; "events" is the list of all events."""
        self.flush(statuses=name == SourceStatus.table)
        with self.lock, self.store.snapshot():
            frame = self._frame(name)
            return tables.add_lost_seconds(frame, self._frame("compiles")) if name == Recompile.table else frame.copy()

    def _frame(self, name: str) -> pd.DataFrame:
        last = find_last_id(self.store, name)
        cached = self._frames.get(name)
        if cached is None or cached[0] != last:
            frame = tables.read_events(self.store) if name == "events" else tables.read_table(self.store, name)
            cached = self._frames[name] = (last, frame)
        return cached[1]

    def stored_rows(self, table: str, after: int = 0) -> list[tuple[Any, ...]]:
        """The rows of a table with event ids above `after`, as stored (times in ns): what a live view reads."""
        with self.lock:
            return tables.read_stored_rows(self.store, table, after)

    # What is not a table

    @property
    def meta(self) -> dict[str, Any]:
        """Facts about the whole session: schema_version, torch_version, detail, pid, created_ns, stopped_ns, ..."""
        with self.lock:
            return self.store.meta()

    def set_meta(self, **values: Any) -> None:
        """Store facts about the session in its file, as JSON. CompilediagError if the file can't be written."""
        try:
            with self.lock:
                if self.store.is_in_memory:
                    self.store.set_meta(**values)
                    return
            with contextlib.closing(Store.open(self.path, writable=True)) as store:
                store.set_meta(**values)
        except sqlite3.Error as error:
            raise CompilediagError(f"{self.path} can't be written: {error}") from None

    def artifact(self, event_id: int) -> str:
        """The text of an artifact. KeyError if there is no such artifact or its text was not stored."""
        body = self.artifact_bodies(int(event_id) - 1, int(event_id)).get(int(event_id))
        if body is None:
            raise KeyError(f"no text is kept for event {event_id}")
        try:
            return inflate(body)
        except (zlib.error, UnicodeDecodeError) as error:
            raise KeyError(f"the text of event {event_id} is damaged: {error}") from None

    def artifact_bodies(self, after: int, last: int) -> dict[int, bytes]:
        """Event id -> text as stored (UTF-8, deflated) of the artifacts above `after` up to `last`."""
        self.flush()
        source = "artifacts a JOIN payloads p ON p.digest = a.digest"
        wanted = f"WHERE a.event_id > {int(after)} AND a.event_id <= {int(last)}"
        kept = f"payloads p WHERE p.digest IN (SELECT a.digest FROM artifacts a {wanted})"
        with self.lock, self.store.snapshot():
            events = fetch_rows(self.store, ["a.event_id", "a.digest"], f"{source} {wanted}", "a.event_id")
            bodies = fetch_rows(self.store, ["p.digest", "hex(p.body)"], kept, "p.digest")
        by_digest = {digest: bytes.fromhex(body) for digest, body in bodies}
        return {event_id: by_digest[digest] for event_id, digest in events if digest in by_digest}

    def stack(self, key: str) -> list[str]:
        """A call stack by its key (column `stack` of compiles, `user_stack`, ...): `file:line function` per frame, the
        outermost first. KeyError if there is none.
        """
        return tables.find_stack(self.stacks, key)

    def metrics(self, event_id: int) -> dict[str, Any]:
        """All fields of torch's CompilationMetrics of one compile (its event id), by torch's names.

        KeyError if there is no such compile or they were not kept: a session of logs has them, a watch has not.
        """
        from ..decode.records.compilation_metrics import KINDS, join_texts

        first = int(event_id)
        with self.lock:
            # They come right behind it, each long field on its own.
            near = f"a.event_id > {first} AND a.event_id < {first + 20}"
            source = f"artifacts a JOIN compiles c ON c.event_id = {first} WHERE {near}"
            rows = fetch_rows(self.store, ["a.event_id", "a.name"], source, "a.event_id")
        names = [(at, name) for at, name in rows if isinstance(name, str)]
        of_it = [(at, name) for n, (at, name) in enumerate(names, 1) if at == first + n and name.split(".")[0] in KINDS]
        if not of_it:
            raise KeyError(f"no metrics are kept for event {event_id}")
        try:
            return join_texts({name: self.artifact(at) for at, name in of_it})
        except (ValueError, TypeError, RecursionError) as error:
            raise KeyError(f"the metrics of event {event_id} are damaged: {error}") from None

    def news(self, after: int) -> tuple[int, set[str]]:
        """Number of the latest event, and the kinds of the events above `after`: one query finds what is new."""
        query = "SELECT max(id), group_concat(DISTINCT kind) FROM events WHERE id > ?"
        with self.lock:
            last, kinds = self.store.connection.execute(query, (after,)).fetchone()
        return (after, set()) if last is None else (last, set((kinds or "").split(",")))

    def progress(self) -> list[dict[str, Any]]:
        """What is compiling now, one dict per thread: compile_id, function, file, line, trigger, phases, started_ns."""
        with self.lock:
            return unless_damaged(self.store.progress, [])

    def flush(self, statuses: bool = False) -> None:
        """Write everything that this process has recorded so far to the file. `statuses`: what the sources have counted
        too, which is otherwise written once a second.
        """
        flush = self._flush
        if flush is not None and not self._settled.active:
            unwritten = flush(statuses)
            if unwritten is not None:
                self.keep_in_memory(unwritten, {})
        if self._not_added is not None:
            with ignore(Exception):
                self.keep_in_memory(*self._not_added)

    @contextlib.contextmanager
    def settled(self) -> Iterator[None]:
        """One flush for all that this thread reads in the block, and one query for each kind of rows: beside a busy
        compiler each costs it 5 ms or more.
        """
        self.flush()
        before, self._settled.active = self._settled.active, True
        if not before:
            self._settled.kinds.clear()
        try:
            yield
        finally:
            self._settled.active = before

    # Around a fork of the recording process, and around the end of its recording

    def close_during(self, work: Callable[[], None]) -> None:
        """Call `work` while the file is closed here; other threads wait."""
        with self.lock:
            try:
                self.store.release()
            finally:
                try:
                    work()
                finally:
                    self._connect_again()

    def release(self) -> None:
        """Close the file; the caller holds the lock until `reopen`."""
        self.store.release()

    def reopen(self) -> None:
        """Open the file again, for all threads."""
        try:
            self._connect_again()
        finally:
            self.lock.release()

    def after_fork_in_child(self) -> None:
        """Open the file again, with a lock that no thread of the parent holds. What is shown is the parent's."""
        self.lock = threading.RLock()
        self._when_ended.clear()
        self._connect_again()

    def _connect_again(self) -> None:
        try:
            self.store.reopen()
        except (sqlite3.Error, OSError) as error:
            pass_on(error)
            self._change_store(reopen_or_empty(self.store, self._application_id))
        except Exception as error:  # An error of ours, which is counted.
            pass_on(error)
            self._change_store(reopen_or_empty(self.store, self._application_id))
            raise

    def add_states(self, states: Sequence[SourceStatus]) -> None:
        """Add states of sources after the recording: to the file, else to a copy of the session in memory."""
        try:
            with self.lock:
                if not self.store.is_in_memory:
                    with contextlib.closing(Store.open(self.path, writable=True)) as store:
                        store.append(states)
                    return
        except Exception as error:
            pass_on(error)
            own_log.debug("compilediag: %s does not have the last states: %s", self.path, error)
        self.keep_in_memory(Unwritten(tuple(states), deque()), {})

    def keep_in_memory(self, unwritten: Unwritten, facts: Mapping[str, Any]) -> None:
        """The file is lost: go on in memory with what can be read of it, what it lacks, and `facts`."""
        with self.lock:
            self._not_added = unwritten, facts
            if not self.store.is_in_memory:
                memory, self._is_whole = copy_to_memory(self.store, self._application_id, self._find_last_id())
                self._change_store(memory)
            if unwritten.states is not self._last_states or unwritten.batches or facts:
                add_unwritten(self.store, unwritten, facts, self._is_whole)
                self._last_states = unwritten.states
            self._not_added = None

    def _find_last_id(self) -> int:
        """The highest event id that is known, also if the file can't be read any more."""
        known = [rows[-1].event_id for rows in self._rows.values() if rows]
        with contextlib.suppress(sqlite3.Error):
            known.append(find_last_id(self.store, "events"))
        return max(known, default=0)

    def _change_store(self, store: Store) -> None:
        self.store = store
        self.reread_rows()
