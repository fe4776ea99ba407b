"""Parts of a Markdown document as GitHub renders it. Text of the user's program cannot become markup, a mention or a
link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ..diagnosis.rules.graph_break_rules import BREAK_PAGE
from ..formatting import format_line

#: Characters that can begin markup; an underscore between two letters or digits cannot.
_MARKUP = re.compile(r"([\\`*\[\]<>#|~&$]|(?<![^\W_])_|_(?![^\W_]))")
#: GitHub links addresses, mentions, numbers of issues and digests of commits after Markdown, so an escape does not stop
#: them. An empty comment does, behind `https:`, `www`, `@`, `#` and `GH-`, and within a digest.
_REFERENCE = re.compile(r"\w:(?=//)|www(?=\.)|@(?=\w)|(?<=\\)#(?=\d)|\bGH-(?=\d)", re.IGNORECASE)
_DIGEST = re.compile(r"\b(?=[a-f]*\d)[0-9a-f]{7,40}\b", re.IGNORECASE)
_SHORT = re.compile(r".{6}(?=.)")
_NOTHING = "<!-- -->"
#: The only addresses in our own sentences: torch's pages about graph breaks.
_PAGE = re.compile(rf"({re.escape(BREAK_PAGE)}gb\d{{1,6}}\.html)(?!\S)")
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
    parts = _PAGE.split(text)
    return "".join(f"<{part}>" if i % 2 else _escape_text(part) for i, part in enumerate(parts))


def _escape_text(text: str) -> str:
    plain = _REFERENCE.sub(rf"\g<0>{_NOTHING}", _MARKUP.sub(r"\\\1", text))
    return _DIGEST.sub(lambda found: _SHORT.sub(rf"\g<0>{_NOTHING}", found[0]), plain)


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
