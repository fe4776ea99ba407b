"""Who hands events to the recorder, as the recorder sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from .events import Artifact, Event, SourceStatus

#: What a source's function returns: events, and artifacts with their text.
Made = Iterable["Event | tuple[Artifact, str]"]


class Feed(Protocol):
    """A source, as the recorder sees it."""

    events: int
    dropped: int

    @property
    def name(self) -> str: ...
    def note_error(self, error: BaseException) -> None: ...
    def status(self) -> SourceStatus: ...


class Counter(Protocol):
    """Counts in the user's program, and hands over its counts at every `tick`."""

    def tick(self, final: bool = False) -> None: ...
    def reset_after_fork(self) -> None: ...
    def note_error(self, error: BaseException) -> None: ...


class Running(Protocol):
    """The compile that runs in one thread."""

    def state(self) -> dict[str, Any]: ...
