"""Format numbers, places and texts for people: the only formatter of the Python package. It also bounds long texts.

Findings, tables, figures, reports and command-line output use these functions. `views/static/core/format.js` formats
the same numbers in the browser. `tests/format_cases.json` holds the cases that both have to pass.

Every function accepts a missing number (None, NaN or infinite) and returns `MISSING` for it, never "0". A text that
comes from the user's program is put on one line, without control characters, so it is safe for any terminal.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, ParamSpec, TypeVar

#: Shown for a number that is not known.
MISSING = "–"
#: A kernel that torch timed, for example for a fusion, before it named it.
UNNAMED_KERNEL = "unnamed kernel"
#: Values that `format_change` lists; of more it shows the range.
SHOWN_VALUES = 6

#: Characters that Unicode calls printable although nothing is shown of them: fillers, selectors, an empty pattern.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
_TIME_UNITS = ((1e9, "ns"), (1e6, "µs"), (1e3, "ms"))
_BYTE_UNITS = ((1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"))
_FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_UP)
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_(\d+)")
_WRAPPER = re.compile(r"[\\/]torch[\\/]_dynamo[\\/]external_utils\.py$")
_INT = re.compile(r"-?\d{1,18}")
#: The name of a cell of IPython.
_CELL = re.compile(r"Cell In\[(\d{1,9})\]")


def format_seconds(value: float | None) -> str:
    """Format a duration in s: `350 ns`, `4.2 µs`, `42 ms`, `1.3 s`, `2 min 5 s`, `1 h 5 min`."""
    if value is None or not math.isfinite(value):
        return MISSING
    size, sign = abs(value), "-" if value < 0 else ""
    if size == 0:
        return "0 s"
    for factor, unit in _TIME_UNITS:
        if (text := _round_below_1000(size * factor)) is not None:
            return f"{sign}{text} {unit}"
    # At least a second: a decimal up to a minute, then the two largest units.
    if float(text := _round(size, 1)) < 60:
        return f"{sign}{text} s"
    whole, units = int(_round(size, 0)), ("min", "s")
    if whole >= 3600:
        whole, units = int(_round(size / 60, 0)), ("h", "min")
    large, small = divmod(whole, 60)
    return f"{sign}{large:,} {units[0]}" + (f" {small} {units[1]}" if small else "")


def format_milliseconds(value: float | None) -> str:
    """Format the time of a kernel, in ms, with the four digits that tell close choices apart: `0.1023 ms`."""
    if value is None or not math.isfinite(value):
        return MISSING
    if abs(value) >= 1000:
        return f"{int(_round(value, 0)):,} ms"
    digits = f"{_FOUR_DIGITS.create_decimal(float(value)):f}"
    return f"{digits.rstrip('0').rstrip('.') if '.' in digits else digits} ms"


def format_count(value: float | None) -> str:
    """Format a whole number: `1,234`."""
    return MISSING if value is None or not math.isfinite(value) else f"{int(_round(value, 0)):,}"


def format_amount(value: float | None, one: str, many: str | None = None) -> str:
    """Format a number of things: `1 compile`, `3 misses`; `many` is the plural where it is not `one` with an s."""
    return f"{format_count(value)} {one if value == 1 else many or one + 's'}"


def format_times(count: int) -> str:
    """Format how often something happened: `once`, `4x`."""
    return "once" if count == 1 else f"{format_count(count)}x"


def format_lost(seconds: float, timed: int, count: int) -> str:
    """Format the seconds that `count` compiles took, of which `timed` were timed: `6.1 s lost (1 of 5 not timed)`."""
    if timed == 0:
        return "not timed"
    gap = f" ({count - timed} of {count} not timed)" if timed < count else ""
    return f"{format_seconds(seconds)} lost{gap}"


def format_bytes(value: float | None) -> str:
    """Format a size in bytes, in powers of 1,000: `999 B`, `1.6 kB`, `164 kB`, `2.5 MB`."""
    if value is None or not math.isfinite(value):
        return MISSING
    size, sign = abs(value), "-" if value < 0 else ""
    if float(_round(size, 0)) < 1000:
        return f"{sign}{_round(size, 0)} B"
    for factor, unit in _BYTE_UNITS:
        if (text := _round_below_1000(size / factor)) is not None:
            return f"{sign}{text} {unit}"
    return f"{sign}{format_count(size / _BYTE_UNITS[-1][0])} {_BYTE_UNITS[-1][1]}"


def format_share(value: float | None, signed: bool = False) -> str:
    """Format a share as percent: 0.0031 is `0.3 %`, 0.42 is `42 %`. `signed` puts a + before positive shares."""
    if value is None or not math.isfinite(value):
        return MISSING
    size, sign = 100 * abs(value), "-" if value < 0 else "+" if signed and value > 0 else ""
    if size == 0:
        return "0 %"
    if size < 0.1:
        return f"{sign}<0.1 %"
    text = _round(size, 1)
    return f"{sign}{text if float(text) < 10 else f'{int(_round(size, 0)):,}'} %"


def _round_below_1000(value: float) -> str | None:
    """Round to one decimal below 10, else to a whole number; None if that gives 1,000 or more."""
    if value >= 1000:
        return None
    text = _round(value, 1)
    text = text if float(text) < 10 else _round(value, 0)
    return text if float(text) < 1000 else None


def _round(value: float, digits: int) -> str:
    """Round as JavaScript's toFixed does: by the exact value, and halves away from zero."""
    return str(Decimal(float(value)).quantize(Decimal(1).scaleb(-digits), context=_EXACT))


