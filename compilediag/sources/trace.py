"""The structured trace, in `full` only: graphs, generated code and guard trees as torch hands them out.

While any handler listens torch builds every record, wanted or not. That is nearly all of what `full` costs
more than `lean`, and it is counted here by torch's own account.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from ..decode.records import KEPT, artifact, record_name
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
        self._logger.addHandler(self._handler)

    def close(self) -> None:
        try:
            self._spent_s, self._ended = self._cost_s(), True
        finally:
            self._logger.removeHandler(self._handler)

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
