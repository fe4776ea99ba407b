"""Reads source files that a session names. It may come from elsewhere, and name any file of this machine."""

from __future__ import annotations

import os
import stat

MAX_BYTES = 1_000_000


def read_source(file: str) -> str | None:
    """The text of a Python file with its own line ends; None unless it is a regular file `*.py` of at most 1 MB."""
    if not file.endswith(".py"):
        return None
    try:
        with open(file, "rb", opener=open_without_waiting) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
                return None
            return stream.read(MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def open_without_waiting(file: str, flags: int) -> int:
    """An `opener` for `open` that does not block: somebody may have put a pipe, or a link to a device, in place of the
    file.
    """
    return os.open(file, flags | getattr(os, "O_NONBLOCK", 0))
