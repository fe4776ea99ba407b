"""The state of a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus(Event):
    """The state of one source, written when it changes and when the watch ends; the last one counts."""

    kind: ClassVar[str] = "source"
    table: ClassVar[str] = "sources"

    name: str | None = column("string", "name of the source")
    status: str | None = column("string", "active, unavailable, failed or off")
    reason: str | None = column("string", "why it is not active")
    events: int | None = column("Int64", "events that it recorded")
    dropped: int | None = column("Int64", "events or payloads that it could not keep")
    overhead_s: float | None = column("float64", "s that its hooks took inside the user's program")

    @property
    def title(self) -> str:
        return f"{self.name} {self.status}"
