"""The source of cells with our magics, as IPython has registered it."""

from __future__ import annotations

import linecache
import re
import sys
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

#: The subcommand that runs the executed cells without and with their plan.
TRY, FIX = "try", "fix"
#: Subcommands that run the cells in fresh processes.
TRIALS = (TRY, FIX)
#: The first line of a cell with our magic, and its arguments.
FIRST_LINE = re.compile(r"%%compilewatch(?![\w?])(.*)")

#: What IPython makes of a line magic that stands alone.
_LINE_MAGIC = "get_ipython().run_line_magic("


def is_trial(arguments: str) -> bool:
    """True for the arguments of a magic that runs the cells in fresh processes."""
    return arguments.split()[:1] in [[action] for action in TRIALS]


def name_cell(number: int) -> str:
    """What the code of a cell is recorded as."""
    return f"Cell In[{number}]"


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


def hide_magic(lines: list[str]) -> list[str]:
    """Make a comment of the line `%%compilewatch ARGS` on top of a cell, as an input transformation of IPython."""
    from IPython.core.inputtransformer2 import cell_magic

    is_ours = bool(lines) and FIRST_LINE.match(lines[0]) is not None
    return [f"# {lines[0]}", *cell_magic(lines[1:])] if is_ours else lines


def write_python(text: str) -> str:
    """A cell as Python, without our magic; its lines keep their numbers."""
    from IPython.core.inputtransformer2 import TransformerManager

    transformers = TransformerManager()
    transformers.cleanup_transforms.append(hide_magic)
    return transformers.transform_cell(text)
