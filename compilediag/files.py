"""Check and write output files: reports, exports, diffs.

What is written can contain source code and values of the user's program, so files are readable by their owner alone
(mode 0600), and folders that are created can be entered by their owner alone (0700). Existing folders stay as they are.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import CompilediagError


def make_absolute(path: str | os.PathLike[str]) -> Path:
    """The absolute path. CompilediagError if it is relative and the working directory was deleted."""
    try:
        return Path(path).absolute()
    except FileNotFoundError:
        raise CompilediagError(
            f"{path} is relative and the working directory was deleted; use an absolute path"
        ) from None


def find_working_folder() -> str | None:
    """The working directory of this process; None if it was deleted."""
    try:
        return os.getcwd()
    except OSError:
        return None


def check_output(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written at `path`, without writing it; CompilediagError if it cannot."""
    file = Path(path)
    if file.is_dir():
        raise CompilediagError(f"can't write {path}: it is a folder")
    if not file.parent.is_dir():
        raise CompilediagError(f"can't write {path}: there is no folder {file.parent}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise CompilediagError(f"can't write {path}: no permission")


def create_folder(folder: Path) -> None:
    """Create a folder for its owner alone, unless it exists. CompilediagError if it can't be created."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise CompilediagError(f"can't write {folder}: {error.strerror}") from None


def open_private(path: str, flags: int) -> int:
    """An `opener` for `open`: a file that it creates is readable by its owner alone, and no link is followed."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)


def write_file(target: Path, content: str | bytes) -> None:
    """Write a file whole or not at all, for its owner alone: an existing file, or link, is replaced only when the new
    one is complete. CompilediagError if it can't be written.
    """
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=".compilediag-", delete=False) as file:
            temporary = Path(file.name)
            file.write(content if isinstance(content, bytes) else content.encode("utf-8", "replace"))
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise CompilediagError(f"can't write {target}: {error.strerror or error}") from None
