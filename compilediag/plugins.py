"""Plug-ins: record decoders, rules and panels that other packages bring, by entry point. See docs/plugins.md.

They are looked up when first needed and imported when first used. What one of them raises, at import or later, costs
its own part alone: it is counted and told in `session.status()` and the summary, and after five errors it is left out.
"""

from __future__ import annotations

import functools
import importlib.metadata
import threading
from collections.abc import Callable
from typing import Any

#: What can be brought -> the group of entry points.
GROUPS = {name: f"compilediag.{name}" for name in ("decoders", "rules", "panels")}
#: After so many errors a plug-in is not called any more.
ERRORS = 5
_TOLD = 200


class Plugin:
    """One entry point of a group. `failures` counts what it raised, `reason` is the first of these in one line."""

    def __init__(self, group: str, point: importlib.metadata.EntryPoint):
        self.group = group
        self.name = point.name
        self.failures = 0
        self.reason: str | None = None
        self._point = point
        self._function: Callable[..., Any] | None = None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<plug-in {self.subject}>"

    @property
    def subject(self) -> str:
        """`rule idle of sample-plugin`: what it is, and of which package."""
        package = self._point.dist.name if self._point.dist is not None else "an unknown package"
        return f"{self.group.removesuffix('s')} {self.name} of {package}"

    def call(self, accept: Callable[[Any], Any], *args: Any) -> Any:
        """What it gives for `args`, as `accept` takes it; None if it, or `accept`, raises, and once it is left out."""
        if self.failures >= ERRORS:
            return None
        try:
            if self._function is None:
                self._function = self._point.load()
            return accept(self._function(*args))
        except Exception as error:
            self._failed(error)
            return None

    def _failed(self, error: Exception) -> None:
        with self._lock:
            self.failures += 1
            self.reason = self.reason or _told(error)


def _told(error: Exception) -> str:
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = "an error without a text"
    return f"{type(error).__name__}: {text}"[:_TOLD]


@functools.cache
def found(group: str) -> tuple[Plugin, ...]:
    """The plug-ins of a group, by name, the same objects each time; nothing is imported."""
    points = importlib.metadata.entry_points(group=GROUPS[group])
    # A package that is installed twice, as in a folder on the path and beside Python, is one.
    by_name = {(point.name, point.value): point for point in points}
    return tuple(Plugin(group, by_name[key]) for key in sorted(by_name))


def decoder(kind: str) -> Plugin | None:
    """The plug-in that decodes records of this kind."""
    return next((plugin for plugin in found("decoders") if plugin.name == kind), None)


def troubles() -> list[Plugin]:
    """Those that failed so far, in this process."""
    return [plugin for group in GROUPS for plugin in found(group) if plugin.failures]


def gaps() -> dict[str, str]:
    """Of those that failed: what it is -> how often and why."""
    return {f"{p.subject}, a plug-in": f"it failed {p.failures}x: {p.reason}" for p in troubles()}
