"""One large log, read by several processes: each parses parts of it, and one process decodes all records in order.

Where the parts begin makes no difference: what needs more than one record is done by the process that has them all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..decode.records.packed_records import pack_records, unpack_records
from ..decode.records.trace_log import LINE_ENDS, RECORD_END, Record, Unread, parse_records, separate_torn
from ..errors import CompilediagError
from ..storage.texts import deflate, make_valid
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
