"""The data of one session file, read-only: typed rows, DataFrames and texts."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import tempfile
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import CompilediagError
from ..events import Compile, Event, LostSeconds, Recompile, SourceStatus, keep_last_states
from ..system.files import check_replaceable
from ..system.interrupts import pass_on
from . import tables
from .session_files import SESSION_FILE, create_private
from .store import Store
from .table_properties import TableProperties
from .tables import find_last_id, read_columns, unless_damaged
from .texts import inflate

if TYPE_CHECKING:
    import pandas as pd


E = TypeVar("E", bound=Event)


class _Settled(threading.local):
    """Whether this thread reads what it has flushed already, and the kinds that it has read since."""

    active = False

    def __init__(self) -> None:
        self.kinds: set[type[Event]] = set()


class SessionData(TableProperties):
    """The data of one session file. `store` is read instead of the file, if the file can't be read."""

    #: True if this process recorded the session.
    is_ours = False

    def __init__(self, path: Path, store: Store | None = None):
        self.path = path
        self.store = store or Store.open(path)
        self.lock = threading.RLock()
        self._settled = _Settled()
        self._frames: dict[str, tuple[int, pd.DataFrame]] = {}
        self._rows: dict[type[Event], list[Any]] = {}
        self._pool: tables.Pool = {}
        self._lost = LostSeconds()
        self._compiles_added = 0

    @property
    def state(self) -> str:
        """watching while another living process of this machine records the session, else loaded."""
        with self.lock:
            return "watching" if unless_damaged(self.store.is_recorded_elsewhere, False) else "loaded"

    def flush(self, statuses: bool = False) -> None:
        """Bring the file up to date before it is read. `statuses`: what the sources have counted too."""

    def end_warmup(self, on_compile: str) -> None:
        """CompilediagError: the warm-up is ended by the process that records, while it does."""
        raise CompilediagError(f"{self.path} is not being recorded by this process, so its warm-up can't be ended here")

    def write_copy(self, target: Path) -> Path:
        """Write a copy of the session, whole or not at all, and return its path; CompilediagError if it can't be
        written, or is a file that is not a session.
        """
        self.flush()
        try:
            check_replaceable(target, SESSION_FILE)
            with tempfile.TemporaryDirectory(dir=target.parent, prefix=".compilediag-") as folder:
                copy = Path(folder) / target.name
                create_private(copy)
                with self.lock:
                    self.store.connection.execute("VACUUM INTO ?", (str(copy),))
                os.replace(copy, target)
        except (OSError, sqlite3.Error) as error:
            pass_on(error)
            raise CompilediagError(f"{target} can't be written: {error}") from None
        return target

    def reread_rows(self) -> None:
        """Read all rows that were read before once more: some have changed."""
        with self.lock, self.store.snapshot():
            self._frames.clear()
            for kind in self._rows:
                self._rows[kind] = tables.read_events_of(self.store, kind, self._pool)
            self._lost, self._compiles_added = LostSeconds(), 0

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

    # What is not a table

    @property
    def meta(self) -> dict[str, Any]:
        """Facts about the whole session: schema_version, torch_version, detail, pid, created_ns, stopped_ns, ..."""
        with self.lock:
            return self.store.meta()

    def set_meta(self, **values: Any) -> None:
        """Store facts about the session in its file, as JSON. CompilediagError if the file can't be written."""
        try:
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
            events = read_columns(self.store, f"{source} {wanted}", "a.event_id", ["a.event_id", "a.digest"])
            bodies = read_columns(self.store, kept, "p.digest", ["p.digest", "hex(p.body)"])
        by_digest = {digest: bytes.fromhex(body) for digest, body in zip(*bodies, strict=True)}
        return {event_id: by_digest[digest] for event_id, digest in zip(*events, strict=True) if digest in by_digest}

    def stack(self, key: str) -> list[str]:
        """A call stack by its key (column `stack` of compiles, `user_stack`, ...): `file:line function` per frame, the
        outermost first. KeyError if there is none.
        """
        return tables.find_stack(self.stacks, key)

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
