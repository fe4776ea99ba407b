"""Notebook cells: their names instead of the file names that IPython makes up for their code, and their text."""

from __future__ import annotations

import dataclasses
import re
import sys
from typing import Any, TypeVar

from ..events import KINDS, Event, columns

#: The columns of each kind that hold files of code.
FILE_COLUMNS = {kind.table: [name for name in ("file", "user_file") if name in columns(kind)] for kind in KINDS}
E = TypeVar("E", bound=Event)
#: The file that marimo compiles a cell as.
_MARIMO = re.compile(r"[/\\]__marimo__cell_(\w+?)_[^/\\]*\.py$")


class CellNames:
    """Names files: `Cell In[4]` for code of a cell of the running IPython, `marimo cell Hbol` for one of marimo, which
    shows these ids in its tracebacks, else the name itself.

    A cell keeps the number that it had first, so that events of the same file stay together.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def rename(self, event: E) -> E:
        """The event with cells instead of files in its columns that hold files."""
        renamed: dict[str, Any] = {}
        for column in FILE_COLUMNS[event.table]:
            file = getattr(event, column)
            name = self.name(file)
            if name != file:
                renamed[column] = name
        return dataclasses.replace(event, **renamed) if renamed else event

    def name(self, file: str | None) -> str | None:
        """What the code of a file is shown as."""
        if file is None:
            return None
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = _name_marimo_cell(file) or _cell(file) or file
        return known


def read_cell(number: int) -> list[str] | None:
    """The lines of a cell as it ran (IPython drops empty ones before the first); None if IPython has no such cell."""
    ran = getattr(getattr(find_shell(), "history_manager", None), "input_hist_parsed", None)
    if not isinstance(ran, list) or not 0 < number < len(ran):
        return None
    lines: list[str] = ran[number].splitlines()
    return lines


def find_shell() -> Any:
    """The IPython that runs in this process; None if none does."""
    # Another thread may be about to import IPython: it is there, and has nothing in it yet.
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython is not None else None


def _name_marimo_cell(file: str) -> str | None:
    found = _MARIMO.search(file)
    return f"marimo cell {found[1]}" if found else None


def _cell(file: str) -> str | None:
    """The cell that IPython compiled under this file name; None outside of IPython, or for a real file."""
    format_name = getattr(getattr(find_shell(), "compile", None), "format_code_name", None)
    if format_name is None:
        return None
    label = format_name(file)
    return " ".join(label) if label else None
