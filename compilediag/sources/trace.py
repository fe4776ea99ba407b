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

from ..decode.records import BUILT, KEPT, artifact, record_name
from ..events import Artifact
from ..recorder import Made
from . import _compat
from .base import Source, made


class Trace(Source):
    name = "trace"
    details = ("full",)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._handler = _Handler(self)

    @classmethod
    def probe(cls) -> None:
        _compat.trace_logger()

    def open(self) -> None:
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
        name = record_name(metadata)
        if payload is not None and name in KEPT:
            self.emit(_artifact, metadata, name, payload, time.time_ns())

    def build(self, name: str, metadata: Callable[[], Any], payload: Callable[[], Any]) -> None:
        """The text of a record that torch will not build; `metadata` and `payload` are the functions that give it.

        What fails in them is torch's or the user's; it would have failed in the user's program.
        """
        try:
            kept = record_name({name: metadata()}) if name == "artifact" else name
            text = payload() if kept in KEPT else None
        except Exception:
            self.dropped += 1
            return
        if text is not None:
            self.emit(_text, kept, _compat.current_compile_id(), text, time.time_ns())


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
    return made(artifact(metadata, name, payload, time_ns))


def _text(name: str, compile_id: str | None, payload: Any, time_ns: int) -> Made:
    text = payload if isinstance(payload, str) else json.dumps(payload, default=str, indent=0)
    return made((Artifact(time_ns=time_ns, compile_id=compile_id, name=name), text))
