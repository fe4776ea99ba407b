"""Failing guards that compare a value with a constant, parsed and described in the writer's thread.

In a compiling thread nothing of ours is in the processor's caches, so parsing a text takes ten times as long as in the
writer's thread, which does the same for all compiles of a batch. Only values that cannot change are kept for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ...decode.guards.failed_guards import FailingGuard
from ...decode.guards.guard_text import parse_guard, parse_user_line
from .describe import describe
from .guard_scope import GuardScope, find_full_path, find_user_line

#: Types of values that cannot change.
_CONSTANTS = (int, str, bool, float, type(None))
#: Longer texts, in characters, are not searched for their parts.
_MAX_TEXT = 2_000
_CONSTANT = r"[\w.+-]+|'[^'\"\\]*'"
_SOURCE = r"[LG]\['[^'\"\\]*'\](?:\.\w+|\['[^'\"\\]*'\]|\[\d+\])*"
_COMPARISON = re.compile(rf"(?P<source>{_SOURCE}) == (?P<constant>{_CONSTANT})\s+(?P<comment># [^\n]*)")
_ONE_CONSTANT = re.compile(rf"(?:{_CONSTANT})\s+")


@dataclass(slots=True)
class DeferredFailure(FailingGuard):
    """A failing guard whose text is not parsed yet. `head` and `comment` are what is around the constant in it.

    `stack` is torch's stack of the line that caused the guard, if it kept one.
    """

    value: Any = None
    stack: Any = None
    own_file: str | None = None
    head: str = ""
    comment: str = ""


def defer_failure(text: str, value: Any, fail_count: int | None, scope: GuardScope) -> DeferredFailure | None:
    """The failure of a guard that compares `value` with a constant; None if it has to be described at once."""
    if type(value) not in _CONSTANTS or len(text) > _MAX_TEXT:
        return None
    found = _COMPARISON.fullmatch(text)
    # Where the text does not name the user's line, other guards of the entry are asked for it.
    if found is None or parse_user_line(found["comment"][2:].rstrip(), "")[0] is None:
        return None
    return DeferredFailure(
        *(text.strip(), found["source"], "value", None, None),
        fail_count=fail_count,
        value=value,
        own_file=scope.own_file,
        head=text[: found.start("constant")],
        comment=found["comment"],
    )


def defer_same(text: str, known: FailingGuard, stack: Any) -> DeferredFailure | None:
    """The failure of another entry at the value of `known`; None if the texts differ in more than the constant."""
    if not isinstance(known, DeferredFailure) or len(text) > _MAX_TEXT:
        return None
    if not (text.startswith(known.head) and text.endswith(known.comment)):
        return None
    if _ONE_CONSTANT.fullmatch(text, len(known.head), len(text) - len(known.comment)) is None:
        return None
    about = (text.strip(), known.source, known.kind, None, None)
    return DeferredFailure(*about, is_first=True, value=known.value, own_file=known.own_file, stack=stack)


def complete(failure: FailingGuard) -> FailingGuard:
    """The failure with all of its parts."""
    if not isinstance(failure, DeferredFailure):
        return failure
    parsed = parse_guard(failure.guard)
    place: tuple[str | None, int | None, str | None] | None = find_user_line(failure.stack)
    if place is None:
        place = find_full_path(parsed.user_file, failure.own_file), parsed.user_line, parsed.user_code
    actual = describe(failure.value) if parsed.actual is None else parsed.actual
    return FailingGuard(
        failure.guard, parsed.source, parsed.kind, parsed.expected, actual, failure.is_first, failure.fail_count, *place
    )
