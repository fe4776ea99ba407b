"""Plain text that fits a terminal: wrapped lines, and only characters that the output's encoding has."""

from __future__ import annotations

import sys
import textwrap

from ..formatting import escape_lines

WIDTH = 100


def wrap(text: str, first: str = "", rest: str = "") -> list[str]:
    """Split `text` into lines of at most WIDTH columns. `first` and `rest` are the indents of the lines."""
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]


def escape_unprintable(text: str, encoding: str | None = None) -> str:
    """Escape what a terminal would obey, what `encoding` (by default that of standard output) lacks, and lone
    surrogates, with backslashes.
    """
    target = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    return escape_lines(text).encode(target, "backslashreplace").decode(target)
