"""One large log, read by several processes: each parses parts of it, and one process decodes all records in order.

Where the parts begin makes no difference: what needs more than one record is done by the process that has them all.
What needs only the record is done before, and the record is sent as bytes. Records are packed some at a time: the time
that `marshal` takes per object grows with their number.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from ..decode.records.cache_records import PROFILES
from ..decode.records.compilation_metrics import KINDS as METRICS
from ..decode.records.record_kinds import TIMED, bound_payload
from ..decode.records.trace_log import (
    LINE_ENDS,
    MD5,
    RECORD_END,
    Record,
    Unread,
    parse_json,
    parse_records,
    separate_torn,
)
from ..errors import CompilediagError
from ..storage.rows import deflate, make_valid
from .log_files import LogStream
from .workers import start_workers

#: Bytes of a part. A part has the records that begin in it.
PART = 2 << 20
#: Parts at the start of a log that are read while the other processes start.
FIRST = 3
#: Processes that parse parts; decoding takes longer than parsing, so more would wait.
ENOUGH = 2
#: Bytes read at once to find where a record begins.
SEARCHED = 1 << 16
#: Digests of texts that a process has sent; the other one has them.
REMEMBERED = 200_000


@contextmanager
def read_in_parts(path: Path, processes: int, stream: LogStream) -> Iterator[Iterator[Record | Unread]]:
    """Read the records of an uncompressed log with other processes; leaving the block ends them.

    `processes`: how many there are at most.
    """
    size = path.stat().st_size
    parts = range(-(-size // PART))
    first, others = parts[:FIRST], parts[FIRST:]

    def read() -> Iterator[Record | Unread]:
        with path.open("rb") as file:
            for part in first:
                yield from parse_records(PartStream(file, part * PART, (part + 1) * PART, size))
        for number, part in enumerate(others):
            stream.position = part * PART
            yield from unpack_records(workers[number % len(workers)].take(path))

    count = min(processes, ENOUGH, len(others))
    shares = [[*others[own::count]] for own in range(count)]
    with start_workers(parse_parts, [[str(path.absolute()), own, PART, size] for own in shares]) as workers:
        yield separate_torn(read())


class PartStream:
    """The bytes of the records of a log of `size` bytes that begin in a part of it."""

    def __init__(self, file: BinaryIO, begin: int, end: int, size: int):
        self._file = file
        start = find_record(file, begin, end) if begin else 0
        self._left = 0
        if start is not None:
            last = find_record(file, end, size) if end < size else None
            self._left = (size if last is None else last) - start
            file.seek(start)

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data


def find_record(file: BinaryIO, begin: int, end: int) -> int | None:
    """Return where the first record begins that begins at `begin` or after it and before `end`; None if none does."""
    position, held = begin - 1, b""
    file.seek(position)
    while position < end:
        block = file.read(SEARCHED)
        held += block
        # After that, bytes of the next block decide.
        sure = max(len(held) - LINE_ENDS, 0) if block else len(held)
        found = RECORD_END.search(held)
        if found is not None and found.start() < sure:
            start = position + found.end()
            return start if start < end else None
        if not block:
            return None
        position, held = position + sure, held[sure:]
    return None


# In the process


def parse_parts(path: str, parts: list[int], part_size: int, size: int) -> Iterator[list[bytes]]:
    """Yield the records of some parts of a log as bytes. A text is sent once."""
    sent: set[str] = set()

    def pack(digest: str, text: bytes) -> bytes:
        if digest in sent:
            return b""
        if len(sent) >= REMEMBERED:
            sent.clear()
        sent.add(digest)
        return deflate(make_valid(text))

    try:
        with open(path, "rb") as file:
            for part in parts:
                stream = PartStream(file, part * part_size, (part + 1) * part_size, size)
                yield pack_records(parse_records(stream), pack)
    except OSError as error:
        raise CompilediagError(f"{path} can't be read to its end: {error}") from None


# Records as bytes

#: Records that are packed together.
TOGETHER = 64
#: Bytes of a timed event that has arguments nobody reads.
LONG = 1_000
#: The fields of a record, in the order of its arguments.
_Fields = tuple[Any, ...]
#: Returns a text compressed, given its digest; empty bytes if it has returned that text before.
Pack = Callable[[str, bytes], bytes]


def pack_records(reading: Iterable[Record | Unread], pack: Pack) -> list[bytes]:
    """Return records as bytes."""
    left, sent = iter(reading), []
    while some := list(islice(left, TOGETHER)):
        packed = [_list_fields(read, pack) for read in some]
        try:
            sent.append(marshal.dumps(packed))
        except ValueError:  # Nested too deeply: the other process parses the texts again.
            sent.append(marshal.dumps([_leave_unparsed(*pair) for pair in zip(some, packed, strict=True)]))
    return sent


def unpack_records(packed: Iterable[bytes]) -> Iterator[Record | Unread]:
    """Yield the records that `pack_records` was given, from its result."""
    for some in packed:
        for fields in marshal.loads(some):
            read = Record(*fields) if len(fields) > 2 else Unread(*fields)
            if isinstance(read, Record) and read.metadata is None:
                read.metadata = parse_json(read.fields)
            yield read


def _list_fields(read: Record | Unread, pack: Pack) -> _Fields:
    if isinstance(read, Unread):
        return read.why, read.size
    payload, packed, event = read.payload, None, None
    if payload is not None and read.digest is not None and read.damage != MD5:
        if read.kind == TIMED:
            try:
                event = read.parse_event()
            except (ValueError, RecursionError):
                event = None  # The other process counts it.
            if event is not None:
                payload, event = None, _shorten(event) if read.size > LONG else event
        else:
            packed = pack(read.digest, bound_payload(read.kind, payload))
    # Of metrics only the parsed fields are read.
    fields = "" if read.kind in METRICS else read.fields
    return _make_fields(read, read.metadata, payload, fields, event, packed)


def _make_fields(
    read: Record, metadata: Any, payload: bytes | None, fields: str, event: Any, packed: bytes | None
) -> _Fields:
    about = (read.digest, read.damage, read.prefix_rank, fields, read.size)
    return read.stamp, read.process, metadata, read.kind, read.compile_id, payload, *about, event, packed


def _shorten(event: Any) -> Any:
    """Return an event without the arguments of an end that nobody reads."""
    arguments = event.get("args") if isinstance(event, dict) else None
    if not isinstance(arguments, dict) or event.get("ph") != "E" or str(event.get("name")).startswith(PROFILES):
        return event
    return {**event, "args": {"compile_id": arguments.get("compile_id")}}


def _leave_unparsed(read: Record | Unread, fields: _Fields) -> _Fields:
    if isinstance(read, Unread):
        return fields
    metadata = None if read.fields else read.metadata
    return _make_fields(read, metadata, read.payload, read.fields, None, fields[-1])
