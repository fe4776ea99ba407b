"""In which thread a compile ran, by its call stack: modes and settings of torch belong to one thread."""

from __future__ import annotations

import re

from ...events import Compile, Rows
from ...formatting import format_function
from ..stack_walk import StackWalk

#: Frames that run a thread's own function.
_MACHINERY = re.compile(r"[\\/](?:threading|concurrent[\\/]futures[\\/]thread)\.py$")
_STARTS_THREAD = re.compile(r"[\\/]threading\.py$")


class ThreadIndex:
    """Finds the function that the thread of a compile runs."""

    def __init__(self, data: Rows):
        self._stacks = {row.compile_key: row.stack for row in data.rows(Compile) if row.compile_key and row.stack}
        self._walk = StackWalk(data)

    def find(self, compile_key: str | None) -> str | None:
        """`serve (server.py:31)`: the function that a thread runs; None for the main thread, or if it is not known."""
        path = [*self._walk.walk(self._stacks.get(compile_key or ""))]
        if not path or not _STARTS_THREAD.search(path[-1].file or ""):
            return None
        own = (row for row in reversed(path) if not _MACHINERY.search(row.file or ""))
        first = next(own, None)
        return format_function(first.function, first.file, first.line) if first else None
