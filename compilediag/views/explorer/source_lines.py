"""Read the user's code around a line when a page is made, and only if it certainly is what was compiled."""

from __future__ import annotations

import re

from ...notebook_cells import read_cell
from ...source_files import SourceReader, split_lines

#: Lines that are shown before and after the line itself.
AROUND = 4
_CELL = re.compile(r"Cell In\[(\d{1,9})\]")
_MAX_CHARS = 300


class SourceLines:
    """Reads the program's Python files, and cells of this notebook if the session was recorded in it (`is_own`).

    A session does not keep files. What it names may have changed since, and a session from elsewhere may name any
    file. So lines are shown only if `SourceReader` reads the file, and the whole line still has the text that torch
    recorded.
    """

    def __init__(self, is_own: bool):
        self._is_own = is_own
        self._reader = SourceReader(is_own)
        self._files: dict[str, list[str] | None] = {}

    def read_around(self, file: str | None, line: int | None, code: str | None) -> list[tuple[int, str]] | None:
        """(number, text) of the lines around a line, in order; None if they cannot be verified."""
        if file is None or line is None or not code:
            return None
        if file not in self._files:
            self._files[file] = self._read(file)
        lines = self._files[file]
        if lines is None or not 1 <= line <= len(lines) or lines[line - 1].strip() != code.strip():
            return None
        first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
        return [(number, lines[number - 1][:_MAX_CHARS]) for number in range(first, last + 1)]

    def _read(self, file: str) -> list[str] | None:
        if cell := _CELL.fullmatch(file):
            return read_cell(int(cell[1])) if self._is_own else None
        text = self._reader.find(file)
        return None if text is None else [line.rstrip("\r\n") for line in split_lines(text)]
