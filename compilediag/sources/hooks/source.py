"""What every source is: hooks that go in and out as one, a status with a reason, its own cost."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any, ClassVar

from ...events import SourceStatus
from ...recording import Made, Recorder
from . import shield
from .late_imports import WhenImported
from .patching import Patch

#: After so many errors of its own a source takes itself out.
MAX_ERRORS = 5


class Unavailable(Exception):
    """The installed torch lacks what a source needs; the message says what."""


class NothingToWatch(Unavailable):
    """What a source watches can't happen here (triton is not installed, say), so that nothing is missed."""


class Source:
    """One family of hooks. A subclass gives `name`, `patches` and, if it needs more, `open` and `close`.

    `details` are the levels of detail at which it works; one that is `on_request` works only if it is asked for.
    """

    name: ClassVar[str]
    details: ClassVar[tuple[str, ...]] = ("lean", "full")
    on_request: ClassVar[bool] = False

    def __init__(self, recorder: Recorder, detail: str):
        self.recorder = recorder
        self.detail = detail
        self.events = 0
        self.dropped = 0
        self.errors = 0
        self._last_error = ""
        self.overhead_ns = 0
        self._state: tuple[str, str | None] = ("off", None)
        self._patches: list[Patch] = []
        self._imports: WhenImported | None = None

    @property
    def active(self) -> bool:
        return self._state[0] == "active"

    @classmethod
    def probe(cls) -> None:
        """Unavailable with a reason if the installed torch lacks what this source needs; NothingToWatch if that
        is no loss, as what it watches can't happen here.
        """
        raise Unavailable(f"{cls.name} has no probe")

    def patches(self) -> list[Patch]:
        """The hooks, not yet in. Unavailable if one has no place to go."""
        return []

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        """Hooks for modules that torch may import later: module -> what gives them once it is there."""
        return {}

    def open(self) -> None:
        """What else has to be put in."""

    def close(self) -> None:
        """Take out what `open` put in."""

    def notice(self, error: BaseException) -> None:
        """An exception of the user's program is about to leave what we watch."""

    def begin(self, asked_for: bool = False) -> None:
        """Put everything in; on failure nothing stays, and the status says why. Never raises."""
        if self.on_request and not asked_for:
            self._state = ("off", "not asked for")
            return
        if self.detail not in self.details:
            self._state = ("off", f"detail is {self.detail}")
            return
        try:
            self.probe()
            self._patches = self.patches()
            for patch in self._patches:
                patch.put_in()
            self._put_in_late()
            self.open()
            self._state = ("active", None)
        except NothingToWatch as why:
            self._take_out()
            self._state = ("off", f"nothing to watch: {why}")
        except Unavailable as why:
            self._take_out()
            self._state = ("unavailable", str(why))
        except Exception as error:
            self._take_out()
            self._state = ("unavailable", shield.told(error))
            shield.swallowed(self.name, error)

    def _put_in_late(self) -> None:
        waiting = {}
        for module, patches in self.late_patches().items():
            if module in sys.modules:
                self._put_in(patches)
            else:
                waiting[module] = functools.partial(self._imported, patches)
        if waiting:
            self._imports = WhenImported(waiting)
            self._imports.put_in()

    def _put_in(self, patches: Callable[[], list[Patch]]) -> None:
        for patch in patches():
            self._patches.append(patch)
            patch.put_in()

    def _imported(self, patches: Callable[[], list[Patch]]) -> None:
        """torch has just imported a module that we waited for. Never raises."""
        if not self.active:
            return
        try:
            self._put_in(patches)
        except Unavailable as why:
            self._state = ("unavailable", str(why))
            self._shut()
        except Exception as error:
            self.failed(error)

    def end(self) -> None:
        """Take everything out. A patch that somebody wrapped since stays where it is, without effect.

        The status stays as it was: a session says of each source whether it was active while it was recorded.
        """
        if self.active:
            self._shut()

    def _shut(self) -> None:
        """Take everything out, whatever `close` meets."""
        self._take_out()
        try:
            self.close()
        except Exception as error:
            shield.swallowed(self.name, error)

    def _take_out(self) -> None:
        if self._imports is not None:
            self._imports.take_out()
        for patch in reversed(self._patches):
            patch.take_out()

    def emit(self, make: Any, *args: Any) -> None:
        """Hand `make(*args)`, which gives events, to the recorder."""
        self.recorder.put(self, make, *args)

    def guarded(self, observe: Any, *args: Any) -> None:
        """Call one of our own hooks: timed, and nothing that it raises gets out."""
        begin = time.perf_counter_ns()
        try:
            observe(*args)
        except Exception as error:
            self.failed(error)
        self.overhead_ns += time.perf_counter_ns() - begin

    def failed(self, error: BaseException) -> None:
        """Count an error of ours; after too many this source is switched off and says so."""
        self.errors += 1
        self._last_error = shield.told(error)
        shield.swallowed(self.name, error)
        if self.errors >= MAX_ERRORS and self._state[0] == "active":
            self._state = ("failed", f"switched off after {self.errors} errors, the last {self._last_error}")
            self._shut()

    def status(self) -> SourceStatus:
        state, reason = self._state
        if state == "active" and self.errors:
            reason = f"{self.errors} errors so far, the last {self._last_error}"
        return SourceStatus(
            time_ns=time.time_ns(),
            name=self.name,
            status=state,
            reason=reason,
            events=self.events,
            dropped=self.dropped,
            overhead_s=self.overhead_ns / 1e9,
        )


def made(*events: Any) -> Made:
    """Events that need no more work."""
    return events
