"""Files that TORCH_TRACE wrote, as records: a line of JSON behind a prefix, and lines of payload, each after a tab.

Reading is streaming: what is held is one block of the file and one record. It takes what it finds: what is
no record, or is one only in part, is said to be so (`Unread`, `Record.damage`), and the reading goes on.
torch/_logging/_internal.py writes the format (TorchLogsFormatter, trace_structured); read at torch 2.4, 2.11 and 2.13.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

#: Bytes that are read at once.
BLOCK = 1 << 20
#: A longer record is not kept: a file without line ends must not take the memory.
MAX_RECORD = 64 << 20

#: Longer payloads are not taken apart to be mended.
MAX_MENDED = 1 << 20

#: Editors take the tab away from a payload's empty lines: such lines are looked over.
_RECORD_END = re.compile(rb"\n(?![\r\n]{0,8}\t)")
_LOOKED_OVER = 9
#: What comes before the JSON. torch puts nothing before the level; launchers that collect logs may.
_PREFIX = re.compile(
    rb"[^\t{]{0,200}?(?:\[rank(?P<rank>\d{1,9})\]:)?"
    rb"\b[VIWEC](?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) +(?P<process>\d{1,19}) (?P<place>[^\]{]{0,1000})\] (?=\{)"
)


class Stream(Protocol):
    """What is read: a file, or what unpacks one."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(slots=True)
class Record:
    """One record. `stamp` is local time without a year; `process` a process id, before torch 2.5 a thread's.

    `payload` is UTF-8, None if there is none. `damage` says what is wrong with a record that is kept all the same.
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
    """A stretch of a file that is no record, and why."""

    why: str
    size: int


def read_records(stream: Stream, max_record: int = MAX_RECORD) -> Iterator[Record | Unread]:
    """The records of one log, in its order. Whatever the stream raises passes through."""
    torn: Record | None = None
    for piece in _pieces(stream, max_record):
        read = piece if isinstance(piece, Unread) else parse_record(piece)
        if read is None:
            continue
        if torn is not None:
            if isinstance(read, Record) and read.damage == MD5:
                _untangle(torn, read)
            yield torn
            torn = None
        if isinstance(read, Record) and read.damage == MD5:
            torn = read
        else:
            yield read
    if torn is not None:
        yield torn


def _pieces(stream: Stream, max_record: int) -> Iterator[bytes | Unread]:
    """The bytes of one record after the other. Whether a line end closes a record, the line behind it says."""
    held: list[bytes] = []
    size = 0
    ends = b""
    while block := stream.read(BLOCK):
        block = ends + block
        text = block.rstrip(b"\r\n")
        ends = block[len(text) :][:_LOOKED_OVER]
        first, *others = _RECORD_END.split(text)
        size += len(first)
        if size <= max_record:
            held.append(first)
        if others:
            yield b"".join(held) if size <= max_record else _too_long(size, max_record)
            yield from others[:-1]
            held, size = [others[-1]], len(others[-1])
    yield b"".join(held) if size <= max_record else _too_long(size, max_record)


def _too_long(size: int, max_record: int) -> Unread:
    return Unread(f"longer than {max_record >> 20} MB", size)


MD5 = "payload differs from its md5"


def parse_record(piece: bytes) -> Record | Unread | None:
    """One record from its bytes; None of an empty line."""
    head, newline, body = piece.partition(b"\n")
    found = _PREFIX.match(head)
    if found is None:
        return None if not piece.strip() else Unread(_what_instead(head), len(piece))
    try:
        metadata, damage = json.loads(head[found.end() :].decode()), None
    except UnicodeDecodeError:
        metadata, damage = _leniently(head[found.end() :]), "not UTF-8"
    except (ValueError, RecursionError):
        metadata = None
    if not isinstance(metadata, dict):
        return Unread("no valid JSON", len(piece))
    rank = found["rank"]
    record = Record(found["stamp"].decode(), int(found["process"]), metadata, damage=damage)
    record.prefix_rank = None if rank is None else int(rank)
    _add_payload(record, body if newline else None)
    return record


def _what_instead(head: bytes) -> str:
    if head.startswith(b"\t"):
        return "payload without a record"
    return "no log line" if not re.match(rb"[VIWEC]\d{4} ", head) else "log line without a record"


def _leniently(text: bytes) -> Any:
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
    record.payload, record.digest = payload, _md5(payload)
    if record.digest != expected and b"\r" in payload:
        # Line ends as another system writes them.
        plain = payload.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if _md5(plain) == expected:
            record.payload, record.digest = plain, _md5(plain)
    if record.digest != expected and isinstance(expected, str):
        record.damage = MD5


def _untangle(first: Record, second: Record) -> None:
    """Mend two records whose payloads got mixed, as when two processes write to one file: the second began before the
    first was over, so that the first one's last lines follow the second one's.
    """
    if len(second.payload or b"") > MAX_MENDED:
        return
    lines = (second.payload or b"").split(b"\n")
    md5, wanted = hashlib.md5(usedforsecurity=False), second.metadata.get("has_payload")
    for number, line in enumerate(lines, 1):
        md5.update(line)
        if md5.hexdigest() == wanted:
            rest = b"\n".join(lines[number:])
            whole = rest if first.payload is None else first.payload + b"\n" + rest
            if _md5(whole) == first.metadata.get("has_payload"):
                second.payload, second.digest, second.damage = b"\n".join(lines[:number]), wanted, None
                first.payload, first.digest, first.damage = whole, _md5(whole), None
            return
        md5.update(b"\n")


def _md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
