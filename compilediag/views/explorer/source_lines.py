"""The user's code around a line, read when a page is made, and only if it is surely what was compiled."""

from __future__ import annotations

import os
import re
import stat

from ...notebook_cells import running_shell

#: Lines before and after.
AROUND = 4
MAX_BYTES = 1_000_000
_CELL = re.compile(r"Cell In\[(\d{1,9})\]")
_MAX_CHARS = 300


class SourceLines:
    """Reads Python files of this machine, and cells of this notebook if the session is `own`.

    A session does not keep files, and what it names may have changed, or have been made up by whoever sent the
    session. So a line is shown with those around it only if it is in a regular file of Python, of at most 1 MB, and
    there still is the text that torch recorded for it.
    """

    def __init__(self, own: bool):
        self._own = own
        self._files: dict[str, list[str] | None] = {}

    def around(self, file: str | None, line: int | None, code: str | None) -> list[list[object]] | None:
        """[number, text] of the lines around, in order; None if they are not known for sure."""
        if file is None or line is None or not code:
            return None
        if file not in self._files:
            self._files[file] = self._read(file)
        lines = self._files[file]
        if lines is None or not 1 <= line <= len(lines) or lines[line - 1].strip() != code.strip():
            return None
        first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
        return [[number, lines[number - 1][:_MAX_CHARS]] for number in range(first, last + 1)]

    def _read(self, file: str) -> list[str] | None:
        if cell := _CELL.fullmatch(file):
            return _cell_lines(int(cell[1])) if self._own else None
        return _file_lines(file) if file.endswith(".py") and os.path.isabs(file) else None


def _file_lines(file: str) -> list[str] | None:
    try:
        with open(file, "rb", opener=_without_waiting) as opened:
            status = os.fstat(opened.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
                return None
            return opened.read(MAX_BYTES).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def _without_waiting(file: str, flags: int) -> int:
    """A pipe that is named like a file must not keep the page waiting."""
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))


def _cell_lines(number: int) -> list[str] | None:
    """The lines of a notebook cell as they ran (IPython drops empty ones before the first), from its own history."""
    ran = getattr(getattr(running_shell(), "history_manager", None), "input_hist_parsed", None)
    if not isinstance(ran, list) or not 0 < number < len(ran):
        return None
    return ran[number].splitlines()
