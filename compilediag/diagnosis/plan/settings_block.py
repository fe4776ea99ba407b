"""All settings of a plan in one block, with one assignment per setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..settings import Settings, merge_fixes

#: Lists of torch's names of values, as one text.
_LISTS = ("dynamic_sources", "unbacked_sources")


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
        if known == value or key in _LISTS or _are_limits(known, value):
            merged[key] = merge_fixes([{key: known}, {key: value}])[key]
        else:
            conflicts.append(f"`{key}` is wanted as {known!r} and as {value!r}; the plan keeps {known!r}.")
    return SettingsBlock(_separate_lists(merged), tuple(dict.fromkeys(conflicts)))


def _are_limits(one: str | int | bool, other: str | int | bool) -> bool:
    """Of two numbers the larger one allows what the smaller one does."""
    return type(one) is int and type(other) is int


def _separate_lists(settings: Settings) -> Settings:
    """A value that is unbacked is dynamic: it is named in one list only."""
    dynamic, unbacked = (_split(settings.get(key)) for key in _LISTS)
    left = [name for name in dynamic if name not in unbacked]
    if len(left) == len(dynamic):
        return settings
    rest = {key: value for key, value in settings.items() if key != "dynamic_sources"}
    return {"dynamic_sources": ",".join(left), **rest} if left else rest


def _split(names: object) -> list[str]:
    return str(names).split(",") if names else []
