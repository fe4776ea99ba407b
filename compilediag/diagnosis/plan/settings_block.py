"""All settings of a plan in one block, with one assignment per setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..settings import SOURCE_LISTS, Settings, merge_fixes, separate_lists


@dataclass(frozen=True)
class SettingsBlock:
    """The merged settings, and one sentence for each setting of which two values were wanted."""

    settings: Settings
    conflicts: tuple[str, ...] = ()


def merge_settings(parts: Sequence[Settings | None]) -> SettingsBlock:
    """The settings of several changes as one. Of two values that exclude each other the first one stays."""
    merged: Settings = {}
    conflicts: list[str] = []
    for key, value in ((key, value) for part in parts for key, value in (part or {}).items()):
        known = merged.get(key, value)
        if known == value or key in SOURCE_LISTS or _are_limits(known, value):
            merged[key] = merge_fixes([{key: known}, {key: value}])[key]
        else:
            conflicts.append(f"`{key}` is wanted as {known!r} and as {value!r}; the plan keeps {known!r}.")
    return SettingsBlock(separate_lists(merged), tuple(dict.fromkeys(conflicts)))


def _are_limits(one: str | int | bool, other: str | int | bool) -> bool:
    """Of two numbers the larger one allows what the smaller one does."""
    return type(one) is int and type(other) is int
