"""Check and write output files: reports, exports, diffs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from .errors import CompilediagError


def check_output(path: str | os.PathLike[str]) -> None:
    """Check that a file can be written at `path`, without writing it; CompilediagError if it cannot."""
    file = Path(path)
    if file.is_dir():
        raise CompilediagError(f"can't write {path}: it is a folder")
    if not file.parent.is_dir():
        raise CompilediagError(f"can't write {path}: there is no folder {file.parent}")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise CompilediagError(f"can't write {path}: no permission")


def write_file(target: Path, text: str) -> None:
    """Write a text file whole or not at all: an existing file is replaced only when the new one is complete."""
    temporary = None
    try:
        with tempfile.NamedTemporaryFile("wb", dir=target.parent, prefix=".compilediag-", delete=False) as file:
            temporary = Path(file.name)
            file.write(text.encode("utf-8", "replace"))
        os.chmod(temporary, 0o666 & ~_get_umask())
        os.replace(temporary, target)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise CompilediagError(f"can't write {target}: {error.strerror or error}") from None


def _get_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
