"""Events of logs into a session's file, in batches, each whole or not at all: what was cut off is gone on with."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from ..decode.records.kept_texts import Item
from ..events import Artifact, Event
from ..storage.store import Owner, Store, own_fields

#: A batch is written when it has so many events, or so many bytes of text.
BATCH_EVENTS, BATCH_BYTES = 4_000, 8 << 20
#: Texts beyond it are not kept, and counted.
MAX_TEXTS = 4 << 30
#: Digests of texts that are remembered; one that is forgotten is found to be there by SQLite.
REMEMBERED = 200_000
INT64 = 1 << 63
E = TypeVar("E", bound=Event)


class LogWriter:
    """Writes what logs give to `store`, which may be another one once all is flushed: texts that were written to the
    first are not written again. The first `skip` items are in it already, from a run that was cut off.
    """

    def __init__(self, store: Store | None, skip: int = 0, max_texts: int = MAX_TEXTS):
        self.dropped = 0
        self.store = store
        self._skip = skip
        self._events: list[Event] = []
        self._owners: list[Owner] = []
        self._texts: list[tuple[str, bytes]] = []
        self._bytes = 0
        self._left = max_texts
        self._digests: set[str] = set()

    def put(self, item: Item, pid: int | None, rank: int | None) -> None:
        if self._skip:
            self._skip -= 1
            return
        event, text = item if isinstance(item, tuple) else (item, None)
        event = fit(event)
        if text is not None and isinstance(event, Artifact):
            event = self._keep(event, text)
        self._events.append(event)
        self._owners.append((rank, pid))
        if len(self._events) >= BATCH_EVENTS or self._bytes >= BATCH_BYTES:
            self.flush()

    def _keep(self, artifact: Artifact, text: bytes) -> Artifact:
        digest = artifact.digest or hashlib.md5(text, usedforsecurity=False).hexdigest()
        kept = dataclasses.replace(artifact, size=len(text), digest=digest)
        if digest in self._digests:
            return kept
        if len(text) > self._left:
            self.dropped += 1
            return dataclasses.replace(kept, digest=None)
        if len(self._digests) >= REMEMBERED:
            self._digests.clear()
        self._digests.add(digest)
        self._left -= len(text)
        self._bytes += len(text)
        self._texts.append((digest, text))
        return kept

    def flush(self) -> None:
        """What was put so far is in the file when this returns."""
        if self._events:
            packed = [(digest, len(text), zlib.compress(_legible(text), 1)) for digest, text in self._texts]
            self.store.append(self._events, packed=packed, owners=self._owners)
        self._events, self._owners, self._texts, self._bytes = [], [], [], 0


def _legible(text: bytes) -> bytes:
    try:
        text.decode()
    except UnicodeDecodeError:
        return text.decode("utf-8", "replace").encode()
    return text


def fit(event: E) -> E:
    """The event without what its columns can't hold: a damaged record can say anything."""
    unfit: dict[str, Any] = {name: None for name, fits in _checks(type(event)) if not fits(getattr(event, name))}
    if not isinstance(event.time_ns, int) or not -INT64 <= event.time_ns < INT64:
        unfit["time_ns"] = 0
    return dataclasses.replace(event, **unfit) if unfit else event


@functools.cache
def _checks(cls: type[Event]) -> list[tuple[str, Callable[[Any], bool]]]:
    columns = [(f.name, f.metadata["dtype"]) for f in own_fields(cls)]
    shared = [("compile_id", "string"), ("compile_key", "string"), ("duration_s", "float64")]
    return [(name, _FITS[dtype]) for name, dtype in [*shared, *columns]]


_FITS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: value is None or type(value) is str,
    "Int64": lambda value: value is None or (type(value) is int and -INT64 <= value < INT64),
    "float64": lambda value: value is None or (type(value) in (float, int) and math.isfinite(value)),
    "boolean": lambda value: value is None or type(value) is bool,
    "json": lambda value: value is None or type(value) in (list, dict),
}
