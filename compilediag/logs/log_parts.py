"""One large log, read by several processes: each parses parts of it, and one process decodes all records in order.

Where the parts begin makes no difference: what needs more than one record is done by the process that has them all.
"""

from __future__ import annotations

import itertools
import marshal
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from ..decode.records.packed_records import pack_records, unpack_records
from ..decode.records.trace_log import LINE_ENDS, RECORD_END, Record, Unread, parse_records, separate_torn
from ..storage.texts import deflate, make_valid
from .crew import Crew, Question
from .log_files import LogStream

#: Bytes of a part, at least.
PART = 2 << 20
#: Parts that may wait for their turn, for each process.
AHEAD = 2
#: Processes that parse parts; decoding takes longer than parsing, so more would wait.
ENOUGH = 2
#: Parts at the start of a log that are read while the other processes start.
FIRST = 3
#: Bytes read at once to find the end of a part.
SEARCHED = 1 << 16
#: Digests of texts that a process has sent; the other one has them.
REMEMBERED = 200_000
READ_PART = "part"


@contextmanager
def read_with_crew(path: Path, processes: int, stream: LogStream) -> Iterator[Iterator[Record | Unread]]:
    """Read the records of an uncompressed log with other processes; leaving the block ends them.

    `processes`: how many there are, with this one.
    """

    def ask() -> Iterator[Question]:
        for begin, end in itertools.chain(first[FIRST:], parts):
            yield [READ_PART, str(path.absolute()), begin, end]
            stream.position = begin

    def read() -> Iterator[Record | Unread]:
        for begin, end in first[:FIRST]:
            yield from parse_records(PartStream(own, begin, end))
        for answer in crew.take_answers() if crew is not None else ():
            yield from unpack_records(answer)

    with path.open("rb") as file, path.open("rb") as own:
        parts = find_parts(file, PART)
        first = list(itertools.islice(parts, FIRST + 1))
        with Crew(ask(), processes, processes * AHEAD) if len(first) > FIRST else nullcontext() as crew:
            yield separate_torn(read())


def find_parts(file: BinaryIO, size: int) -> Iterator[tuple[int, int]]:
    """Yield begin and end of parts of a log. Each begins with a record and has `size` bytes or one record."""
    begin, total = 0, os.fstat(file.fileno()).st_size
    while begin < total:
        end = find_record(file, begin + size)
        yield begin, total if end is None else end
        begin = total if end is None else end


def find_record(file: BinaryIO, at: int) -> int | None:
    """Return where the first record begins that begins at `at` or after it; None if there is none."""
    position, held = at - 1, b""
    file.seek(position)
    while True:
        block = file.read(SEARCHED)
        held += block
        # After that, bytes of the next block decide.
        sure = max(len(held) - LINE_ENDS, 0) if block else len(held)
        found = RECORD_END.search(held)
        if found is not None and found.start() < sure:
            return position + found.end()
        if not block:
            return None
        position, held = position + sure, held[sure:]


class PartStream:
    """The bytes of a part of a file."""

    def __init__(self, file: BinaryIO, begin: int, end: int):
        self._file = file
        self._left = end - begin
        file.seek(begin)

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes; none at the end."""
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data


# In the process


class PartReader:
    """Reads parts of logs for another process."""

    def __init__(self) -> None:
        self._sent: set[str] = set()

    def read(self, question: Question) -> bytes:
        """Return the records of a part as bytes."""
        _, path, begin, end = question
        try:
            with open(path, "rb") as file:
                return pack_records(parse_records(PartStream(file, begin, end)), self._pack)
        except OSError as error:
            return marshal.dumps({"error": f"{path} can't be read to its end: {error}"})

    def _pack(self, digest: str, text: bytes) -> bytes:
        if digest in self._sent:
            return b""
        if len(self._sent) >= REMEMBERED:
            self._sent.clear()
        self._sent.add(digest)
        return deflate(make_valid(text))
