"""Paths that results will be written to."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import CompilediagError


def check_output(path: str | os.PathLike[str]) -> None:
    """CompilediagError if a file can't be written there. Writes nothing."""
    file = Path(path)
    if file.is_dir():
        raise CompilediagError(f"can't write {path}: it is a folder")
    if not file.parent.is_dir():
        raise CompilediagError(f"can't write {path}: there is no folder {file.parent}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise CompilediagError(f"can't write {path}: no permission")