def format_place(file: str | None, line: int | None) -> str:
    """Format a place in a file: `model.py:30`, `model.py`; "" without a file."""
    if not file:
        return ""
    name = format_line(get_basename(file), 60)
    return f"{name}:{line}" if line is not None else name


def format_function(function: str | None, file: str | None, line: int | None) -> str:
    """Format a function with its place: `forward (model.py:30)`, or what is known of it."""
    name = format_line(format_function_name(function) or "unknown function", 100)
    if is_module_wrapper(function, file):
        return "a compiled module of torch.nn"  # Its own forward is torch's, and called through this function.
    where = format_place(file, line)
    return f"{name} ({where})" if where else name


def format_function_name(function: str | None) -> str | None:
    """Format the name of a function: `forward`, `forward, after the graph break at line 21`; None without one."""
    resumed = parse_resumed(function)
    return f"{resumed[0]}, after the graph break at line {resumed[1]}" if resumed else function


def is_module_wrapper(function: str | None, file: str | None) -> bool:
    """True for the function through which torch calls a module of torch.nn that is compiled by itself."""
    return function == "inner" and bool(_WRAPPER.search(file or ""))


def is_resumed(function: str | None) -> bool:
    """True for the function that Dynamo makes of the code after a graph break."""
    return parse_resumed(function) is not None


def parse_resumed(function: str | None) -> tuple[str, int] | None:
    """The function that Dynamo continues after a graph break, and the line of that break; None for any other name."""
    found = _RESUMED.fullmatch(function or "")
    return (found[1], int(found[2])) if found else None


def find_cell_number(file: str) -> int | None:
    """The number of the cell `Cell In[4]`; None for a file."""
    found = _CELL.fullmatch(file)
    return int(found[1]) if found else None


def get_basename(path: str) -> str:
    """The last part of a path of any operating system."""
    return re.split(r"[\\/]", path)[-1] or path


def get_class_name(name: str | None) -> str:
    """The name of a class without its module; "" without one."""
    return (name or "").rpartition(".")[2]


def format_line(text: object, limit: int = 120) -> str:
    """Put a text on one line: characters that are not shown become spaces, and what is longer than `limit` ends in
    "...".
    """
    start = _BLANK.sub(" ", str(text)[: 8 * limit])
    cleaned = "".join(c if c.isprintable() or unicodedata.category(c) == "Cs" else " " for c in start)
    joined = " ".join(cleaned.split())
    return cut_text(joined, limit)


def cut_text(text: str, limit: int) -> str:
    """A text of at most `limit` characters: a longer one ends in "..."."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def escape_controls(text: str, keep: str = "") -> str:
    """The text with escapes for what a terminal would obey or cannot show: line ends, escape sequences, marks that
    reverse the direction, characters without a glyph, surrogates. Characters in `keep` and spaces of other scripts
    stay.
    """
    if text.isprintable() and not _BLANK.search(text):
        return text
    return "".join(c if _is_shown(c) or c in keep else c.encode("unicode_escape").decode() for c in text)


def _is_shown(character: str) -> bool:
    if _BLANK.match(character):
        return False
    return character.isprintable() or unicodedata.category(character) == "Zs"


def escape_lines(text: str) -> str:
    """A text of several lines without anything else that a terminal would obey. Texts from files can have it."""
    return escape_controls(text, keep="\n\t")


def format_first_line(text: object, limit: int = 160) -> str:
    """The first line of a text that is not empty, as `format_line` puts it."""
    stripped = str(text)[: 8 * limit].strip()
    return format_line(stripped.splitlines()[0] if stripped else "", limit)


def format_op(op: str | None) -> str | None:
    """What was tuned. A kernel that torch times before it names it has the name of an enumeration's member."""
    return UNNAMED_KERNEL if op is not None and op.startswith("Placeholder.") else op


