"""Who hands events to the recorder, as the recorder sees them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
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


def read_state(feed: Feed, note_error: Callable[[BaseException, Feed], None]) -> SourceStatus:
    """The state of a source; one that says why, if it can't be read."""
    try:
        return feed.status()
    except Exception as error:
        note_error(error, feed)
        reason = f"its state can't be read: {type(error).__name__}: {error}"
        now = time.time_ns()
        return SourceStatus(time_ns=now, name=feed.name, status="failed", reason_code="errors", reason=reason)
