"""Configuration of torch that a change sets, as values."""

from __future__ import annotations

from collections.abc import Iterable

from ..decode.config_modules import find_config_module

#: Configuration: name of a setting -> its value, as `Finding.fix` has it.
Settings = dict[str, str | int | bool]

#: Lists of torch's names of values, as one text. A value in both is dynamic in torch 2.15, and unbacked before.
SOURCE_LISTS = ("dynamic_sources", "unbacked_sources")


def fix_code(fix: Settings | None) -> str | None:
    """Write the statements that apply `fix`, as one line of Python; None if there is none."""
    statements = (f"{find_config_module(key)}.{key} = {value!r}" for key, value in (fix or {}).items())
    return "; ".join(statements) or None


def merge_fixes(fixes: Iterable[Settings | None]) -> Settings:
    """One fix that does what all of these do: lists of sources are joined, and the largest of several numbers wins."""
    merged: Settings = {}
    for key, value in (pair for fix in fixes for pair in (fix or {}).items()):
        merged[key] = _merge_values(merged.get(key), value)
    return separate_lists(merged)


def separate_lists(settings: Settings) -> Settings:
    """A value that is unbacked is dynamic: it is named in one list only. If both name it, torch 2.15 uses the first."""
    dynamic, unbacked = (str(settings.get(key) or "").split(",") for key in SOURCE_LISTS)
    left = [name for name in dynamic if name not in unbacked]
    if len(left) == len(dynamic) or unbacked == [""]:
        return settings
    rest = {key: value for key, value in settings.items() if key != SOURCE_LISTS[0]}
    return {SOURCE_LISTS[0]: ",".join(left), **rest} if left else rest


def _merge_values(known: str | int | None, value: str | int) -> str | int:
    if isinstance(known, str) and isinstance(value, str):
        return ",".join(dict.fromkeys([*known.split(","), *value.split(",")]))
    if type(known) is int and type(value) is int:
        return max(known, value)
    return value