def format_names(names: Sequence[str], limit: int = 3) -> str:
    """List names: `a, b and c`; of more than `limit`, `a, b, c and 4 more`."""
    shown = [format_line(name, 100) for name in names[:limit]]
    if len(names) > limit:
        return f"{', '.join(shown)} and {len(names) - limit} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def format_change(values: Sequence[str]) -> str:
    """Format the values that something had: `was 4, then 6, 7`; of many, `was 12 values between 17 and 512`."""
    if not values:
        return "changed"
    if len(values) == 1:
        return f"was {format_line(values[0], 60)}"
    if len(values) <= SHOWN_VALUES:
        shown = [format_line(value, 60) for value in values]
        return f"was {shown[0]}, then {', '.join(shown[1:])}"
    if all(_INT.fullmatch(value) for value in values):
        numbers = [int(value) for value in values]
        return f"was {len(values)} values between {min(numbers)} and {max(numbers)}{_format_multiples(numbers)}"
    first, second, third = (format_line(value, 40) for value in values[:3])
    return f"was {first}, then {second}, {third} and {len(values) - 3} more"


def _format_multiples(numbers: Sequence[int]) -> str:
    """`, mostly multiples of 16`: the largest power of two that divides at least three of four; "" if none does."""
    for factor in (512, 256, 128, 64, 32, 16, 8, 4, 2):
        fitting = sum(number % factor == 0 for number in numbers)
        if 4 * fitting >= 3 * len(numbers):
            return f", {'all' if fitting == len(numbers) else 'mostly'} multiples of {factor}"
    return ""


# Bounds of what is kept: of a long text its beginning, its length and a digest; no result that was made of it.

P = ParamSpec("P")
R = TypeVar("R")

#: Characters of a text that one cell of a table can hold.
MAX_TEXT = 4_000
#: The same for the JSON of a list or a dict, and for one text in it once the JSON is longer.
MAX_JSON, MAX_ITEM = 64_000, 1_000
#: Characters of a message of torch's that are searched: some patterns try each of them as a beginning.
SEARCHED = 20_000


def bound_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text if it has at most `limit` characters, else its beginning with its length and its digest.

    The result never has more than `limit` characters (at least 60), and equal texts have equal results.
    """
    if len(text) <= limit:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    note = f"... ({len(text):,} characters, sha256 {digest})"
    return text[: limit - len(note)] + note


def bound_lines(text: str) -> str:
    """Return the text with lines of at most `MAX_TEXT` characters."""
    lines = text.split("\n")
    return text if max(map(len, lines)) <= MAX_TEXT else "\n".join(map(bound_text, lines))


def bound_items(value: Any) -> Any:
    """Return a list or dict as JSON can hold it in about `MAX_JSON` characters: its first items, with shorter texts.

    A list of numbers is kept whole.
    """
    left = MAX_JSON

    def take(value: Any) -> Any:
        nonlocal left
        if isinstance(value, dict):
            return {take(key): take(item) for key, item in value.items() if left > 0}
        if isinstance(value, (list, tuple)):
            if all(item is None or isinstance(item, (int, float)) for item in value):
                return list(value)
            taken: list[Any] = []
            for number, item in enumerate(value):
                if left <= 0:
                    if isinstance(item, str):
                        taken.append(f"... ({len(value) - number:,} more)")
                    break
                taken.append(take(item))
            return taken
        if isinstance(value, str):
            value = bound_text(value, MAX_ITEM)
        left -= len(value) if isinstance(value, str) else 8
        return value

    return take(value)


def cache_short(maxsize: int, longest: int = 2 * MAX_TEXT) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results of a function of texts, as `functools.lru_cache` does; calls with a long text are not kept."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        cached: Any = functools.lru_cache(maxsize=maxsize)(function)

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            is_short = len(args[0]) <= longest  # type: ignore[arg-type]
            result: R = cached(*args, **kwargs) if is_short else function(*args, **kwargs)
            return result

        return call

    return decorate
