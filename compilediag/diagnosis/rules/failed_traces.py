"""Explain a compile that failed while torch traced the code: at which line, and what a library offers instead."""

from __future__ import annotations

import builtins

from ...events import Compile, Rows
from ...formatting import format_place
from ..evidence import Evidence
from ..recipes import find_recipe


class FailedTraces:
    """Explains failed compiles by the line that torch traced, and by the functions around the call."""

    def __init__(self, data: Rows):
        self._stacks = Evidence.of(data).stacks

    def explain(self, row: Compile) -> str | None:
        """What to do; None if the compile did not fail while torch traced the code.

        An exception that is Python's own comes from the tracing: torch wraps those of backends into its own.
        """
        if row.user_file is None or not hasattr(builtins, (row.fail_type or "").rpartition(".")[2]):
            return None
        files = tuple(frame.file or "" for frame in self._stacks.walk(row.stack))
        recipe = find_recipe("compile_failed", row.function or "", None, files)
        place = format_place(row.user_file, row.user_line)
        where = f"torch failed while it traced {place}."
        if recipe is not None:
            return f"{recipe.action} {recipe.why} {where}"
        return (
            f"Keep the call that leads to {place} out of the compiled code: move it out of the function, or put "
            f"@torch.compiler.disable on the function that makes it. {where}"
        )
