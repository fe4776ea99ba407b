"""The structured trace, in `full` only: graphs, generated code and guard trees as torch hands them out.

While any handler listens torch builds every record, wanted or not. That is nearly all of what `full` costs
more than `lean`, and it is counted here by torch's own account.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from ..decode.records import KEPT, artifact, record_name
from ..recorder import Made
from . import _compat
from .base import Source, made
from .patching import Patch


class Trace(Source):
    name = "trace"
    details = ("full",)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._handler = _Handler(self)
        self._accounted_us: dict[str, int] = {}

    @classmethod
    def probe(cls) -> None:
        _compat.trace_logger()
        _compat.metrics_module()

    def patches(self) -> list[Patch]:
        hook = "add_compilation_metrics_to_chromium"
        return [Patch(_compat.metrics_module(), hook, self._account, self.guarded)]

    def open(self) -> None:
        _compat.trace_logger().addHandler(self._handler)

    def close(self) -> None:
        _compat.trace_logger().removeHandler(self._handler)

    def received(self, metadata: dict[str, Any], payload: str | None) -> None:
        name = record_name(metadata)
        if payload is not None and name in KEPT:
            self.emit(_artifact, metadata, name, payload, time.time_ns())

    def _account(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, error: BaseException | None) -> None:
        """What torch spent on records, if nobody else asked for them. Its count goes on from forward to backward."""
        metrics = args[0] if args else kwargs["c"]
        spent = metrics.structured_logging_overhead_us
        if spent is None or _compat.trace_logger().handlers != [self._handler]:
            return
        before = self._accounted_us.get(metrics.compile_id, 0)
        self._accounted_us[metrics.compile_id] = spent
        self.overhead_ns += max(spent - before, 0) * 1000


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
