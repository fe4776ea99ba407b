"""What a rule has to say about a cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import paths, wording
from .causes import Cause


@dataclass(frozen=True)
class Advice:
    """`suggestion`: sentences with code. `fix`: see Finding. `ceiling`: the worst severity that it can have.
    `what`: replaces "source was a, then b" in the title."""

    rule: str
    suggestion: str
    fix: dict[str, Any] | None = None
    ceiling: str = "high"
    what: str | None = None


def name_of(cause: Cause, fallback: str = "the argument") -> str:
    """The guarded thing without its tensor property, as code of the user, or `fallback`."""
    if not cause.sources:
        return fallback
    base = paths.split_property(cause.sources[0])[0]
    return wording.spoken(base) or fallback


def at_line(cause: Cause) -> str:
    """` (model.py:31: y = x + k)`, with what is known of the user's line; "" if nothing is."""
    code = wording.one_line(cause.first("user_code") or "", 80)
    where = cause.user_place
    if not where:
        return ""
    return f" ({where}: {code})" if code else f" ({where})"


def usual_price(count: int, often: str = "high") -> str:
    """The ceiling of what is expected to happen once."""
    return "low" if count == 1 else often
