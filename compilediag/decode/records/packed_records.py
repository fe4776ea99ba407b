"""Records as bytes, for another process of the same Python: what needs only the record is done before.

The other process decodes them in their order, so it gives what it would give if it had read them itself. They are
packed some at a time: the time that `marshal` takes per object grows with their number.

To compare ranks, `is_deciding` says from the bytes of a record whether it decides what its process compiled, and why:
the others need not be parsed. A record of an unknown kind decides.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from .cache_records import AFTER_A_LOOKUP, PROFILES
from .compilation_metrics import KINDS as METRICS
from .record_kinds import CONTEXT, KNOWN, TIMED, bound_payload
from .trace_log import MD5, Record, Unread, parse_json

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
    left = iter(reading)
    return [_pack_some(some, pack) for some in iter(lambda: list(islice(left, TOGETHER)), [])]


def unpack_records(packed: Iterable[bytes]) -> Iterator[Record | Unread]:
    """Yield the records that `pack_records` was given, from its result."""
    for some in packed:
        for fields in marshal.loads(some):
            read = Record(*fields) if len(fields) > 2 else Unread(*fields)
            if isinstance(read, Record) and read.metadata is None:
                read.metadata = parse_json(read.fields)
            yield read


def _pack_some(listed: list[Record | Unread], pack: Pack) -> bytes:
    packed = [_list_fields(read, pack) for read in listed]
    try:
        return marshal.dumps(packed)
    except ValueError:  # Nested too deeply: the other process parses the texts again.
        return marshal.dumps([_leave_unparsed(read, fields) for read, fields in zip(listed, packed, strict=True)])


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


#: The first field of a record, which is its kind, and the name of an artifact.
_KIND = re.compile(rb'\] \{"(\w+)": (?:\{"name": "([^"\n]{0,200})")?')
#: Bytes in which the kind has to be.
_HEAD = 2_000
#: Known kinds that decide: files and functions, outcomes, and guards, which have the values of a new entry.
_DECIDING = frozenset(
    kind.encode() for kind in ("str", "dynamo_start", "create_symbol", "artifact", *AFTER_A_LOOKUP, *METRICS)
)
_KNOWN = frozenset(kind.encode() for kind in (KNOWN | CONTEXT))
_CONTEXT = frozenset(kind.encode() for kind in CONTEXT)
#: Artifacts that decide: reasons, graph breaks, lookups, collectives, and the order in which graphs ran.
_ARTIFACTS = re.compile(
    rb"recompile_reasons|dynamo_graph_break_reason|torch_version|graph_execution|inductor_collective_schedule"
    rb"|inductor_runtime_and_tensor_meta|(?:fx_graph|aotautograd|autograd)_(?:bundled_)?cache_\w+"
)
#: Timed events that decide: the begin of a compile or of its attempt, and lookups.
_TIMED = re.compile(rb'"name": "(?:dynamo|compile_attempt_\d+|(?:fx_graph|aotautograd|autograd)_cache_\w+)"')
_END = b'"ph": "E"'


def is_deciding(piece: bytes) -> bool:
    """Return whether a record, given as its bytes, decides what was compiled."""
    found = _KIND.search(piece, 0, _HEAD)
    if found is None:
        return True
    kind, name = found.groups()
    if kind == b"chromium_event":
        return _TIMED.search(piece) is not None and _END not in piece
    if kind == b"artifact":
        return name is None or _ARTIFACTS.fullmatch(name) is not None
    return kind in _DECIDING or kind in _CONTEXT or kind not in _KNOWN
