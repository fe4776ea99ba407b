"""Plug-ins: record decoders, rules, panels and moves that other packages provide as entry points. See docs/plugins.md.

They are found when first needed and imported when first used. An error in a plug-in, at import or later, affects only
what it provides: it is counted and reported in `session.status()` and the summary. After five errors a plug-in is not
called any more.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from .interrupts import pass_on
from .own_errors import describe_error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")

#: What a plug-in can provide -> the group of entry points.
GROUPS = {name: f"compilediag.{name}" for name in ("decoders", "rules", "panels", "moves")}
#: After so many errors a plug-in is not called any more.
MAX_ERRORS = 5
MAX_REASON = 200


class Plugin:
    """One entry point of a group. `failures` counts its errors, `reason` is the first of them in one line."""

    def __init__(self, group: str, point: EntryPoint):
        self.group = group
        self.name = point.name
        self.failures = 0
        self.reason: str | None = None
        self._point = point
        self._object: Any = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<plug-in {self.subject}>"

    @property
    def subject(self) -> str:
        """What it is and which package provides it: `rule idle of sample-plugin`."""
        package = self._point.dist.name if self._point.dist is not None else "an unknown package"
        return f"{self.group.removesuffix('s')} {self.name} of {package}"

    def call(self, accept: Callable[[Any], Any], *args: Any) -> Any:
        """Call it with `args` and return `accept(result)`; None if either raises, or after too many errors."""
        return self.use(lambda function: accept(function(*args)))

    def use(self, work: Callable[[Any], T]) -> T | None:
        """What `work` returns for the object of the entry point; None if it raises, or the import, or after too many
        errors.
        """
        if self.failures >= MAX_ERRORS:
            return None
        try:
            if self._object is None:
                self._object = self._point.load()
            return work(self._object)
        except Exception as error:
            pass_on(error)
            with self._lock:
                self.failures += 1
                self.reason = self.reason or describe_error(error)[:MAX_REASON]
            return None


@functools.cache
def list_plugins(group: str) -> tuple[Plugin, ...]:
    """The plug-ins of a group, sorted by name, the same objects each time. Imports nothing."""
    from importlib.metadata import entry_points  # Slow to import, and most processes ask for no plug-in.

    points = entry_points(group=GROUPS[group])
    # A package can be found twice: in a folder on the path and in site-packages.
    by_name = {(point.name, point.value): point for point in points}
    return tuple(Plugin(group, by_name[key]) for key in sorted(by_name))


def find_decoder(kind: str) -> Plugin | None:
    """The plug-in that decodes records of this kind."""
    return next((plugin for plugin in list_plugins("decoders") if plugin.name == kind), None)


def list_failed() -> list[Plugin]:
    """The plug-ins that failed so far in this process."""
    return [plugin for group in GROUPS for plugin in list_plugins(group) if plugin.failures]


def explain_failures() -> dict[str, str]:
    """Plug-in that failed -> how often and why."""
    return {f"{p.subject}, a plug-in": f"it failed {p.failures}x: {p.reason}" for p in list_failed()}
