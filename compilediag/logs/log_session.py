"""The session file of logs: their events, and at the end what was read, what was not, and what no log has."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

from ..decode.records.log_process import Item, PackedText
from ..decode.records.trace_log import compute_md5, read_records
from ..errors import CompilediagError
from ..events import KINDS, Artifact, Event, SourceStatus, list_sources
from ..storage.data import find_last_id
from ..storage.rows import Owner, deflate, make_valid, own_fields
from ..storage.store import Store
from .log_decoder import LogDecoder, ReadTally
from .log_files import LogFile, ProgressBar, open_log
from .log_parts import read_in_parts

#: The folder in which each partition has a mark once it is complete, see `dask`.
MARKS = "logs"

#: A batch is written when it has this many events, or bytes of text.
BATCH_EVENTS, BATCH_BYTES = 4_000, 8 << 20
#: Bytes of text that a session keeps; further texts are counted as dropped.
MAX_TEXTS = 4 << 30
#: Digests of texts that are remembered; SQLite ignores a text that is written again.
REMEMBERED = 200_000
INT64 = 1 << 63

#: The sources of a live watch whose data a log has. Of remote caches it has the outcomes of look-ups.
IN_LOGS = {
    *("compiles", "recompiles", "graph_breaks", "phases", "trace", "dynamic"),
    *("fx_graph_cache", "aot_autograd_cache", "remote_cache"),
}
#: Why a log lacks the data of all other sources.
NOT_IN_LOGS = "not available in TORCH_TRACE logs"
#: The source that says what was read.
SOURCE = "logs"


def read_log(
    log: LogFile, store: Store, writer: LogWriter, progress: ProgressBar, before: int, processes: int = 1
) -> ReadTally:
    """Read one log to its end; `before` is the number of bytes read before it. CompilediagError if it can't be read.

    `processes`: how many read it, if it is not compressed.
    """
    first, name, dropped = find_last_id(store, "events"), log.path.name, writer.dropped
    try:
        with contextlib.ExitStack() as opened:
            stream = opened.enter_context(open_log(log.path))
            if processes == 1 or stream.is_compressed:
                reading = read_records(stream)
            else:
                reading = opened.enter_context(read_in_parts(log.path, processes, stream))
            decoder = LogDecoder(log, reading)
            for items, pid, rank in decoder.decode():
                writer.put(items, (rank, pid))
                progress.show(before + stream.position, name)
    except OSError as error:
        raise CompilediagError(f"{log.path} can't be read to its end: {error}") from None
    if stream.stopped:
        decoder.tally.unread[stream.stopped] += 1
    writer.flush()
    with store.connection as db:
        for pid, rank in decoder.find_ranks().items():
            db.execute("UPDATE events SET rank = ? WHERE id > ? AND pid = ? AND rank IS NULL", (rank, first, pid))
    decoder.tally.dropped = writer.dropped - dropped
    return decoder.tally


def write_part(log: LogFile, part: Path, writer: LogWriter, processes: int = 1) -> ReadTally:
    """Read one log into a session file of its own. CompilediagError if it can't be read, or the file not be written.

    A text that `writer` has written to an earlier file is not written again.
    """
    try:
        store = Store.create(part, {}, passing=True)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CompilediagError(f"{part} can't be written: {reason}") from None
    try:
        store.begin_bulk()
        writer.store = store
        return read_log(log, store, writer, ProgressBar(0), 0, processes)
    finally:
        store.connection.close()


# Writing


class LogWriter:
    """Writes the events of logs in batches, each whole or not at all.

    `store` can be replaced after `flush`; texts that were written to the first one are not written again. `dropped` is
    the number of texts that were left out, of which there are at most `max_texts` bytes.
    """

    def __init__(self, store: Store | None, max_texts: int = MAX_TEXTS):
        self.dropped = 0
        self.store = store
        self._events: list[Event] = []
        self._owners: list[Owner] = []
        self._texts: list[tuple[str, bytes | PackedText]] = []
        self._bytes = 0
        self._left = max_texts
        self._digests: set[str] = set()

    def put(self, items: Sequence[Item], owner: Owner) -> None:
        """Write events, and artifacts with their texts. `owner`: rank and pid of their process."""
        for item in items:
            event: Event = self._keep_text(*item) if isinstance(item, tuple) else item
            self._events.append(event)
            self._owners.append(owner)
            if len(self._events) >= BATCH_EVENTS or self._bytes >= BATCH_BYTES:
                self.flush()

    def _keep_text(self, artifact: Artifact, text: bytes | PackedText) -> Artifact:
        """Return the artifact with the size and the digest of its text; without a digest if the text is dropped."""
        if isinstance(text, bytes) and artifact.digest is None:
            artifact = dataclasses.replace(artifact, size=len(text), digest=compute_md5(text))
        if artifact.digest is not None and artifact.digest not in self._digests:
            size = text.size if isinstance(text, PackedText) else len(text)
            if size > self._left:
                self.dropped += 1
                return dataclasses.replace(artifact, digest=None)
            self._left -= size
            if len(self._digests) >= REMEMBERED:
                self._digests.clear()
            self._digests.add(artifact.digest)
            body = text.body if isinstance(text, PackedText) else text
            if body or text == b"":
                self._bytes += len(body)
                self._texts.append((artifact.digest, text))
        return artifact

    def flush(self) -> None:
        """Write everything that was put so far to the file."""
        if self._events and self.store is not None:
            packed = [
                (digest, text.size, text.body)
                if isinstance(text, PackedText)
                else (digest, len(text), deflate(make_valid(text)))
                for digest, text in self._texts
            ]
            self.store.append(clear_misfits(self._events), packed=packed, owners=self._owners)
        self._events, self._owners, self._texts, self._bytes = [], [], [], 0


def clear_misfits(events: Sequence[Event]) -> Sequence[Event]:
    """The events without values that their columns can't hold: a damaged record can have anything."""
    for kind in {*map(type, events)}:
        columns = [*_SHARED_COLUMNS, *((field.name, field.metadata["dtype"]) for field in own_fields(kind))]
        if not _list_misfits(columns, [event for event in events if type(event) is kind]):
            continue
        cleared = []
        for event in events:
            misfits = _list_misfits(columns, [event]) if type(event) is kind else []
            blank: dict[str, Any] = {name: 0 if name == "time_ns" else None for name in misfits}
            cleared.append(dataclasses.replace(event, **blank) if blank else event)
        events = cleared
    return events


