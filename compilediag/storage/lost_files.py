"""A session whose file is lost goes on in memory: what can be read of the file, what waited to be written, and the last
states of its sources.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from .. import own_log
from ..errors import CompilediagError
from ..events import SourceStatus
from ..interrupts import ignore, pass_on
from .rows import insert_rows
from .session_writer import BUSY, Batch, Unwritten, append_batch
from .store import Store
from .tables import read_rows


def copy_to_memory(store: Store, application_id: int, last_id: int) -> tuple[Store, bool]:
    """A session in memory with what can be read of the file, and whether that is all. The connection of `store` is
    closed.

    `application_id`: that of the session; a file that has another one is not read. New events have ids above `last_id`,
    also if nothing can be read.
    """
    memory = _copy_pages(store, application_id)
    is_whole = memory is not None
    if memory is None:
        memory = Store.create_in_memory(store.path, {})
        # Opened again, SQLite looks at what is left of the -wal file.
        source = _open_again(store) if store.is_in_place else store
        if source is not None:
            memory = _copy_pages(source, application_id) or _copy_rows(source, application_id, memory)
            source.release()
    store.release()
    memory.last_id = last_id
    return memory, is_whole


def reopen_or_empty(store: Store, application_id: int) -> Store:
    """The file, opened in whatever way can still read it; an empty session in memory if none can."""
    found = _open_again(store) if store.is_in_place else None
    if found is not None and found.application_id == application_id:
        return found
    return Store.create_in_memory(store.path, {})


def add_unwritten(memory: Store, unwritten: Unwritten, facts: Mapping[str, Any], is_whole: bool) -> None:
    """Add what waited to be written, the states of the sources, and `facts` to the meta. Nothing compiles any more."""
    while unwritten.batches:
        _add_batch(memory, unwritten.batches.popleft())
    memory.append(unwritten.states if is_whole else _mark_lost(unwritten.states))
    memory.set_meta(**facts)
    memory.set_progress({})


def _add_batch(memory: Store, batch: Batch) -> None:
    try:
        append_batch(memory, batch)
    except Exception as why:
        pass_on(why)
        own_log.debug("compilediag: a batch is added one by one: %s", why)
        for event in batch.events:
            with ignore(Exception):
                append_batch(memory, dataclasses.replace(batch, events=[event]))


def _mark_lost(states: Sequence[SourceStatus]) -> Sequence[SourceStatus]:
    """What an active source saw is lost with the file."""
    reason = next((state.reason for state in states if state.reason_code == "lost"), None)
    return [
        dataclasses.replace(state, status="failed", reason_code="lost", reason=reason)
        if state.status == "active"
        else state
        for state in states
    ]


def _open_again(store: Store) -> Store | None:
    store.release()
    try:
        return Store.open(store.path)
    except CompilediagError:
        return None


def _copy_pages(source: Store, application_id: int) -> Store | None:
    """A copy of the whole file; None if it is damaged or another one."""
    copy = Store.in_memory(source.path)
    try:
        source.connection.backup(copy.connection, progress=_raise_if_busy)
        is_whole = copy.connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
        if is_whole and copy.application_id == application_id:
            return copy
    except sqlite3.Error:
        pass
    copy.connection.close()
    return None


def _raise_if_busy(status: int, remaining: int, total: int) -> None:
    """Python repeats a step of a copy for as long as another process has the file locked."""
    if status & 0xFF in BUSY:
        raise sqlite3.OperationalError("database is locked")


def _copy_rows(source: Store, application_id: int, memory: Store) -> Store:
    """Copy the rows that can be read of a damaged file, if it is not another one."""
    if source.application_id != application_id:
        return memory
    tables = memory.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (table,) in tables:
        names = [f'"{name}"' for _, name, *_ in memory.connection.execute(f"PRAGMA table_info({table})")]
        with contextlib.suppress(sqlite3.Error):
            rows = read_rows(source, f"SELECT {', '.join(names)} FROM {table}", names[0])
            insert_rows(memory.connection, f"OR REPLACE INTO {table}", names, rows, is_bulk=False)
    return memory
