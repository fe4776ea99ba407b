"""Configuration of torch that a change sets, as values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: Settings outside torch._dynamo.config.
_MODULES = {
    "dynamic_sources": "torch.compiler.config",
    "unbacked_sources": "torch.compiler.config",
    "autograd_cache_allow_custom_autograd_functions": "torch._functorch.config",
    "use_duck_shape": "torch.fx.experimental._config",
}


def find_config_module(key: str) -> str:
    """Return the configuration module of a setting."""
    return _MODULES.get(key, "torch._dynamo.config")


_REPEATED_GROUP = re.compile(r"\)[*+{?]")
#: A pattern for names of values has no more of `*` and the like.
MAX_REPEATS = 3
_DIM = re.compile(r"(.+):(\d{1,3})$")
#: Configuration: name of a setting -> its value, as `Finding.fix` has it.
Settings = dict[str, str | int | bool]

#: Lists of torch's names of values, as one text. A value in both is dynamic in torch 2.15, and unbacked before.
SOURCE_LISTS = ("dynamic_sources", "unbacked_sources")


def fix_code(fix: Settings | None) -> str | None:
    """Write the statements that apply `fix`, as one line of Python; None if there is none."""
    statements = (f"{find_config_module(key)}.{key} = {value!r}" for key, value in (fix or {}).items())
    return "; ".join(statements) or None


def format_settings(settings: Settings) -> str:
    """The settings as Python, one assignment per line; "" without any."""
    return "\n".join(fix_code({key: value}) or "" for key, value in settings.items())


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


def find_listed(setting: str, name: str, dim: int | None) -> str | None:
    """Find the entry of `dynamic_sources` or `static_sources` that names a value, as torch does; None without one.

    An entry is torch's name or a pattern that the name begins with; `:1` after it restricts it to one dimension.
    """
    for entry in filter(None, setting.replace(" ", "").split(",")):
        path, dims = (found[1], found[2]) if (found := _DIM.match(entry)) else (entry, None)
        if (dims is None or dim is None or int(dims) == dim) and (path == name or _begins_with(path, name)):
            return entry
    return None


def _begins_with(pattern: str, name: str) -> bool:
    # A repeated group can take exponential time, and the pattern may come from somebody else.
    if _REPEATED_GROUP.search(pattern) or sum(map(pattern.count, "*+{?")) > MAX_REPEATS:
        return False
    try:
        return re.match(pattern, name) is not None
    except re.error:
        return False
