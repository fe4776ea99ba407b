"""Files that TORCH_TRACE wrote, as records: a prefix and a line of JSON, then lines of payload, each after a tab.

Reading streams: one block of the file and one record are in memory. What is not a record, or only part of one, is
reported (`Unread`, `Record.damage`), and reading continues. `LogClock` has the time of a record: its prefix is local
time without a year, and some records have an absolute time too.
torch/_logging/_internal.py defines the format (TorchLogsFormatter, trace_structured); read at torch 2.4, 2.11 and 2.13.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from .record_kinds import find_compile_id, find_kind

#: Bytes read at once.
BLOCK = 1 << 17
#: Longer records are dropped: a file without line ends must not fill the memory.
MAX_RECORD = 64 << 20

#: Longer payloads are not repaired.
MAX_REPAIRED = 1 << 20

#: Editors remove the tab from empty lines of a payload: such lines do not end a record.
RECORD_END = re.compile(rb"\n(?![\r\n]{0,8}\t)")
#: The bytes after a line end that decide whether it ends a record.
LINE_ENDS = 9
#: The text before the JSON. torch starts with the level; launchers that collect logs may add something before it.
_PREFIX = re.compile(
    rb"[^\t{]{0,200}?(?:\[rank(?P<rank>\d{1,9})\]:)?"
    rb"\b[VIWEC](?P<stamp>\d{4} \d\d:\d\d:\d\d\.\d{6}) +(?P<process>\d{1,19}) (?P<place>[^\]{]{0,1000})\] (?=\{)"
)


#: The start of a timed event, as most records are. Within a compile they differ in their times and digests only.
_TIMED = re.compile(
    rb"[VIWEC](\d{4} \d\d:\d\d:\d\d\.\d{6}) (\d{1,19} [^\]{\n]{0,1000}\] "
    rb'\{"chromium_event": [^\n]{0,1000}), "has_payload": "([0-9a-f]{32})"\}\n\t'
)
#: Line ends at the end of a block.
_LAST_ENDS = re.compile(rb"[\r\n]*\Z")
_decode_json = json.JSONDecoder().raw_decode


class Stream(Protocol):
    """A file, or what unpacks one."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(slots=True)
class Record:
    """One record. `stamp` is local time without a year; `process` is a process id, before torch 2.5 a thread id.

    `kind` is its kind, `compile_id` its compile. `metadata` are its fields, `fields` is their JSON as it was logged; a
    timed event has none. `payload` is UTF-8, None if there is none, `digest` its md5 and `size` its bytes. `damage`
    says what is wrong with a record that is kept nevertheless.

    A process that reads for another one sends no payload of timed events, which it has parsed, as `event`. It sends
    other payloads compressed too, as `packed`; that is empty if it has sent the same text before.
    """

    stamp: str
    process: int
    metadata: dict[str, Any]
    kind: str
    compile_id: str | None
    payload: bytes | None = None
    digest: str | None = None
    damage: str | None = None
    prefix_rank: int | None = None
    fields: str = ""
    size: int = 0
    event: Any = None
    packed: bytes | None = None

    @property
    def text(self) -> str:
        return (self.payload or b"").decode("utf-8", "replace")

    def parse_event(self) -> Any:
        """Return the payload of a timed event. UnicodeDecodeError or ValueError if it is no JSON."""
        if self.event is None:
            self.event = parse_json((self.payload or b"").decode())
        return self.event


@dataclass(slots=True)
class Unread:
    """A part of a file that is not a record, and why."""

    why: str
    size: int


def read_records(stream: Stream, keep: Callable[[bytes], bool] | None = None) -> Iterator[Record | Unread]:
    """Yield the records of one log in its order, those that `keep` accepts. Exceptions of the stream pass through."""
    return separate_torn(parse_records(stream, keep))


def parse_records(stream: Stream, keep: Callable[[bytes], bool] | None = None) -> Iterator[Record | Unread]:
    """Yield the records of one log, or of a part of one, each parsed alone. `keep` decides from a record's bytes."""
    for piece in _split_records(stream):
        if keep is not None and isinstance(piece, bytes) and not keep(piece):
            continue
        read = piece if isinstance(piece, Unread) else parse_record(piece)
        if read is not None:
            yield read


def separate_torn(reading: Iterable[Record | Unread]) -> Iterator[Record | Unread]:
    """Yield the records of one log with the payloads that two processes wrote into each other separated again."""
    torn: Record | None = None
    for read in reading:
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


