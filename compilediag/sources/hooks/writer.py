"""The recorder's own thread, shown among the sources: the cost of writing is part of compilediag's cost."""

from __future__ import annotations

from ... import clock
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
        self._errors = 0
        self._last_error = ""

    def note_error(self, error: BaseException) -> None:
        self._errors += 1
        self._last_error = describe_error(error)

    def status(self) -> SourceStatus:
        state, code, reason = self._describe()
        return SourceStatus(
            time_ns=clock.now_ns(),
            name=self.name,
            status=state,
            reason=reason,
            reason_code=code,
            events=self.events,
            dropped=self.dropped,
            overhead_s=self.recorder.cpu_ns / 1e9,
        )

    def _describe(self) -> tuple[str, str | None, str | None]:
        """The state, the code of its reason, and the reason."""
        if self.recorder.lost is not None:
            return "failed", "lost", self.recorder.lost
        if not self._errors:
            return "active", None, None
        count = "1 error" if self._errors == 1 else f"{self._errors} errors, the last"
        return "failed", "errors", f"{count}: {self._last_error}"
