"""What a rule has to say about a cause, and the words and fixes that rules share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import wording
from . import paths
from .grouping import EVALUATED, NUMBER, Cause

#: What is expected to happen once matters all the same from so many seconds on.
DEAR_S = 5.0


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
    return wording.spoken(paths.split_property(cause.source)[0]) or fallback


def at_line(cause: Cause) -> str:
    """` (model.py:31: y = x + k)`, with what is known of the user's line; "" if nothing is."""
    code = wording.one_line(cause.first("user_code") or "", 80)
    where = cause.user_place
    if not where:
        return ""
    return f" ({where}: {code})" if code else f" ({where})"


def usual_price(cause: Cause, often: str = "high") -> str:
    """The ceiling of what is expected to happen once: low, or medium where that once took long."""
    if cause.most > 1:
        return often
    return "medium" if cause.seconds >= DEAR_S else "low"


def dynamic_fix(cause: Cause) -> dict[str, Any] | None:
    """`dynamic_sources` for it and the sizes that changed with it, if torch's names are certain."""
    names = cause.torch_sources
    return {"dynamic_sources": ",".join(dict.fromkeys((*names, *cause.also_named)))} if names else None


def is_specialized(cause: Cause) -> bool:
    """True if Python code needed the very number, so that an entry holds for one value even if it is dynamic."""
    return cause.still_static or any(
        NUMBER.fullmatch(row["expected"] or "") and EVALUATED in (row["reason"] or "") for row in cause.rows
    )


def is_branch(cause: Cause) -> bool:
    """True if Python code compared it, so that an entry holds for a range of values."""
    return any(not NUMBER.fullmatch(bound) and bound != ">= 2" for bound in cause.bounds)


def branch(cause: Cause) -> Advice:
    """A size or number on which the code takes one way or another."""
    bound = wording.spoken(cause.bounds[0])
    shown = bound if cause.source and cause.source in cause.bounds[0] else f"{wording.spoken(cause.source)} {bound}"
    shown = shown.strip()
    text = (
        f"The closest entry holds only for {shown}: the code takes another way beyond it{at_line(cause)}. One entry a "
        "way is expected. To have fewer, stay on one side of it, or take the branch out of the compiled function."
    )
    return Advice("branch", text, None, usual_price(cause), None if cause.values else f"no longer {shown}")


def specialized(cause: Cause) -> Advice:
    """A size or number that is built in because Python code needs it."""
    text = (
        f"The traced code needs {wording.spoken(cause.source)} as a Python number{at_line(cause)}, so each value is "
        "compiled on its own, and marking it dynamic would be refused. Keep it to few values (padding, bucketing), "
        "or use tensor operations in place of a Python loop, range or list made from it."
    )
    return Advice("specialized", text, None, usual_price(cause))