def _split_records(stream: Stream) -> Iterator[bytes | Unread]:
    """Yield the bytes of each record. The line after a line end decides whether it ends a record."""
    held: list[bytes] = []
    size = 0
    ends = b""
    is_over = False
    while not is_over:
        block = stream.read(BLOCK)
        is_over = not block
        text = ends + block if ends else block
        # Line ends at the end of the block may belong to an empty line of a payload.
        ends = b"" if is_over else _LAST_ENDS.search(text, len(text) - LINE_ENDS)[0]  # type: ignore[index]
        text = text[: len(text) - len(ends)] if ends else text
        first, *others = RECORD_END.split(text)
        size += len(first)
        if size <= MAX_RECORD:
            held.append(first)
        if others:
            yield _join(held, size)
            yield from others[:-1]
            held, size = [others[-1]], len(others[-1])
    yield _join(held, size)


def _join(held: list[bytes], size: int) -> bytes | Unread:
    return b"".join(held) if size <= MAX_RECORD else Unread(f"longer than {MAX_RECORD >> 20} MB", size)


MD5 = "payload differs from its md5"


def parse_record(piece: bytes) -> Record | Unread | None:
    """Parse one record; None for an empty line."""
    if (timed := _TIMED.match(piece)) is not None and (shared := _parse_shared(timed[2])) is not None:
        number, own, kind, compile_id = shared
        record = Record(timed[1].decode(), number, {**own, "has_payload": timed[3].decode()}, kind, compile_id)
        _add_payload(record, piece[timed.end() :])
        return record
    end = piece.find(b"\n")
    head = piece if end < 0 else piece[:end]
    found = _PREFIX.match(head)
    if found is None:
        return None if not piece.strip() else Unread(_describe_line(head), len(piece))
    text = head[found.end() :]
    try:
        fields, damage = text.decode(), None
    except UnicodeDecodeError:
        fields, damage = text.decode("utf-8", "replace"), "not UTF-8"
    metadata = _parse_fields(fields)
    if metadata is None:
        return Unread("no valid JSON", len(piece))
    rank, stamp, process = found.group("rank", "stamp", "process")
    kind, compile_id = find_kind(metadata) or "", find_compile_id(metadata)
    record = Record(stamp.decode(), int(process), metadata, kind, compile_id, damage=damage, fields=fields)
    record.prefix_rank = None if rank is None else int(rank)
    if end >= 0:
        _add_payload(record, piece[end + 2 :])
    elif metadata.get("has_payload"):
        record.damage = MD5
    return record


def _describe_line(head: bytes) -> str:
    if head.startswith(b"\t"):
        return "payload without a record"
    return "no log line" if not re.match(rb"[VIWEC]\d{4} ", head) else "log line without a record"


