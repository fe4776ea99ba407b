"""The code of a program: source files that a session names, and cells of notebooks.

A session may come from somebody else, and name any file of this machine. Cells have names instead of the file names
that IPython makes up for their code.
"""

from __future__ import annotations

import dataclasses
import io
import os
import re
import stat
import sys
import tokenize
from collections.abc import Iterable
from typing import Any, TypeVar

from ..decode.call_stacks import OwnCode
from ..errors import CompilediagError
from ..events import KINDS, Event, columns
from .interrupts import ignore, pass_on
from .program import list_library_folders

MAX_BYTES = 1_000_000


class UnreadableSource(CompilediagError):
    """A file is not read: it is not a source file of the program, or not there."""


class SourceReader:
    """Reads the source files of the program that a session is about.

    A file is read only if it is a regular file `*.py` of at most 1 MB, in the current folder or in one of `folders`,
    and not in a folder of installed packages or of Python itself. Links are followed first. With `is_own` this process
    recorded the session, so the files of the program may be in any folder. `scripts` are files that the user named,
    with any ending.
    """

    def __init__(self, is_own: bool = False, folders: Iterable[str] = (), scripts: Iterable[str] = ()):
        self._is_own = is_own
        self._folders = [*folders]
        self._scripts = {os.path.realpath(script) for script in scripts}
        self._code = OwnCode(libraries=list_library_folders())

    def read(self, file: str) -> str:
        """The text of a file with its own line ends. UnreadableSource if it is not one that may be read."""
        try:
            path = os.path.realpath(file)
            if not self._is_of_program(file, path):
                raise UnreadableSource(f"{file} is not read: it is no Python file in the folder of the program")
            no_link = getattr(os, "O_NOFOLLOW", 0)
            with open(path, "rb", opener=lambda name, flags: open_without_waiting(name, flags | no_link)) as stream:
                status = os.fstat(stream.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise ValueError("it is not a regular file")
                if status.st_size > MAX_BYTES:
                    raise ValueError(f"it has more than {MAX_BYTES:,} bytes")
                content = stream.read(MAX_BYTES)
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            return content.decode(encoding)
        except (OSError, SyntaxError, ValueError, LookupError) as error:
            pass_on(error)
            raise UnreadableSource(f"{file} is not read: {getattr(error, 'strerror', None) or error}") from None

    def find(self, file: str) -> str | None:
        """The text of a file; None if it is not one that may be read."""
        try:
            return self.read(file)
        except UnreadableSource:
            return None

    def _is_of_program(self, file: str, path: str) -> bool:
        if not os.path.isabs(file) or os.pardir in file.replace("\\", "/").split("/"):
            return False
        if path not in self._scripts and not path.endswith(".py"):
            return False
        if not (self._code.is_own(file) and self._code.is_own(path)):
            return False
        if self._is_own:
            return True
        folders = {os.path.realpath(folder) for folder in self._folders}
        with ignore(OSError):  # The current folder may have been deleted.
            folders.add(os.path.realpath(os.getcwd()))
        # The root folder is none of the program's: it has all files.
        return any(path.startswith(folder + os.sep) for folder in folders if folder != os.path.dirname(folder))


def split_lines(text: str) -> list[str]:
    """The lines of a source file with their ends, as Python counts them: a form feed does not end a line."""
    return io.StringIO(text, newline="").readlines()


def open_without_waiting(file: str, flags: int) -> int:
    """An `opener` for `open` that does not block: somebody may have put a pipe, or a link to a device, in place of the
    file.
    """
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))


# Cells of notebooks

#: The columns of each kind that hold files of code.
FILE_COLUMNS = {kind.table: [name for name in columns(kind) if re.fullmatch(r"(?:\w+_)?file", name)] for kind in KINDS}
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
        if file not in self._known:
            marimo = _MARIMO.search(file)
            # IPython has a label for what it compiled under this file name, and none for a real file.
            format_name = getattr(getattr(find_shell(), "compile", None), "format_code_name", None)
            label = ("marimo cell", marimo[1]) if marimo else format_name(file) if format_name is not None else None
            self._known[file] = " ".join(label) if label else file
        return self._known[file]


def read_cell(number: int) -> list[str] | None:
    """The lines of a cell as it ran (IPython drops empty ones before the first); None if IPython has no such cell."""
    return _read_history("input_hist_parsed", number)


def _read_history(kind: str, number: int) -> list[str] | None:
    texts = getattr(getattr(find_shell(), "history_manager", None), kind, None)
    return texts[number].splitlines() if isinstance(texts, list) and 0 < number < len(texts) else None


def read_cell_code(number: int) -> str | None:
    """The text of a cell as it ran, in which a docstring stands for the line of a magic at its top; None if IPython has
    no such cell.
    """
    ran, typed = read_cell(number), read_typed_cell(number)
    if not ran or not typed or len(ran) != len(typed):
        return None
    return "\n".join(['"""The cell."""' if typed[0].startswith("%%") else ran[0], *ran[1:]]) + "\n"


def read_typed_cell(number: int) -> list[str] | None:
    """The lines of a cell as it was typed, without empty ones before the first; None if IPython has no such cell."""
    lines = _read_history("input_hist_raw", number)
    if lines is None:
        return None
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    return lines[first:]


def find_shell() -> Any:
    """The IPython that runs in this process; None if none does."""
    # Another thread may be about to import IPython: it is there, and has nothing in it yet.
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython() if get_ipython is not None else None
