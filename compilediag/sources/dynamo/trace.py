"""The structured trace, in `full` only: graphs, generated code and guard trees as torch hands them out.

While any handler listens torch builds every record, wanted or not, and most are not: of the 5.5 % that this
cost a Dynamo-only recompile, 3.3 % were timed events and tensor descriptions that reach us by cheaper ways. And
what fails while a record is built, such as a class whose `repr` raises, fails in the user's program. So where we
are the only listener torch is told that nobody listens, and the few texts that are kept are made here.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from typing import Any

from ...decode.call_stacks import CallStacks
from ...decode.records.record_kinds import BUILT, KEPT, find_compile_id, find_kind, find_name, make_artifact
from ...decode.records.shape_records import KINDS as TRACED
from ...decode.records.shape_records import SCHEDULE, TENSOR_META, TracedRecords
from ...events import Artifact
from ...recording import Made
from .. import _compat
from .._compat.tracing import built, intern_table, tracing_frames, variables
from ..hooks.source import Source, made
from .frames import shape_events


class Trace(Source):
    name = "trace"
    details = ("full",)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._handler = _Handler(self)

    @classmethod
    def probe(cls) -> None:
        _compat.trace_logger()
        intern_table()

    def open(self) -> None:
        self._interned = intern_table()
        self._traced = TracedRecords(self.recorder.shared.setdefault("stacks", CallStacks()))
        self._logger = _compat.trace_logger()
        self._before = self._logger.handlers
        self._listeners = self._logger.handlers = _Listeners(self._before, self._handler, self)
        self._logger.addHandler(self._handler)

    def close(self) -> None:
        self._logger.removeHandler(self._handler)
        if self._logger.handlers is self._listeners:
            # Whoever came or went meanwhile did so in our list; the list that was there before is what stays.
            self._before[:] = self._listeners
            self._logger.handlers = self._before

    def received(self, metadata: dict[str, Any], payload: str | None) -> None:
        """A record that torch has built because somebody else listens too."""
        name, time_ns = find_name(metadata), time.time_ns()
        if payload is not None and name in KEPT:
            self.emit(_artifact, metadata, name, payload, time_ns)
            self._list_collectives(name, payload, find_compile_id(metadata), time_ns)
        elif (kind := find_kind(metadata)) in TRACED:
            names = dict(enumerate(self._interned))
            self.emit(self._traced.events, kind, metadata[kind], names, find_compile_id(metadata), time_ns)

    def build(self, name: str, metadata: Callable[[], Any], payload: Callable[[], Any]) -> None:
        """The text of a record that torch will not build; `metadata` and `payload` are the functions that give it.

        What fails in them is torch's or the user's; it would have failed in the user's program.
        """
        compile_id, time_ns = _compat.current_compile_id(), time.time_ns()
        try:
            if name in TRACED:
                return self._trace_shape(name, metadata, compile_id, time_ns)
            kept = find_name({name: metadata()}) if name == "artifact" else name
            text = payload() if kept in KEPT else None
        except Exception:
            self.dropped += 1
            return
        if text is not None:
            text = text if isinstance(text, str) else json.dumps(text, default=str, indent=0)
            self.emit(_text, kept, compile_id, text, time_ns)
            self._list_collectives(kept, text, compile_id, time_ns)

    def _trace_shape(self, kind: str, metadata: Callable[[], Any], compile_id: str | None, time_ns: int) -> None:
        found = variables(kind, metadata)
        if found is None:
            self.emit(self._traced.events, kind, *built(metadata, self._interned), compile_id, time_ns)
        else:
            self.emit(shape_events, self._traced, kind, found, tracing_frames(), compile_id, time_ns)

    def _list_collectives(self, name: str, text: str, compile_id: str | None, time_ns: int) -> None:
        if name in (SCHEDULE, TENSOR_META):
            self.emit(self._traced.collectives, name, text, compile_id, time_ns)


class _Listeners(list[logging.Handler]):
    """The logger's handlers, of which torch asks `if trace_log.handlers:` before it builds a record.

    As long as only ours is among them the answer is no. To everybody else it is an ordinary list.
    """

    def __init__(self, handlers: list[logging.Handler], own: logging.Handler, source: Trace):
        super().__init__(handlers)
        self._own = own
        self._source = source

    def __bool__(self) -> bool:
        if len(self) != 1 or self[0] is not self._own:
            return len(self) > 0
        asked = _compat.record_asked_for()
        if asked is None:
            return True
        if asked[0] in BUILT:
            self._source.guarded(self._source.build, *asked)
        return False


class _Handler(logging.Handler):
    def __init__(self, source: Trace):
        super().__init__()
        self._source = source

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if isinstance(metadata, dict):
            self._source.guarded(self._source.received, metadata, getattr(record, "payload", None))


def _artifact(metadata: dict[str, Any], name: str, payload: str, time_ns: int) -> Made:
    return made(make_artifact(metadata, name, payload, time_ns))


def _text(name: str | None, compile_id: str | None, text: str, time_ns: int) -> Made:
    return made((Artifact(time_ns=time_ns, compile_id=compile_id, name=name), text))
