"""Who hands events to the recorder, as the recorder sees them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from . import clock
from .events import Artifact, Event, SourceStatus
from .interrupts import pass_on
from .notebook_cells import CellNames
from .storage.texts import TextQuota, clean

#: What a source's function returns: events, and artifacts with their text.
Made = Iterable["Event | tuple[Artifact, str]"]


class Noting(Protocol):
    """Counts errors of its own."""

    def note_error(self, error: BaseException) -> None: ...


class Feed(Noting, Protocol):
    """A source, as the recorder sees it."""

    events: int
    dropped: int

    @property
    def name(self) -> str: ...
    def status(self) -> SourceStatus: ...


class Counter(Noting, Protocol):
    """Counts in the user's program, and hands over its counts at every `tick`."""

    def tick(self, final: bool = False) -> None: ...
    def reset_after_fork(self) -> None: ...


class Running(Protocol):
    """The compile that runs in one thread."""

    def state(self) -> dict[str, Any]: ...


def read_state(feed: Feed, note_error: Callable[[BaseException, Feed], None]) -> SourceStatus:
    """The state of a source; one that says why, if it can't be read."""
    try:
        return feed.status()
    except Exception as error:
        pass_on(error)
        note_error(error, feed)
        reason = f"its state can't be read: {type(error).__name__}: {error}"
        now = clock.now_ns()
        return SourceStatus(time_ns=now, name=feed.name, status="failed", reason_code="errors", reason=reason)


def make_events(
    feed: Feed,
    make: Callable[..., Made],
    args: tuple[Any, ...],
    cells: CellNames,
    quota: TextQuota,
    texts: list[tuple[str, str]],
) -> list[Event]:
    """The events of `make(*args)`, which `feed` has handed over; those of its texts that are kept go into `texts`."""
    made = [_keep(feed, i, quota, texts) if isinstance(i, tuple) else i for i in make(*args)]
    named = [cells.rename(event) for event in made]
    feed.events += len(named)
    return named


def _keep(feed: Feed, item: tuple[Artifact, str], quota: TextQuota, texts: list[tuple[str, str]]) -> Artifact:
    artifact, text = item
    text = clean(text)
    kept = quota.take(text)
    if kept.digest is None:
        feed.dropped += 1
    elif kept.is_new:
        texts.append((kept.digest, text))
    return dataclasses.replace(artifact, size=kept.size, digest=kept.digest)
