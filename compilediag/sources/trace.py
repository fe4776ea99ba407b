"""The structured trace, in `full` only: graphs, generated code and guard trees as torch hands them out.

While any handler listens torch builds every record, wanted or not, and most are not: of the 5.5 % that this
cost a Dynamo-only recompile, 3.3 % were timed events and tensor descriptions that reach us by cheaper ways. So
where we are the only listener, torch is told that nobody listens to those. The rest is nearly all of what
`full` costs more than `lean`; it is counted here by torch's own account.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from ..decode.records import BUILT, KEPT, artifact, record_name
from ..events import SourceStatus
from ..recorder import Made
from . import _compat
from .base import Source, made


class Trace(Source):
    name = "trace"
    details = ("full",)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._handler = _Handler(self)
        self._ended = False
        self._spent_s = 0.0

    @classmethod
    def probe(cls) -> None:
        _compat.trace_logger()
        _compat.structured_logging_s()

    def open(self) -> None:
        self._logger = _compat.trace_logger()
        self._spent_s = _compat.structured_logging_s()
        self._before = self._logger.handlers
        self._listeners = self._logger.handlers = _Listeners(self._before, self._handler)
        self._logger.addHandler(self._handler)

    def close(self) -> None:
        try:
            self._spent_s, self._ended = self._cost_s(), True
        finally:
            self._logger.removeHandler(self._handler)
            if self._logger.handlers is self._listeners:
                # Whoever came or went meanwhile did so in our list; the list that was there before is what stays.
                self._before[:] = self._listeners
                self._logger.handlers = self._before

    def _cost_s(self) -> float:
        """Seconds that torch spent on building records; 0 where somebody else had asked for them too.

        Until the first record torch's own handler is there, which takes itself out unless TORCH_TRACE is set.
        """
        alone = self._logger.handlers == [self._handler]
        return _compat.structured_logging_s() - self._spent_s if alone else 0.0

    def received(self, metadata: dict[str, Any], payload: str | None) -> None:
        name = record_name(metadata)
        if payload is not None and name in KEPT:
            self.emit(_artifact, metadata, name, payload, time.time_ns())

    def status(self) -> SourceStatus:
        status = super().status()
        if status.status == "active":
            status.overhead_s += self._spent_s if self._ended else self._cost_s()
        return status


class _Listeners(list[logging.Handler]):
    """The logger's handlers; as long as only ours is among them it is there for some records only.

    torch asks `if trace_log.handlers:` before it builds a record. To everybody else it is an ordinary list.
    """

    def __init__(self, handlers: list[logging.Handler], own: logging.Handler):
        super().__init__(handlers)
        self._own = own

    def __bool__(self) -> bool:
        if len(self) != 1 or self[0] is not self._own:
            return len(self) > 0
        name = _compat.record_to_build()
        return name is None or name in BUILT


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
