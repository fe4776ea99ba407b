"""What a source knows about the recorder that takes its events, and what the recorder knows about a source."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from ...events import Artifact, Event, SourceStatus
from ..compile_context import CompileContext

#: What a source's function returns: one event, or several, and artifacts with their text.
Made = Event | Iterable["Event | tuple[Artifact, str]"] | None
#: At most so many hand-overs wait for the writer; more are dropped and counted.
MAX_WAITING = 200_000


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


@dataclasses.dataclass
class SessionFacts:
    """What is known of a session when it ends, for its meta."""

    device: str | None = None
    #: torch's setting of the same name, as text.
    static_sources: str | None = None
    #: The last of the program's own steps.
    last_step: int | None = None

    def to_meta(self) -> dict[str, Any]:
        """Those that are known."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


class EventSink(Protocol):
    """The recorder, as a source sees it."""

    #: What the sources of the recording share.
    context: CompileContext
    facts: SessionFacts
    #: They hand over their counts before every batch.
    counters: list[Counter]
    #: Thread -> the compile that runs in it.
    progress: dict[int, Running]
    #: True when everything is written: hooks that are left have no effect.
    is_ended: bool

    def put(self, feed: Feed, make: Callable[..., Made], *args: Any) -> None:
        """Hand over what will be `make(*args)`, which runs in the writer's thread."""

    def find_step(self, time_ns: int) -> int | None:
        """The program's step that ran at this time; None without steps."""

    def release(self, counter: Counter) -> None:
        """Ask `counter` for the last time, once no other thread asks it any more."""
