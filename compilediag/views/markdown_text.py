"""Parts of a Markdown document as GitHub renders it. Text of the user's program cannot become markup, a mention or a
link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..formatting import format_line

#: Characters that can begin markup; an underscore within a word cannot.
_MARKUP = re.compile(r"([\\`*\[\]<>#|~&$]|\b_|_\b)")
#: GitHub reads mentions and numbers of issues after Markdown, so an escape does not stop them; an empty comment does.
_REFERENCE = re.compile(r"@(?=\w)|(?<=\\#)(?=\d)")
_BAR = re.compile(r"(?<!\\)[|]")
_TICKS = re.compile(r"`+")
#: Cells and spans are cut at so many characters.
MAX_SPAN = 160


def format_span(text: str, limit: int = MAX_SPAN) -> str:
    """A text as a code span on one line; "" for none."""
    line = format_line(text, limit)
    if not line:
        return ""
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(line)), default=0))
    gap = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{gap}{line}{gap}{ticks}"


def format_sentence(text: str) -> str:
    """A sentence as text; code between backticks stays code."""
    parts = " ".join(text.split()).split("`")
    is_code = [bool(i % 2) and i < len(parts) - 1 for i in range(len(parts))]
    return "".join(format_span(p) if c else _escape(p) for p, c in zip(parts, is_code, strict=True))


def _escape(text: str) -> str:
    return _REFERENCE.sub(lambda found: f"{found[0]}<!-- -->", _MARKUP.sub(r"\\\1", text))


def format_block(code: str, language: str = "", indent: str = "") -> str:
    """Lines of code in a fence that no line in them can close; `indent` puts the block into an item of a list."""
    longest = max((len(run) for run in _TICKS.findall(code)), default=0)
    fence = "`" * max(3, longest + 1)
    lines = [fence + language, *code.splitlines(), fence]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def format_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; its cells are Markdown already. A bar would end a cell, also in a code span."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(_escape_bars, line))} |" for line in lines)


def _escape_bars(cell: str) -> str:
    return _BAR.sub(r"\|", cell)
