"""Torch's guard texts, parsed: what was guarded, what was expected, what was found, and whose line asked for it.

Three kinds of text go in. A *code part* is what a guard checks, with the user's line as a comment:
`L['k'] == 1   # y = x + k  # g.py:7 in forward`. A *failure* is what C++ says of the value that it met:
`tensor 'L['x']' size mismatch at index 0. expected 2, actual 3`. A *reason* is either of them with a
compile id before it and perhaps a stack after it. Where torch makes them: torch/_dynamo/guards.py (the
methods of GuardBuilder) and torch/csrc/dynamo/guards.cpp, read at torch 2.11 and 2.13.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from compilediag.decode.call_stacks import find_user_line
from compilediag.decode.guards.guard_forms import LEAF_KINDS, match_form

_COMPILE_ID = re.compile(r"^(?:[-*\s]*)(?:\[?!?\d+/\d+(?:_\d+)?(?:/\d+)?\]?: )?")
_STACK = "User stack trace:\n"
_COMMENT = re.compile(r"\s+# ")
_PLACE = re.compile(r"  # (?P<file>[^\s#:][^#:\n]*(?::\\[^#:\n]*)?):(?P<line>\d{1,9}) in \S+")
_HINT = re.compile(r"\(HINT: (?P<hint>.*)\)\s*$", re.S)
_CLOSURE_HINT = re.compile(r'guard on "([^"]+)"(\S*?)(?:,|\)|$)')
#: Longer texts are kept whole but only so much of them is searched.
_SEARCHED = 20_000
#: expected and actual are for a line on a screen; the whole is in `text`.
_MAX_VALUE = 200


class ParsedGuard(NamedTuple):
    """A guard, told for people. `operands` are the sources in torch's own words, which can be evaluated."""

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

    `leaf`: the C++ class of the guard where it is known (`TENSOR_MATCH`, `EQUALS_MATCH`, ...); it settles
    the kind where the text alone does not. A text of unknown form has kind "other" and no source.
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


def _shorten(told: str | None) -> str | None:
    return told if told is None or len(told) <= _MAX_VALUE else told[: _MAX_VALUE - 3] + "..."


def split_comment(body: str) -> tuple[str, str]:
    """The code part, and the comment that torch puts behind it: the user's line, or why the guard is there."""
    for mark in _COMMENT.finditer(body):
        code = body[: mark.start()]
        # A "  # " within a string of the code part is no comment.
        if code.count("'") % 2 == code.count('"') % 2 == 0:
            return code, body[mark.end() :]
    return body, ""


def parse_user_line(comment: str, stack: str) -> tuple[str | None, int | None, str | None]:
    """File, line and text of the user's line: from the stack (whole paths) if there is one, else the comment."""
    found = find_user_line(stack)
    if found is not None:
        return found
    # With its mark before it a bare place is found as one behind code is, and a literal beginning is found fast.
    marked = f"  # {comment}"
    place = _PLACE.search(marked)
    if not place or place["file"].startswith("_dynamo"):
        # Guards on the ambient state come from a line of Dynamo's own.
        return None, None, None
    return place["file"], int(place["line"]), marked[4 : place.start()].strip() or None


def _name_closure(source: str | None, hint: re.Match | None) -> str | None:
    """`fn.__closure__[0].cell_contents` has a name, and torch 2.13 tells it in the hint."""
    named = _CLOSURE_HINT.search(hint["hint"]) if hint else None
    if source is None or named is None or ".cell_contents" not in source:
        return source
    head, _, tail = source.rpartition(".cell_contents")
    start = re.split(r"[\w.\]\[']*$", head)[0]
    return f"{start}{named[1]}{tail}"
