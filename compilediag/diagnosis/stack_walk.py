"""Walks recorded call stacks: each frame is a row that names its caller."""

from __future__ import annotations

from collections.abc import Iterator

from ..events import Rows, StackFrame

#: Frames of one stack at most.
MAX_DEPTH = 1_000


class StackWalk:
    """Walks the call stacks of a session."""

    def __init__(self, data: Rows):
        self._frames = {row.stack: row for row in data.rows(StackFrame)}

    def walk(self, stack: str | None) -> Iterator[StackFrame]:
        """The frames of the stack with this key, innermost first; none if it is not recorded. In a damaged file frames
        can be each other's callers: each is there once.
        """
        seen: set[str | None] = set()
        while len(seen) < MAX_DEPTH and stack not in seen:
            frame = self._frames.get(stack or "")
            if frame is None:
                return
            yield frame
            seen.add(stack)
            stack = frame.caller
