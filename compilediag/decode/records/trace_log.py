"""Files that TORCH_TRACE wrote, as records: a prefix and a line of JSON, then lines of payload, each after a tab.

Reading streams: one block of the file and one record are in memory. What is not a record, or only part of one, is
reported (`Unread`, `Record.damage`), and reading continues.
torch/_logging/_internal.py defines the format (TorchLogsFormatter, trace_structured); read at torch 2.4, 2.11 and 2.13.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

#: Bytes read at once.
BLOCK = 1 << 20
#: Longer records are dropped: a file without line ends must not fill the memory.
MAX_RECORD = 64 << 20

#: Longer payloads are not repaired.
MAX_REPAIRED = 1 << 20

#: Editors remove the tab from empty lines of a payload: such lines do not end a record.
_RECORD_END = re.compile(rb"\n(?![\r\n]{0,8}\t)")
_LINE_END = 9
#: The text before the JSON. torch starts with the level; launchers that collect logs may add something before it.
_PREFIX = re.compile(
    rb"[^\t{]{0,200}?(?:\[rank(?P<rank>\d{1,9})\]:)?"
    rb"\b[VIWEC](?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) +(?P<process>\d{1,19}) (?P<place>[^\]{]{0,1000})\] (?=\{)"
)


class Stream(Protocol):
    """A file, or what unpacks one."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(slots=True)
class Record:
    """One record. `stamp` is local time without a year; `process` is a process id, before torch 2.5 a thread id.

    `payload` is UTF-8, None if there is none. `damage` says what is wrong with a record that is kept nevertheless.
    """

    stamp: str
    process: int
    metadata: dict[str, Any]
    payload: bytes | None = None
    digest: str | None = None
    damage: str | None = None
    prefix_rank: int | None = None

    @property
    def text(self) -> str:
        return (self.payload or b"").decode("utf-8", "replace")


@dataclass(slots=True)
class Unread:
    """A part of a file that is not a record, and why."""

    why: str
    size: int


def read_records(stream: Stream, max_record: int = MAX_RECORD) -> Iterator[Record | Unread]:
    """Yield the records of one log in its order. Exceptions of the stream pass through."""
    torn: Record | None = None
    for piece in _split_records(stream, max_record):
        read = piece if isinstance(piece, Unread) else parse_record(piece)
        if read is None:
            continue
        if torn is not None:
            if isinstance(read, Record) and read.damage == MD5:
                _separate(torn, read)
            yield torn
            torn = None
        if isinstance(read, Record) and read.damage == MD5:
            torn = read
        else:
            yield read
    if torn is not None:
        yield torn


def _split_records(stream: Stream, max_record: int) -> Iterator[bytes | Unread]:
    """Yield the bytes of each record. The line after a line end decides whether it ends a record."""
    held: list[bytes] = []
    size = 0
    ends = b""
    while block := stream.read(BLOCK):
        block = ends + block
        text = block.rstrip(b"\r\n")
        ends = block[len(text) :][:_LINE_END]
        first, *others = _RECORD_END.split(text)
        size += len(first)
        if size <= max_record:
            held.append(first)
        if others:
            yield b"".join(held) if size <= max_record else _make_too_long(size, max_record)
            yield from others[:-1]
            held, size = [others[-1]], len(others[-1])
    yield b"".join(held) if size <= max_record else _make_too_long(size, max_record)


def _make_too_long(size: int, max_record: int) -> Unread:
    return Unread(f"longer than {max_record >> 20} MB", size)


MD5 = "payload differs from its md5"


def parse_record(piece: bytes) -> Record | Unread | None:
    """Parse one record; None for an empty line."""
    head, newline, body = piece.partition(b"\n")
    found = _PREFIX.match(head)
    if found is None:
        return None if not piece.strip() else Unread(_describe_line(head), len(piece))
    try:
        metadata, damage = json.loads(head[found.end() :].decode()), None
    except UnicodeDecodeError:
        metadata, damage = _parse_damaged(head[found.end() :]), "not UTF-8"
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        return Unread("no valid JSON", len(piece))
    rank = found["rank"]
    record = Record(found["stamp"].decode(), int(found["process"]), metadata, damage=damage)
    record.prefix_rank = None if rank is None else int(rank)
    _add_payload(record, body if newline else None)
    return record


def _describe_line(head: bytes) -> str:
    if head.startswith(b"\t"):
        return "payload without a record"
    return "no log line" if not re.match(rb"[VIWEC]\d{4} ", head) else "log line without a record"


def _parse_damaged(text: bytes) -> Any:
    try:
        return json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def _add_payload(record: Record, body: bytes | None) -> None:
    expected = record.metadata.get("has_payload")
    if body is None:
        if expected:
            record.damage = MD5
        return
    payload = body[1:].replace(b"\n\t", b"\n")
    record.payload, record.digest = payload, _hash(payload)
    if record.digest != expected and b"\r" in payload:
        # Line ends of another system.
        plain = payload.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if _hash(plain) == expected:
            record.payload, record.digest = plain, _hash(plain)
    if record.digest != expected and isinstance(expected, str):
        record.damage = MD5


def _separate(first: Record, second: Record) -> None:
    """Separate the payloads of two records that two processes wrote to one file at once.

    The second one began before the first had ended, so the last lines of the first follow those of the second.
    """
    if len(second.payload or b"") > MAX_REPAIRED:
        return
    lines = (second.payload or b"").split(b"\n")
    md5, wanted = hashlib.md5(usedforsecurity=False), second.metadata.get("has_payload")
    for number, line in enumerate(lines, 1):
        md5.update(line)
        if md5.hexdigest() == wanted:
            rest = b"\n".join(lines[number:])
            whole = rest if first.payload is None else first.payload + b"\n" + rest
            if _hash(whole) == first.metadata.get("has_payload"):
                second.payload, second.digest, second.damage = b"\n".join(lines[:number]), wanted, None
                first.payload, first.digest, first.damage = whole, _hash(whole), None
            return
        md5.update(b"\n")


def _hash(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
