"""Configuration of torch that a change sets, as values."""

from __future__ import annotations

from collections.abc import Iterable

from ..decode.config_modules import find_config_module

#: Configuration: name of a setting -> its value, as `Finding.fix` has it.
Settings = dict[str, str | int | bool]


def fix_code(fix: Settings | None) -> str | None:
    """Write the statements that apply `fix`, as one line of Python; None if there is none."""
    statements = (f"{find_config_module(key)}.{key} = {value!r}" for key, value in (fix or {}).items())
    return "; ".join(statements) or None


def merge_fixes(fixes: Iterable[Settings | None]) -> Settings:
    """One fix that does what all of these do: lists of sources are joined, and the largest of several numbers wins."""
    merged: Settings = {}
    for key, value in (pair for fix in fixes for pair in (fix or {}).items()):
        merged[key] = _merge_values(merged.get(key), value)
    return merged


def _merge_values(known: str | int | None, value: str | int) -> str | int:
    if isinstance(known, str) and isinstance(value, str):
        return ",".join(dict.fromkeys([*known.split(","), *value.split(",")]))
    if type(known) is int and type(value) is int:
        return max(known, value)
    return value
