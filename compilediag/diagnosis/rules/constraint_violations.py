"""Explain torch's ConstraintViolationError: a size is marked dynamic, and the code does not allow that."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ...decode.guards.path import format_source
from ...formatting import format_expression, format_line, format_place
from ..change import CodeChange

_FIXED = re.compile(
    r"You marked (L\[.*?\]\.size\(\)\[\d+\]) as dynamic but your code specialized it to be a constant \((-?\d+)\)"
)
_MARKED = re.compile(r"^[^\S\n]*- (You marked [^\n]*)", re.M)
_RANGE = re.compile(r"Not all values of .*? in the specified range .*? satisfy the generated guard ([^\n]+)")
_SOURCE = re.compile(r"[LG]\['[^\]]*'\](?:[\w.]|\[[^\]]*\])*\.size\(\)\[\d+\]")
_DOES_NOT_RAISE = "Use torch._dynamo.maybe_mark_dynamic, which does not raise: each size is then compiled separately."
#: A frame of the user's stack at the end of torch's message.
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in [^\n]*\n\s+([^\n]+)')


@dataclass(frozen=True)
class ConstraintViolation:
    """What does not allow the mark: the user's line, what it means, and the ways to change it."""

    suggestion: str
    changes: tuple[CodeChange, ...]
    file: str | None
    line: int | None
    code: str | None


def explain_violation(fail_type: str | None, reason: str) -> ConstraintViolation | None:
    """Explain a failed compile; None if it did not fail because of a mark."""
    if (fail_type or "").rpartition(".")[2] != "ConstraintViolationError":
        return None
    stack = reason.partition("User stack:")[2]
    frames = _FRAME.findall(stack)
    file, line, code = (frames[-1][0], int(frames[-1][1]), frames[-1][2].strip()) if frames else (None, None, None)
    where = f"`{format_line(code, 80)}` ({format_place(file, line)})" if code else "The code"
    text, ways = (
        _explain_fixed(reason, where, code or "") or _explain_range(reason, where) or _explain_other(reason, where)
    )
    return ConstraintViolation(
        f"{text} {' '.join(ways)}", tuple(CodeChange(text=way) for way in ways), file, line, code
    )


def _explain_fixed(reason: str, where: str, code: str) -> tuple[str, tuple[str, ...]] | None:
    found = _FIXED.search(reason)
    if found is None:
        return None
    size, number = _format_size(found[1]), found[2]
    text = f"{where} fixes {size} to {number}, but the size is marked dynamic."
    if re.search(rf"(?<![\w.]){re.escape(number)}(?![\w.])", code):  # The line has the number itself.
        return text, (_DOES_NOT_RAISE,)
    mark = (
        "If it has to equal the size of another input, mark that one as well: torch._dynamo.mark_dynamic(other, dim)."
    )
    return text, (mark, f"Otherwise {_DOES_NOT_RAISE[0].lower()}{_DOES_NOT_RAISE[1:]}")


def _explain_range(reason: str, where: str) -> tuple[str, tuple[str, ...]] | None:
    found = _RANGE.search(reason)
    if found is None:
        return None
    condition = _SOURCE.sub(lambda size: _format_size(size[0]), found[1].strip())
    return f"{where} is compiled for {format_line(condition, 120)} only, and the mark asks for more.", (
        "Mark the size with that range: torch._dynamo.mark_dynamic(x, dim, min=..., max=...).",
        "Or use torch._dynamo.maybe_mark_dynamic, which does not raise: each branch is then compiled separately.",
    )


def _explain_other(reason: str, where: str) -> tuple[str, tuple[str, ...]]:
    """torch's own sentence, where it has one."""
    found = _MARKED.search(reason)
    own = format_line(found[1], 300) if found else f"{where} does not allow a size that is marked dynamic to vary."
    return own, ("Use torch._dynamo.maybe_mark_dynamic, which does not raise.",)


def _format_size(source: str) -> str:
    return format_expression(format_source(source))
