"""Events as rows of SQL tables, how rows are inserted, and the texts of artifacts.

A session file stores a text once, under a digest, as a zlib stream.
"""

from __future__ import annotations

import dataclasses
import json
import sqlite3
import struct
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from ..events import KINDS, Event
from ..formatting import MAX_JSON, MAX_TEXT, bound_items, bound_text

# Texts of artifacts

#: Texts up to this number of bytes are stored uncompressed.
SHORT = 5 * 1024
#: Longer texts are not unpacked: a log's record has at most 64 MB.
MAX_UNPACKED = 128 << 20


def clean(text: str) -> str:
    """The text as SQLite can store it: a lone surrogate, which UTF-8 cannot encode, becomes its escape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode()
    return text


def deflate(data: bytes) -> bytes:
    """The UTF-8 of a text as a zlib stream; a short one is a stored block, without compression.

    zlib releases the interpreter lock for each text, and while the compiler is busy it takes 5 ms to get it back. Most
    texts are graphs of a few kB, and compressing those took longer than all other writing. (Up to `SHORT` bytes adler32
    keeps the lock.)
    """
    if len(data) > SHORT:
        return zlib.compress(data, 1)
    head = struct.pack("<BBBHH", 0x78, 0x01, 0x01, len(data), len(data) ^ 0xFFFF)
    return head + data + struct.pack(">I", zlib.adler32(data))


def make_valid(text: bytes) -> bytes:
    """Return the text as valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace").encode()
    return text


def unpack(body: bytes, most: int) -> bytes:
    """The data of a zlib stream, which somebody else may have made. zlib.error if it is damaged or has more than `most`
    bytes: a few kB can unpack to gigabytes.
    """
    stream = zlib.decompressobj()
    data = stream.decompress(body, most)
    if not stream.eof:
        is_long = len(data) >= most
        raise zlib.error(f"it unpacks to more than {most >> 20} MB" if is_long else "incomplete or truncated stream")
    return data


def unpack_start(body: bytes, size: int) -> bytes:
    """The first `size` bytes of a zlib stream. zlib.error if they are damaged."""
    return zlib.decompressobj().decompress(body, size)


def inflate(body: bytes, most: int = MAX_UNPACKED) -> str:
    """The text of a zlib stream. zlib.error if it is damaged or has more than `most` bytes."""
    return unpack(body, most).decode()


class KeptText(NamedTuple):
    """What a recording does with a text: its digest (None: not kept), its bytes, and whether it is stored now."""

    digest: str | None
    size: int
    is_new: bool


class TextQuota:
    """Which texts a recording keeps: each is stored once, as far as they fit into `size` bytes."""

    def __init__(self, size: int):
        self._left = size
        self._digests: set[str] = set()

    def take(self, text: str) -> KeptText:
        """Keep a text, if it fits.

        Its digest is its length and Python's own 64-bit hash, which unlike those of hashlib keeps the interpreter lock.
        It differs between processes, so that several processes may store the same text.
        """
        size = len(text) if text.isascii() else len(text.encode())
        digest = f"{hash(text) & 0xFFFF_FFFF_FFFF_FFFF:016x}{len(text):x}"
        if digest in self._digests:
            return KeptText(digest, size, is_new=False)
        if size > self._left:
            return KeptText(None, size, is_new=False)
        self._left -= size
        self._digests.add(digest)
        return KeptText(digest, size, is_new=True)

    def give_back(self, texts: Iterable[tuple[str, str]]) -> None:
        """These (digest, text) pairs could not be stored."""
        for digest, text in texts:
            self._digests.discard(digest)
            self._left += len(text)


#: Variables that SQLite (3.32 and later) takes in one statement.
MAX_VARIABLES = 32_766
#: Rows of one statement. With more, parsing the statement takes SQLite as long as inserting the rows.
MAX_ROWS = 150
#: The same in bulk: statements of 64, 32, 16 rows and so on are parsed once.
BULK_ROWS = 64
OWNER = ("rank", "pid")
SHARED = ("time_ns", "kind", "compile_id", "compile_key", "duration_s")
COMMON = (*OWNER, *SHARED, "title")
#: dtype of a field -> type of its column.
SQL_TYPES = {"string": "TEXT", "Int64": "INTEGER", "float64": "REAL", "boolean": "INTEGER", "json": "TEXT"}

#: The values of one row, in the order of its table's columns.
Row = tuple[Any, ...]
#: Rank and pid of the process that an event happened in.
Owner = tuple[int | None, int | None]


def own_fields(cls: type[Event]) -> list[dataclasses.Field[Any]]:
    """The fields that the SQL table of a kind has; those that all events share are in `events`."""
    return [f for f in dataclasses.fields(cls) if f.metadata]


def list_columns() -> dict[str, dict[str, str]]:
    """Return table -> column -> SQL type, the key first, of the tables with events and with their texts."""
    types = {"time_ns": "INTEGER", "rank": "INTEGER", "pid": "INTEGER", "duration_s": "REAL"}
    tables = {"events": {"id": "INTEGER", **{name: types.get(name, "TEXT") for name in COMMON}}}
    for cls in KINDS:
        tables[cls.table] = {"event_id": "INTEGER", **{f.name: SQL_TYPES[f.metadata["dtype"]] for f in own_fields(cls)}}
    return {**tables, "payloads": {"digest": "TEXT", "size": "INTEGER", "body": "BLOB"}}