_SHARED_COLUMNS = (("time_ns", "time"), ("compile_id", "string"), ("compile_key", "string"), ("duration_s", "float64"))


def _list_misfits(columns: Iterable[tuple[str, str]], events: Sequence[Event]) -> list[str]:
    """The columns that can't hold all values of some events."""
    return [name for name, dtype in columns if not _fit(dtype, [getattr(event, name) for event in events])]


def _fit(dtype: str, values: list[Any]) -> bool:
    if not {*map(type, values)} <= _TYPES[dtype]:
        return False
    is_number = dtype in ("time", "Int64", "float64")
    return not is_number or all(value is None or -INT64 <= value < INT64 for value in values)  # Not for a NaN.


_TYPES: dict[str, set[type]] = {
    "time": {int},
    "string": {str, NoneType},
    "Int64": {int, NoneType},
    "float64": {float, int, NoneType},
    "boolean": {bool, NoneType},
    "json": {list, dict, NoneType},
}


# The end of a session


def finish_session(store: Store, tally: ReadTally, description: str) -> None:
    """Write the states of the sources and the session's times. `description` is that of `describe_tally`."""
    now = time.time_ns()
    missing = {name for kind in KINDS for name in list_sources(kind)} - IN_LOGS
    # A state for every source of a live watch, and one that says what was read.
    states = [SourceStatus(time_ns=now, name=name, status="active") for name in sorted(IN_LOGS)]
    absent: dict[str, Any] = {"status": "unavailable", "reason_code": "not_in_logs", "reason": NOT_IN_LOGS}
    states += (SourceStatus(time_ns=now, name=name, **absent) for name in sorted(missing))
    events, dropped = find_last_id(store, "events"), tally.faults.total() + tally.dropped
    read: dict[str, Any] = {"status": "active", "reason": description, "events": events, "dropped": dropped}
    store.append([*states, SourceStatus(time_ns=now, name=SOURCE, **read)])
    query = "SELECT min(time_ns), max(time_ns + coalesce(duration_s, 0) * 1e9) FROM events WHERE kind <> 'source'"
    first, last = store.connection.execute(query).fetchone()
    if tally.static_sources is not None:
        store.set_meta(static_sources=tally.static_sources)
    store.set_meta(torch_version=tally.torch_version, created_ns=first or now, stopped_ns=int(last or now))
    store.set_meta(ingest=None, ingested=None)


def describe_tally(files: int, copies: int, tally: ReadTally) -> str:
    """Return what was read, as one sentence."""
    parts = [f"ingested from {files} {'file' if files == 1 else 'files'}: {tally.records} records"]
    parts.append(f"{len(tally.unknown)} unknown kinds kept and counted" + _put_in_brackets(tally.unknown))
    parts.append(f"{tally.faults.total()} unread" + _put_in_brackets(tally.faults))
    if copies:
        parts.append(f"{copies} {'copy' if copies == 1 else 'copies'} ignored")
    if tally.other_ranks:
        parts.append(f"the records of {tally.other_ranks} have another rank than the name of the file")
    return ", ".join(parts)


def format_counts(counts: Counter[str]) -> str:
    """Format `3x this, 1x that`, the most frequent first."""
    shown = [f"{number}x {what}" for what, number in counts.most_common(5)]
    return ", ".join(shown) + (f", {len(counts) - 5} more kinds" if len(counts) > 5 else "")


def _put_in_brackets(counts: Counter[str]) -> str:
    return f" ({format_counts(counts)})" if counts else ""
