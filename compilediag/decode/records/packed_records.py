"""Records as bytes, for another process of the same Python: what needs only the record is done before.

The other process decodes them in their order, so it gives what it would give if it had read them itself.
"""

from __future__ import annotations

import contextlib
import marshal
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .record_kinds import TIMED
from .trace_log import MD5, Record, Unread, parse_json

#: The fields of a record, in the order of its arguments.
_Fields = tuple[Any, ...]
#: Returns a text compressed, given its digest; empty bytes if it has returned that text before.
Pack = Callable[[str, bytes], bytes]


def pack_records(reading: Iterable[Record | Unread], pack: Pack) -> bytes:
    """Return records as bytes."""
    listed = list(reading)
    packed = [_list_fields(read, pack) for read in listed]
    try:
        return marshal.dumps(packed)
    except ValueError:  # Nested too deeply: the other process parses the texts again.
        return marshal.dumps([_leave_unparsed(read, fields) for read, fields in zip(listed, packed, strict=True)])


def unpack_records(packed: Iterable[_Fields]) -> Iterator[Record | Unread]:
    """Yield the records that `pack_records` was given, from what `marshal` makes of its result."""
    for fields in packed:
        read = Record(*fields) if len(fields) > 2 else Unread(*fields)
        if isinstance(read, Record) and read.metadata is None:
            read.metadata = parse_json(read.fields)
        yield read


def _list_fields(read: Record | Unread, pack: Pack) -> _Fields:
    if isinstance(read, Unread):
        return read.why, read.size
    payload, packed = read.payload, None
    if payload is not None and read.digest is not None and read.damage != MD5:
        if read.kind == TIMED:
            with contextlib.suppress(ValueError, RecursionError):
                payload = payload if read.parse_event() is None else None
        else:
            packed = pack(read.digest, payload)
    about = (read.digest, read.damage, read.prefix_rank, read.fields, read.size)
    return read.stamp, read.process, read.metadata, read.kind, read.compile_id, payload, *about, read.event, packed


def _leave_unparsed(read: Record | Unread, fields: _Fields) -> _Fields:
    if isinstance(read, Unread):
        return fields
    metadata = None if read.fields else read.metadata
    return *fields[:2], metadata, read.kind, read.compile_id, read.payload, *fields[6:-2], None, fields[-1]