class _Layout:
    """How the events of one kind become rows of its table."""

    def __init__(self, cls: type[Event]):
        fields = own_fields(cls)
        self.table = cls.table
        self._texts = ("compile_id", "compile_key", *(f.name for f in fields if f.metadata["dtype"] == "string"))
        self._get_texts = attrgetter(*self._texts)
        self.columns = ("event_id", *(f'"{f.name}"' for f in fields))
        self.getters = [attrgetter(f.name) for f in fields]
        #: Where `columns` has JSON.
        self.json = [at for at, f in enumerate(fields, 1) if f.metadata["dtype"] == "json"]

    def has_long(self, events: Iterable[Event]) -> bool:
        """Return True if a text has more than `MAX_TEXT` characters, or is no text at all."""
        texts = filter(None, chain.from_iterable(map(self._get_texts, events)))
        try:
            return max(map(len, texts), default=0) > MAX_TEXT
        except TypeError:  # A source can have put another value there.
            return True

    def bound(self, event: Event) -> Event:
        """The event with texts of at most `MAX_TEXT` characters: a row's size must not depend on the user's values."""
        given = zip(self._texts, self._get_texts(event), strict=True)
        bounded: dict[str, Any] = {name: bound_text(text) for name, text in given if isinstance(text, str)}
        return dataclasses.replace(event, **bounded)


def _as_json(value: Any) -> str | None:
    if value is None:
        return None
    text = json.dumps(value)
    return text if len(text) <= MAX_JSON else json.dumps(bound_items(value))


#: By table and not by class: `importlib.reload` makes other classes while events wait to be written.
_LAYOUTS = {cls.table: _Layout(cls) for cls in KINDS}
get_owner = attrgetter(*OWNER)
_SHARED = tuple(map(attrgetter, SHARED))


def insert_events(
    db: sqlite3.Connection, first: int, events: Sequence[Event], owners: Iterable[Owner], is_bulk: bool
) -> None:
    """Insert events with the ids from `first` on.

    Values are handled by column: a tuple for each row would be counted by Python's garbage collector, which then runs
    in this thread, beside a compiler that leaves it much to look at.
    """
    of_kind: dict[type[Event], list[Event]] = defaultdict(list)
    ids: dict[type[Event], list[int]] = defaultdict(list)
    for event_id, event in enumerate(events, first):
        of_kind[type(event)].append(event)
        ids[type(event)].append(event_id)
    for kind, some in of_kind.items():
        if _LAYOUTS[kind.table].has_long(some):
            of_kind[kind] = list(map(_LAYOUTS[kind.table].bound, some))
            events = [_LAYOUTS[kind.table].bound(event) if type(event) is kind else event for event in events]
    titles = [event.title for event in events]
    if max(map(len, titles), default=0) > MAX_TEXT:
        titles = list(map(bound_text, titles))
    shared = [list(map(get, events)) for get in _SHARED]
    common = [range(first, first + len(events)), *zip(*owners, strict=True), *shared, titles]
    insert_values(db, "INTO events", ("id", *COMMON), common, is_bulk)
    for kind, some in of_kind.items():
        layout = _LAYOUTS[kind.table]
        values: list[Sequence[Any]] = [ids[kind], *(list(map(get, some)) for get in layout.getters)]
        for at in layout.json:
            values[at] = list(map(_as_json, values[at]))
        insert_values(db, f"INTO {layout.table}", layout.columns, values, is_bulk)


def insert_rows(db: sqlite3.Connection, into: str, columns: Sequence[str], rows: Sequence[Row], is_bulk: bool) -> None:
    """As `insert_values`, from rows."""
    if rows:
        insert_values(db, into, columns, list(zip(*rows, strict=True)), is_bulk)


def insert_values(
    db: sqlite3.Connection, into: str, columns: Sequence[str], values: Sequence[Sequence[Any]], is_bulk: bool
) -> None:
    """Insert rows, as the values of each column, with few statements. Columns without any value are left out: binding
    None is slow.

    Python releases the interpreter lock at every step of a statement, and while the compiler is busy it takes 5 ms to
    get it back: with one row per step, no more than 200 rows per second could be written. In bulk, parsing the
    statements is what takes time, so each is used again.
    """
    given = zip(columns, values, strict=False)
    filled = [(name, cells) for name, cells in given if cells[0] is not None or cells.count(None) < len(cells)]
    if not filled:
        return
    names = [name for name, _ in filled]
    head, marks = f"INSERT {into} ({', '.join(names)}) VALUES ", f"({', '.join('?' * len(names))})"
    begin, count, most = 0, len(filled[0][1]), min(BULK_ROWS if is_bulk else MAX_ROWS, MAX_VARIABLES // len(names))
    while begin < count:
        left = count - begin
        step = min(most, 1 << left.bit_length() - 1 if is_bulk else left)
        variables: list[Any] = [None] * (step * len(names))
        for at, (_, of_rows) in enumerate(filled):
            variables[at :: len(names)] = of_rows[begin : begin + step]
        statement = head + ", ".join([marks] * step)
        try:
            db.execute(statement, variables)
        except UnicodeEncodeError:  # A lone surrogate: too rare to look for in all texts.
            db.execute(statement, [clean(value) if isinstance(value, str) else value for value in variables])
        begin += step
