"""The data of one session file, read-only: typed rows, DataFrames and texts. Imports neither diagnosis nor views."""

from __future__ import annotations

import abc
import contextlib
import logging
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CompilediagError
from ..events import Compile, Event, Recompile, SourceStatus
from ..events.rows import LostSeconds, keep_last_states
from . import tables
from .store import Store
from .tables import fetch_rows, find_last_id, unless_damaged
from .texts import inflate
from .upgrade import open_current

if TYPE_CHECKING:
    import pandas as pd

logger = logging.getLogger("compilediag")

E = TypeVar("E", bound=Event)


class TableProperties(abc.ABC):
    """A DataFrame for each table; its columns are documented in `docs/tables.md`."""

    @abc.abstractmethod
    def table(self, name: str) -> pd.DataFrame:
        """The table with this name, as a new DataFrame."""

    @property
    def events(self) -> pd.DataFrame:
        """One row per event of any kind: id, time, kind, rank, pid, compile_id, compile_key, title, duration_s."""
        return self.table("events")

    @property
    def compiles(self) -> pd.DataFrame:
        """One row per compile of a frame, backward or autograd graph."""
        return self.table("compiles")

    @property
    def recompiles(self) -> pd.DataFrame:
        """One row per recompile, compared with its closest earlier entry; `lost_s` is what it cost."""
        return self.table("recompiles")

    @property
    def guard_failures(self) -> pd.DataFrame:
        """One row per failing guard of one earlier entry at one recompile."""
        return self.table("guard_failures")

    @property
    def refused_calls(self) -> pd.DataFrame:
        """Calls that a stance, or `aot_compile`, kept from compiling: one row per function and failing guard, then
        counts of further calls.
        """
        return self.table("refused_calls")

    @property
    def cache_lookups(self) -> pd.DataFrame:
        """One row per lookup or store in a compile cache."""
        return self.table("cache_lookups")

    @property
    def autotune(self) -> pd.DataFrame:
        """One row per timing of an autotuning choice."""
        return self.table("autotune")

    @property
    def cudagraphs(self) -> pd.DataFrame:
        """One row per warm-up, capture, re-record or skip of a CUDA graph, or a number of replays."""
        return self.table("cudagraphs")

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel that was compiled, here or in a compile worker."""
        return self.table("kernels")

    @property
    def graph_breaks(self) -> pd.DataFrame:
        """One row per graph break."""
        return self.table("graph_breaks")

    @property
    def phases(self) -> pd.DataFrame:
        """One row per timed phase of a compile."""
        return self.table("phases")

    @property
    def artifacts(self) -> pd.DataFrame:
        """One row per stored text (graph, code, guard tree); `artifact(event_id)` returns the text."""
        return self.table("artifacts")

    @property
    def dynamic_decisions(self) -> pd.DataFrame:
        """One row per input or attribute that torch made dynamic automatically."""
        return self.table("dynamic_decisions")

    @property
    def stacks(self) -> pd.DataFrame:
        """One row per frame of a call stack; `stack(key)` returns a whole stack."""
        return self.table("stacks")

    @property
    def symbolic_shapes(self) -> pd.DataFrame:
        """One row per symbol that was created or specialized, and per guard on symbols."""
        return self.table("symbolic_shapes")

    @property
    def export_problems(self) -> pd.DataFrame:
        """One row per problem of an export: a result that can be wrong, or a constraint that cannot hold."""
        return self.table("export_problems")

    @property
    def collectives(self) -> pd.DataFrame:
        """One row per collective operator of a graph, in the order in which they run."""
        return self.table("collectives")

    @property
    def calls(self) -> pd.DataFrame:
        """Calls of each compiled entry, and of each function that torch gave up on; sum the rows of an entry."""
        return self.table("calls")

    @property
    def vllm_configs(self) -> pd.DataFrame:
        """One row per part of a model that vLLM compiles: how it is cut, for which sizes, and what is switched on."""
        return self.table("vllm_configs")

    @property
    def vllm_compiles(self) -> pd.DataFrame:
        """One row per piece of a model and range of sizes that vLLM compiles it for."""
        return self.table("vllm_compiles")

    @property
    def rank_members(self) -> pd.DataFrame:
        """One row per rank of a job that was read group by group: `like` is the rank whose rows the tables have."""
        return self.table("rank_members")

    @property
    def sources(self) -> pd.DataFrame:
        """One row per source: its last state."""
        return self.table("sources")


class _Settled(threading.local):
    """Whether this thread reads what it has flushed already, and the kinds that it has read since."""

    active = False

    def __init__(self) -> None:
        self.kinds: set[type[Event]] = set()


class SessionData(TableProperties):
    """The data of one session file, which this process, another one or nobody is recording to.

    `flush` writes what this process has recorded so far; it is called before the file is read.
    """

    def __init__(self, path: Path, flush: Callable[[bool], None] | None = None):
        self.path = path
        self.store = open_current(path)
        self.lock = threading.RLock()
        self._flush = flush
        self._is_ours = flush is not None
        self._settled = _Settled()
        self._frames: dict[str, tuple[int, pd.DataFrame]] = {}
        self._rows: dict[type[Event], list[Any]] = {}
        self._lost = LostSeconds()
        self._compiles_added = 0
        self._when_ended: list[Callable[[], None]] = []

    @property
    def state(self) -> str:
        """watching (also if another living process records it), stopped (recorded by this process), or loaded."""
        if self._flush is not None:
            return "watching"
        if self._is_ours:
            return "stopped"
        with self.lock:
            return "watching" if unless_damaged(self.store.is_recorded_elsewhere, False) else "loaded"

    @property
    def is_recorded_here(self) -> bool:
        """True while this process records the session."""
        return self._is_ours and self._flush is not None

    def end_recording(self) -> None:
        """The recording is over: from here on the file alone is read."""
        self._flush = None

    def reread_rows(self) -> None:
        """Read all rows that were read before once more: some have changed."""
        with self.lock:
            self._frames.clear()
            for kind in self._rows:
                self._rows[kind] = tables.read_events_of(self.store, kind)
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
                logger.warning("compilediag: what is shown was not updated at the end of the watch: %s", error)

    # Rows and tables

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`. Recompiles have `lost_s`; of each source, the last
        state. Only what was added since the last call is read.
        """
        self.flush(statuses=kind is SourceStatus)
        with self.lock:
            rows = self._stored_events(kind)
            if kind is Recompile:
                return self._with_lost_seconds(rows)  # type: ignore[return-value]
            return keep_last_states(rows) if kind is SourceStatus else rows[:]  # type: ignore[return-value]

    def _stored_events(self, kind: type[Event]) -> list[Any]:
        """Every event of a kind: those that were read before, and what the file has after them."""
        known = self._rows.setdefault(kind, [])
        if not (self._settled.active and kind in self._settled.kinds):
            known += tables.read_events_of(self.store, kind, known[-1].event_id if known else 0)
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
        with self.lock:
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
            store = Store.open(self.path, writable=True)
            try:
                store.set_meta(**values)
            finally:
                store.close()
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
        with self.lock:
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
        return join_texts({name: self.artifact(at) for at, name in of_it})

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
            flush(statuses)

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
            self.store.release()
            try:
                work()
            finally:
                self.store.reopen()

    def release(self) -> None:
        """Close the file; other threads wait until `reopen`."""
        self.lock.acquire()
        self.store.release()

    def reopen(self) -> None:
        """Open the file again, for all threads."""
        try:
            self.store.reopen()
        finally:
            self.lock.release()

    def after_fork_in_child(self) -> None:
        """Open the file again, with a lock that no thread of the parent holds. What is shown is the parent's."""
        self.lock = threading.RLock()
        self._when_ended.clear()
        self.store.reopen()
