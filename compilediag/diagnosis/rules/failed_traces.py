"""Explain a compile that failed while torch traced the code: at which line, and what a library offers instead."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

from ...events import Compile, Rows, StackFrame
from ...formatting import format_place
from ..recipes import find_recipe

#: Frames of one stack at most.
_MAX_DEPTH = 2_000


class FailedTraces:
    """Explains failed compiles by the line that torch traced, and by the functions around the call."""

    def __init__(self, data: Rows):
        self._frames = {frame.stack: frame for frame in data.rows(StackFrame)}

    def explain(self, row: Compile) -> str | None:
        """What to do; None if the compile did not fail while torch traced the code.

        An exception that is Python's own comes from the tracing: torch wraps those of backends into its own.
        """
        if row.user_file is None or not hasattr(builtins, (row.fail_type or "").rpartition(".")[2]):
            return None
        recipe = find_recipe("compile_failed", row.function or "", None, tuple(self._list_files(row.stack)))
        place = format_place(row.user_file, row.user_line)
        where = f"torch failed while it traced {place}."
        if recipe is not None:
            return f"{recipe.action} {recipe.why} {where}"
        return (
            f"Keep the call that leads to {place} out of the compiled code: move it out of the function, or put "
            f"@torch.compiler.disable on the function that makes it. {where}"
        )

    def _list_files(self, stack: str | None) -> Iterator[str]:
        """The files of the functions around a compiled one."""
        frame = self._frames.get(stack or "")
        for _ in range(_MAX_DEPTH):
            if frame is None:
                return
            yield frame.file or ""
            frame = self._frames.get(frame.caller or "")
