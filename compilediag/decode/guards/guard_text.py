"""torch's guard texts, parsed: the guarded value, what was expected, what was found, and the line that caused it.

There are three kinds of text. A *code part* is what a guard checks, with the user's line as a comment:
`L['k'] == 1   # y = x + k  # g.py:7 in forward`. A *failure* is what C++ reports of the value that it found:
`tensor 'L['x']' size mismatch at index 0. expected 2, actual 3`. A *reason* is either of them after a
compile id and perhaps before a stack. torch makes them in torch/_dynamo/guards.py (the
methods of GuardBuilder) and torch/csrc/dynamo/guards.cpp, read at torch 2.11, 2.13 and 2.15.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ..call_stacks import find_user_line
from .guard_forms import LEAF_KINDS, match_form

_COMPILE_ID = re.compile(r"^(?:[-*\s]*)(?:\[?!?\d+/\d+(?:_\d+)?(?:/\d+)?\]?: )?")
_STACK = "User stack trace:\n"
_COMMENT = re.compile(r"\s+# ")
_PLACE = re.compile(r"  # (?P<file>[^\s#:][^#:\n]*(?::\\[^#:\n]*)?):(?P<line>\d{1,9}) in \S+")
_HINT = re.compile(r"\(HINT: (?P<hint>.*)\)\s*$", re.S)
_CLOSURE_HINT = re.compile(r'guard on "([^"]+)"(\S*?)(?:,|\)|$)')
#: Characters of a text that are searched; the whole text is kept.
_SEARCHED = 20_000
#: Most characters of expected and actual, which are shown in one line; `text` has all of them.
_MAX_VALUE = 200


class ParsedGuard(NamedTuple):
    """One guard. `operands` are its sources as torch writes them, which can be evaluated."""

    source: str | None
    kind: str
    expected: str | None
    actual: str | None
    user_file: str | None
    user_line: int | None
    user_code: str | None
    text: str
    operands: tuple[str, ...] = ()


def parse_guard(text: str, leaf: str | None = None) -> ParsedGuard:
    """Parse one guard text (see the module's docstring); never raises on a str.

    `leaf`: the C++ class of the guard if it is known (`TENSOR_MATCH`, `EQUALS_MATCH`, ...). It decides the kind if
    the text does not. A text of unknown form has kind "other" and no source.
    """
    parsed = _parse(text, leaf == "SYMBOLIC_SHAPE_GUARD")
    if parsed.kind == "other" and leaf in LEAF_KINDS:
        return parsed._replace(kind=LEAF_KINDS[leaf])
    return parsed


@lru_cache(maxsize=4096)
def _parse(text: str, is_shape: bool) -> ParsedGuard:
    body, _, stack = text[:_SEARCHED].partition(_STACK)
    body = _COMPILE_ID.sub("", body, count=1).rstrip()
    code, comment = split_comment(body)
    hint = _HINT.search(comment)
    if not comment and (hint := _HINT.search(code)):
        code = code[: hint.start()]
    kind, source, expected, actual, operands = match_form(code.strip(), is_shape)
    file, line, user_code = parse_user_line(comment, stack)
    return ParsedGuard(
        source=_name_closure(source, hint),
        kind=kind,
        expected=_shorten(expected),
        actual=_shorten(actual),
        user_file=file,
        user_line=line,
        user_code=user_code,
        text=text.strip(),
        operands=operands,
    )


def _shorten(value: str | None) -> str | None:
    return value if value is None or len(value) <= _MAX_VALUE else value[: _MAX_VALUE - 3] + "..."


def split_comment(body: str) -> tuple[str, str]:
    """Return the code part and torch's comment after it: the user's line, or why the guard exists."""
    for mark in _COMMENT.finditer(body):
        code = body[: mark.start()]
        # "  # " inside a string of the code part does not start a comment.
        if code.count("'") % 2 == code.count('"') % 2 == 0:
            return code, body[mark.end() :]
    return body, ""


@lru_cache(maxsize=256)
def parse_user_line(comment: str, stack: str) -> tuple[str | None, int | None, str | None]:
    """Return file, line and code of the user's line: from the stack (whole paths) if there is one, else the comment.

    Cached: the guards of a storm of recompiles differ in their values, and have one comment.
    """
    found = find_user_line(stack)
    if found is not None:
        return found
    # With this prefix one pattern finds a place with and without code before it, and its literal start is fast.
    marked = f"  # {comment}"
    place = _PLACE.search(marked)
    if not place or place["file"].startswith("_dynamo"):
        # Guards on global state come from a line of Dynamo itself.
        return None, None, None
    return place["file"], int(place["line"]), marked[4 : place.start()].strip() or None


def _name_closure(source: str | None, hint: re.Match[str] | None) -> str | None:
    """Return the name of `fn.__closure__[0].cell_contents`, which torch 2.13 writes into the hint."""
    named = _CLOSURE_HINT.search(hint["hint"]) if hint else None
    if source is None or named is None or ".cell_contents" not in source:
        return source
    head, _, tail = source.rpartition(".cell_contents")
    start = re.split(r"[\w.\]\[']*$", head)[0]
    return f"{start}{named[1]}{tail}"
