"""The recorder's own thread, shown among the sources: the cost of writing is part of compilediag's cost."""

from __future__ import annotations

import time

from ...events import SourceStatus
from ...recording import Recorder
from .own_errors import describe_error


class WriterStatus:
    """The status of the writing thread: its CPU seconds, and what it could not write."""

    name = "writer"

    def __init__(self, recorder: Recorder):
        self.recorder = recorder
        self.events = 0
        self.dropped = 0
        self.reason: str | None = None

    def note_error(self, error: BaseException) -> None:
        self.reason = describe_error(error)

    def status(self) -> SourceStatus:
        return SourceStatus(
            time_ns=time.time_ns(),
            name=self.name,
            status="active" if self.reason is None else "failed",
            reason=self.reason,
            reason_code=None if self.reason is None else "errors",
            events=self.events,
            dropped=self.dropped,
            overhead_s=self.recorder.cpu_ns / 1e9,
        )
