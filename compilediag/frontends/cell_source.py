"""The source of cells with our magics, as IPython has registered it."""

from __future__ import annotations

import linecache
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: What IPython makes of a line magic that stands alone.
_LINE_MAGIC = "get_ipython().run_line_magic("


def is_statement(shell: InteractiveShell) -> bool:
    """True if the line magic that runs is a statement of its own; false if its result is used, or may be."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals is not shell.user_ns:
        frame = frame.f_back
    line = "" if frame is None else linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    return line.lstrip().startswith(_LINE_MAGIC)


def show_magic_in_tracebacks(file: str, magic: str) -> None:
    """Replace the first line of a cell in what tracebacks show: there it is our call, which the user never typed.

    It becomes a comment, because tools that read a function's source need valid Python.
    """
    entry = linecache.cache.get(file)
    if entry is not None and len(entry) == 4:
        size, modified, lines, name = entry
        linecache.cache[file] = (size, modified, [f"# {magic}\n", *lines[1:]], name)
