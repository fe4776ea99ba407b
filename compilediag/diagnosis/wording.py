"""The former names of `compilediag.formatting`, until every module uses the new ones."""

from __future__ import annotations

from ..formatting import format_amount as counted
from ..formatting import format_change as was_then
from ..formatting import format_expression as spoken
from ..formatting import format_first_line as first_line
from ..formatting import format_function as place
from ..formatting import format_line as one_line
from ..formatting import format_names as listed
from ..formatting import format_place as position
from ..formatting import format_seconds as spent
from ..formatting import format_times as times
from ..formatting import get_basename as basename
from ..formatting import is_module_wrapper as is_wrapper
from ..formatting import is_resumed

__all__ = [
    "basename",
    "counted",
    "first_line",
    "is_resumed",
    "is_wrapper",
    "listed",
    "lost",
    "one_line",
    "place",
    "position",
    "spent",
    "spoken",
    "times",
    "was_then",
]


def lost(seconds: float, timed: int, count: int) -> str:
    """`6.1 s lost`, and how many of the `count` were not timed."""
    if timed == 0:
        return "not timed"
    gap = f" ({count - timed} of {count} not timed)" if timed < count else ""
    return f"{spent(seconds)} lost{gap}"
