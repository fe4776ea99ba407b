"""How findings put things into words: places, seconds, values. Pure text, safe for any terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

_DIM = re.compile(r"\.(size|stride)\(\)\[(\d+)\]")
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")
_WRAPPER = re.compile(r"[\\/]torch[\\/]_dynamo[\\/]external_utils\.py$")
_INT = re.compile(r"-?\d{1,18}")
SHOWN_VALUES = 6


def one_line(text: object, limit: int = 120) -> str:
    """`text` on one line: control characters become spaces, too long is cut with "..."."""
    cleaned = "".join(c if c.isprintable() or unicodedata.category(c) == "Cs" else " " for c in str(text)[: 8 * limit])
    joined = " ".join(cleaned.split())
    return joined if len(joined) <= limit else joined[: limit - 3] + "..."


def first_line(text: object, limit: int = 160) -> str:
    stripped = str(text)[: 8 * limit].strip()
    return one_line(stripped.splitlines()[0] if stripped else "", limit)


def basename(path: str) -> str:
    return re.split(r"[\\/]", path)[-1] or path


def place(function: str | None, file: str | None, line: int | None) -> str:
    """`forward (model.py:30)`, with what is known of it."""
    name = one_line(function, 100) if function else "unknown function"
    if resumed := _RESUMED.fullmatch(name):
        name = f"{resumed[1]} after its graph break at line {resumed[2]}"
    if is_wrapper(function, file):
        return "a compiled module of torch.nn"  # Its own forward is torch's, and called through this function.
    where = position(file, line)
    return f"{name} ({where})" if where else name


def is_wrapper(function: str | None, file: str | None) -> bool:
    """True for the function through which torch calls a module of torch.nn that is compiled by itself."""
    return function == "inner" and bool(_WRAPPER.search(file or ""))


def is_resumed(function: str | None) -> bool:
    """True for the function that Dynamo makes of the code after a graph break."""
    return bool(_RESUMED.fullmatch(function or ""))


def position(file: str | None, line: int | None) -> str:
    if not file:
        return ""
    return f"{one_line(basename(file), 60)}:{line}" if line is not None else one_line(basename(file), 60)


def spent(seconds: float) -> str:
    """Seconds for reading: `6.1 s`, `0.04 s`, `135 s`."""
    if seconds >= 100:
        return f"{seconds:.0f} s"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds:.2f} s" if seconds >= 0.005 else "under 0.01 s"


def lost(seconds: float, timed: int, count: int) -> str:
    """`6.1 s lost`, and how many of the `count` were not timed."""
    if timed == 0:
        return "not timed"
    gap = f" ({count - timed} of {count} not timed)" if timed < count else ""
    return f"{spent(seconds)} lost{gap}"


def times(count: int) -> str:
    return "once" if count == 1 else f"{count}x"


def spoken(source: str) -> str:
    """A guard source as it would be called: `x.size()[0]` is `x.size(0)`."""
    return one_line(_DIM.sub(r".\1(\2)", source), 100)


def was_then(values: Sequence[str]) -> str:
    """`was 4, then 6, 7, 9, 12`; of many, `was 12 values between 17 and 512`."""
    if not values:
        return "changed"
    if len(values) == 1:
        return f"was {one_line(values[0], 60)}"
    if len(values) > SHOWN_VALUES:
        return _was_many(values)
    shown = [one_line(v, 60) for v in values]
    return f"was {shown[0]}, then {', '.join(shown[1:])}"


def _was_many(values: Sequence[str]) -> str:
    if all(_INT.fullmatch(v) for v in values):
        numbers = [int(v) for v in values]
        return f"was {len(values)} values between {min(numbers)} and {max(numbers)}{_multiples(numbers)}"
    shown = ", ".join(one_line(v, 40) for v in values[1:3])
    return f"was {one_line(values[0], 40)}, then {shown} and {len(values) - 3} more"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 compile`, `3 misses`; `many` where that is not `one` with an s."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def _multiples(numbers: Sequence[int]) -> str:
    """`, mostly multiples of 16`: the largest power of two that three of four are multiples of."""
    for factor in (512, 256, 128, 64, 32, 16, 8, 4, 2):
        fitting = sum(n % factor == 0 for n in numbers)
        if 4 * fitting >= 3 * len(numbers):
            return f", {'all' if fitting == len(numbers) else 'mostly'} multiples of {factor}"
    return ""


def listed(names: Sequence[str], limit: int = 3) -> str:
    """`a, b and c`; of many, `a, b, c and 4 more`."""
    shown = [spoken(n) for n in names[:limit]]
    if len(names) > limit:
        return f"{', '.join(shown)} and {len(names) - limit} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
