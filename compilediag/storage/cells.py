"""Which stored values are what their columns declare.

Whoever wrote a session file may have put anything into it. What does not fit its column counts as missing: a value of
another type, a number that is not finite, negative where a quantity is measured, or larger than any that torch gives,
JSON of another shape. A row without a usable time is left out. So no view has to expect such values.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any

from ..decode.bounded_text import MAX_TEXT, bound_text
from ..events import ColumnSpec

TIME = "datetime64[ns, UTC]"
#: Times are between 1970 and 2116: with a duration they stay within 64 bits.
MAX_TIME_NS = 1 << 62
#: With another one of that size, an integer stays within 64 bits.
MAX_INT = 1 << 62
#: Integers in JSON stay below: some are hashes.
MAX_JSON_INT = 1 << 64
#: Larger floats, and longer durations in s (30 years), are not measurements.
MAX_FLOAT, MAX_SECONDS = 1e15, 1e9
#: Lists and dicts of JSON are nested no deeper.
MAX_DEPTH = 8

Check = Callable[[Any], bool]


def make_checks(spec: Mapping[str, ColumnSpec]) -> list[Check]:
    """One function per column that says whether a stored value that is not NULL fits it."""
    return [_make_check(column) for column in spec.values()]


def find_check(column: ColumnSpec) -> Check:
    """The function that says whether a list or dict fits a column of JSON."""
    return _make_shape_check(column["shape"] or "dict[str, Any]")


def find_range(column: ColumnSpec) -> tuple[float, float]:
    """The least and the largest number of a column of floats: measurements are not negative."""
    return (-MAX_FLOAT if column["unit"] is None else 0.0), (MAX_SECONDS if column["unit"] == "s" else MAX_FLOAT)


def keep_legible(columns: Sequence[Sequence[Any]], checks: Sequence[Check], time: int) -> list[Sequence[Any]]:
    """The columns with None for cells that do not fit and with bounded texts, without the rows that have no time.

    `time`: the column of times.
    """
    kept = [_replace_misfits(cells, fits) for cells, fits in zip(columns, checks, strict=True)]
    have_time = [cell is not None for cell in kept[time]]
    return kept if all(have_time) else [list(itertools.compress(cells, have_time)) for cells in kept]


def _replace_misfits(cells: Sequence[Any], fits: Check) -> Sequence[Any]:
    values = set(cells)
    changed: dict[Any, str | None] = {v: None for v in values if v is not None and not fits(v)}
    if fits is _is_text:
        changed.update((v, bound_text(v)) for v in values - changed.keys() if v and len(v) > MAX_TEXT)
    return [changed.get(cell, cell) for cell in cells] if changed else cells


def _make_check(column: ColumnSpec) -> Check:
    if column["dtype"] == "json":
        return functools.partial(_fits_json, fits=find_check(column))
    if column["dtype"] == "float64":
        least, most = find_range(column)
        return lambda value: isinstance(value, (int, float)) and least <= value <= most
    return _CHECKS[column["dtype"]]


def is_time(value: object) -> bool:
    """True for a time in ns since 1970."""
    return type(value) is int and 0 <= value < MAX_TIME_NS


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_int(value: object) -> bool:
    return isinstance(value, int) and -MAX_INT <= value <= MAX_INT


_CHECKS: dict[str, Check] = {
    "string": _is_text,
    "Int64": _is_int,
    "boolean": lambda value: isinstance(value, int),
    TIME: is_time,
}


# JSON


def parse_json(text: object) -> Any:
    """The value of a JSON text; None if it is none, or is nested too deeply."""
    if not isinstance(text, str):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if is_plain(value) else None


def is_plain(value: object, depth: int = MAX_DEPTH) -> bool:
    """True for a value of JSON with finite numbers that is not nested too deeply."""
    if isinstance(value, (int, float)):
        return math.isfinite(value) if isinstance(value, float) else abs(value) < MAX_JSON_INT
    if isinstance(value, (list, dict)):
        if depth == 0:
            return False
        for part in value.values() if isinstance(value, dict) else value:
            if not is_plain(part, depth - 1):
                return False
    return True


def is_text_list(value: object) -> bool:
    """True for a list of strings."""
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _fits_json(text: object, fits: Check) -> bool:
    value = parse_json(text)
    return value is not None and fits(value)


@functools.cache
def _make_shape_check(shape: str) -> Check:
    """The check for a type as a field declares it: `list[...]` or `dict[str, ...]` of `_ITEMS`."""
    inner = shape[shape.index("[") + 1 : -1].removeprefix("str, ")
    allowed = {kind for name in inner.split(" | ") for kind in _ITEMS[name]}
    if shape.startswith("list["):
        return lambda value: isinstance(value, list) and ({*map(type, value)} <= allowed or inner == "Any")
    return lambda value: isinstance(value, dict) and ({*map(type, value.values())} <= allowed or inner == "Any")


_ITEMS: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "None": (NoneType,),
    "Any": (),
}


# What is not a table


def read_facts(rows: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """The facts about a session from (key, JSON) rows. A known fact of another type is missing."""
    facts = {key: (value, parse_json(value)) for key, value in rows if isinstance(key, str)}
    return {
        key: value
        for key, (text, value) in facts.items()
        if text == "null" or (value is not None and (key not in _FACTS or _FACTS[key](value)))
    }


def is_process_id(value: object) -> bool:
    """True for a number that an operating system could give a process."""
    return type(value) is int and 0 < value < 1 << 31


_FACTS: dict[str, Check] = {
    **dict.fromkeys(("torch_version", "python_version", "compilediag_version", "platform", "device"), _is_text),
    **dict.fromkeys(("title", "detail", "host", "boot_id"), _is_text),
    **dict.fromkeys(("my_code", "library_folders", "asked_for"), is_text_list),
    **dict.fromkeys(("created_ns", "stopped_ns"), is_time),
    "pid": is_process_id,
    "last_step": _is_int,
}


def read_state(text: object) -> dict[str, Any] | None:
    """What one thread compiles, from its JSON; None if that is not legible."""
    found = parse_json(text)
    if not isinstance(found, dict):
        return None
    return {name: value if _STATE[name](value) else None for name, value in found.items() if name in _STATE}


_STATE: dict[str, Check] = {
    **dict.fromkeys(("compile_id", "compile_key", "function", "file", "trigger"), _is_text),
    "line": _is_int,
    "phases": is_text_list,
    "started_ns": is_time,
}
