"""Texts of a log that a session keeps: payloads as artifacts, and the fields of all other records as one text."""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...events import Artifact, Event
from ..call_stacks import CallStacks, parse_logged_frames
from .attempts import CompileAttempt
from .file_names import FileNames
from .record_kinds import bound_payload, find_name
from .trace_log import Record, compute_md5


@dataclass(frozen=True, slots=True)
class PackedText:
    """A text of `size` bytes, compressed; the body is empty if the same text came before."""

    size: int
    body: bytes


#: An event, or an artifact with its text.
Item = Event | tuple[Artifact, bytes | PackedText]

#: Name of the text with the records that have no text of their own.
GATHERED = "trace_records"
#: Bytes of such records that are gathered before they are written.
MAX_GATHERED = 1 << 20
#: Texts that are remembered, and their longest: every compile logs the same configurations.
REMEMBERED, MAX_REMEMBERED = 64, 16 << 10
#: The number of a file in JSON.
_FILE = re.compile(r'"filename": (?P<number>\d{1,9})(?=[,}])')


class KeptTexts:
    """Makes the artifacts of one process's records."""

    def __init__(self, stacks: CallStacks, files: FileNames) -> None:
        self._stacks = stacks
        self._files = files
        self._gathered: dict[CompileAttempt, list[bytes]] = defaultdict(list)
        self._size = 0

    def make_artifact(self, name: str, attempt: CompileAttempt, time_ns: int, **columns: Any) -> Artifact:
        """Make an artifact of an attempt."""
        compile_id, compile_key = attempt.compile_id, attempt.compile_key
        return Artifact(time_ns=time_ns, compile_id=compile_id, compile_key=compile_key, name=name, **columns)

    def make_text(self, name: str, attempt: CompileAttempt, time_ns: int, text: str) -> tuple[Artifact, bytes]:
        """Make an artifact of an attempt from its text."""
        data, digest = _encode_again(text) if len(text) <= MAX_REMEMBERED else _encode(text)
        return self.make_artifact(name, attempt, time_ns, size=len(data), digest=digest), data

    def keep(self, record: Record, kind: str, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        """Yield the artifact of a record's payload; gather the fields of a record that has none."""
        payload, body = record.payload, record.metadata.get(kind)
        if payload is not None:
            logged = record.metadata.get("stack")
            stack = None
            if logged is not None:
                stack, fresh = self._stacks.add(parse_logged_frames(logged, self._files), time_ns)
                yield from fresh
            name = find_name(record.metadata) or "unknown"
            artifact = self.make_artifact(name, attempt, time_ns, size=record.size, digest=record.digest, stack=stack)
            if record.packed is None:
                yield artifact, bound_payload(kind, payload)
            else:
                yield artifact, PackedText(record.size, record.packed)
        if payload is None or (body and kind != "artifact"):
            line = _FILE.sub(self._name_file, record.fields.rstrip()).encode("utf-8", "replace")
            self._gathered[attempt].append(line)
            self._size += len(line)
            yield from self.flush(MAX_GATHERED, time_ns)

    def flush_compile(self, attempt: CompileAttempt, time_ns: int) -> Iterator[Item]:
        """Yield the gathered records of an attempt."""
        lines = self._gathered.pop(attempt, None)
        if lines:
            self._size -= sum(map(len, lines))
            text = b"\n".join(lines)
            yield self.make_artifact(GATHERED, attempt, time_ns, size=len(text), digest=compute_md5(text)), text

    def flush(self, beyond: int, time_ns: int) -> Iterator[Item]:
        """Yield all gathered records if they have more than `beyond` bytes."""
        if self._size > beyond:
            for attempt in list(self._gathered):
                yield from self.flush_compile(attempt, time_ns)

    def _name_file(self, found: re.Match[str]) -> str:
        """Return the name of a file in place of torch's number; the end of a text stays as it is."""
        if found.string[found.start() - 1] == "\\":
            return found[0]
        return _format_name(self._files.get(int(found["number"])))


@functools.lru_cache(1_000)
def _format_name(file: str | None) -> str:
    return f'"filename": {json.dumps(file)}'


def _encode(text: str) -> tuple[bytes, str]:
    """Return the UTF-8 of a text and its md5."""
    data = text.encode("utf-8", "replace")
    return data, compute_md5(data)


_encode_again = functools.lru_cache(REMEMBERED)(_encode)