def _parse_fields(text: str) -> dict[str, Any] | None:
    """Return the fields of a record; None if the text is no JSON object."""
    try:
        fields = parse_json(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


@functools.lru_cache(64)
def _parse_shared(text: bytes) -> tuple[int, dict[str, Any], str, str | None] | None:
    """Return what the timed events of a compile have in common: process, fields, kind and compile id."""
    try:
        fields = _parse_fields(text[text.index(b"] {") + 2 :].decode() + "}")
    except UnicodeDecodeError:
        return None
    process = int(text[: text.index(b" ")])
    return None if fields is None else (process, fields, find_kind(fields) or "", find_compile_id(fields))


def parse_json(text: str) -> Any:
    """Return `json.loads(text)`, without what that does before and after the parsing of a short text."""
    try:
        value, end = _decode_json(text)
    except ValueError:
        end = None
    return value if end == len(text) else json.loads(text)


def _add_payload(record: Record, lines: bytes) -> None:
    """Add a payload, whose lines begin with a tab, but for the first."""
    expected = record.metadata.get("has_payload")
    # Removing all tabs is ten times as fast; the md5 shows whether the payload has tabs of its own.
    _set_payload(record, lines.replace(b"\t", b""))
    if record.digest == expected:
        return
    payload = lines.replace(b"\n\t", b"\n")
    _set_payload(record, payload)
    if record.digest != expected and b"\r" in payload:
        # Line ends of another system.
        plain = payload.replace(b"\r\n", b"\n").removesuffix(b"\r")
        if compute_md5(plain) == expected:
            _set_payload(record, plain)
    if record.digest != expected and isinstance(expected, str):
        record.damage = MD5


def _set_payload(record: Record, payload: bytes) -> None:
    record.payload, record.size, record.digest = payload, len(payload), compute_md5(payload)


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
            if compute_md5(whole) == first.metadata.get("has_payload"):
                _set_payload(first, whole)
                _set_payload(second, b"\n".join(lines[:number]))
                first.damage = second.damage = None
            return
        md5.update(b"\n")


def compute_md5(data: bytes) -> str:
    """Return the digest that torch names a payload by."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


#: Names that are remembered.
MAX_NAMES = 200_000


class FileNames(dict[int, str]):
    """The names of files by the numbers that torch writes instead of them."""

    def __init__(self) -> None:
        super().__init__()
        self._completed: dict[str, str] = {}

    def add(self, text: object, number: object) -> None:
        """Remember a name as torch logs it."""
        if isinstance(text, str) and isinstance(number, int) and len(self) < MAX_NAMES:
            self[number] = text
            self._completed.clear()

    def complete(self, path: str | None) -> str | None:
        """Return the whole path of a file whose name a guard shortens.

        torch removes the folders that a path shares with its own, and one more character for the slash: where they
        share none, that is the first letter.
        """
        if path is None:
            return None
        if path not in self._completed:
            whole = (name for name in self.values() if name.endswith(f"/{path}") or name[2:] == path)
            self._completed[path] = path if path.startswith("/") else next(whole, path)
        return self._completed[path]


SECOND = 1_000_000_000
#: Time zones are quarters of an hour apart.
QUARTER = 900 * SECOND
DAY = 86_400 * SECOND


class LogClock:
    """Converts stamps to nanoseconds since 1970, given the first records of a log.

    A stamp has no year: its year is found from the time of the stamp before it. That of the first one is found from the
    first absolute time, or without one from the file's last change; then the zone is UTC.
    """

    def __init__(self, records: Sequence[Record], changed_ns: int):
        absolute = (
            (ns, local)
            for record in records
            if (ns := read_absolute_ns(record)) is not None and (local := _find_first(record.stamp, ns)) is not None
        )
        end, local = next(absolute, (changed_ns, changed_ns))
        self._offset = round((end - local) / QUARTER) * QUARTER
        # The last stamp without its microseconds, and its time in the log's own zone.
        self._whole = ""
        firsts = (_find_first(record.stamp, local) for record in records)
        self._last = next((first for first in firsts if first is not None), local // SECOND * SECOND)

    def convert(self, stamp: str) -> int:
        """Return the time of a stamp, `1121 13:54:23.654000`."""
        if stamp[:-7] != self._whole:
            self._whole = stamp[:-7]
            self._last = self._find_second(stamp)
        return self._last + self._offset + int(stamp[-6:]) * 1000

    def _find_second(self, stamp: str) -> int:
        """Return the earliest time after the last stamp. Threads write lines late, and clocks are set back, so it can
        be before it: by a day in the year before, by half a year in the same year.
        """
        year = _find_year(self._last)
        for number, earliest in ((year - 1, self._last - DAY), (year, self._last - 180 * DAY), (year + 1, 0)):
            second = _read_second(stamp, number)
            if second is not None and second >= earliest:
                return second
        return self._last


def _find_first(stamp: str, end: int) -> int | None:
    """Return the last time of a stamp before `end`, or up to a day after it; None for a damaged one."""
    year = _find_year(end)
    seconds = (_read_second(stamp, number) for number in range(year + 1, year - 9, -1))  # Eight years have a leap day.
    return next((second for second in seconds if second is not None and second <= end + DAY), None)


def _read_second(stamp: str, year: int) -> int | None:
    """Return the time of a stamp in a year; None for a damaged prefix, or the 29th of February of another year."""
    month, day, hour, minute, second = (int(stamp[at : at + 2]) for at in (0, 2, 5, 8, 11))
    try:
        return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()) * SECOND
    except ValueError:
        return None


def _find_year(ns: int) -> int:
    return datetime.fromtimestamp(ns // SECOND, UTC).year


def read_absolute_ns(record: Record) -> int | None:
    """Return the absolute time at which a record was written; None if it has none."""
    metadata = record.metadata
    if "chromium_event" in metadata and record.size:
        try:
            return check_range(record.parse_event()["ts"] * 1000)
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
    metrics = metadata.get("compilation_metrics")
    if isinstance(metrics, dict):
        try:
            end_us = metrics.get("end_time_us")
            return check_range(
                end_us * 1000
                if end_us is not None
                else (metrics["start_time"] + metrics["entire_frame_compile_time_s"]) * SECOND
            )
        except (TypeError, KeyError):
            return None
    return None


def check_range(ns: float) -> int | None:
    """Return `ns` if it is a time of this century, else None."""
    return int(ns) if math.isfinite(ns) and 946_684_800 * SECOND < ns < 4_102_444_800 * SECOND else None
