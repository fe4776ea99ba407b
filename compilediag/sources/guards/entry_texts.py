"""What the texts of an entry's guards say about checking them again. Each entry's texts are read once."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from ...decode.guards.guard_forms import read_check
from ...decode.guards.guard_text import split_comment
from ...decode.guards.path import Path
from . import torch_api
from .guard_scope import GuardScope
from .read_values import has_users_methods

#: How the texts of guards begin for which C++ asks a container for its length, or compares the keys of a dict.
_ASK_CONTAINERS = ("len(", "not L[", "not G[", "list(")
#: One of these is in the text of each guard that keeps state, except NO_TENSOR_ALIASING, whose sources torch lists.
_HINTS = ("check_overlapping(", "()[", " is ")


class EntryTexts(NamedTuple):
    """`stateful`: the sources of guards that keep state between calls; None if they are not known. `containers`: the
    values that C++ asks for their length or keys.
    """

    stateful: tuple[str, ...] | None
    containers: tuple[Path, ...]


_known: weakref.WeakKeyDictionary[Any, EntryTexts] = weakref.WeakKeyDictionary()


def read_texts(guard_manager: Any) -> EntryTexts:
    """Read the texts of an entry, or recall them."""
    texts = _known.get(guard_manager)
    if texts is None:
        asked = (read_check(part) for part in guard_manager.code_parts if part.startswith(_ASK_CONTAINERS))
        containers = tuple(check.operands[0] for check in asked if check.operands)
        texts = _known[guard_manager] = EntryTexts(_find_stateful(guard_manager), containers)
    return texts


def runs_users_code(guard_manager: Any, scope: GuardScope) -> bool:
    """True if checking an entry in C++ would run methods that the user wrote for a container or its keys.

    The guards on the keys of a dict have no texts. Of dicts with keys of the user's classes, those among the locals are
    found.
    """
    for value in scope.f_locals.values():
        if issubclass(type(value), dict) and has_users_methods(value):
            return True
    for path in read_texts(guard_manager).containers:
        value, missing = scope.value(path)
        if missing is None and has_users_methods(value):
            return True
    return False


def _find_stateful(guard_manager: Any) -> tuple[str, ...] | None:
    pairs = _find_pairs(guard_manager)
    sources = torch_api.unaliased_sources(guard_manager)
    if pairs is None or sources is None:
        return None
    # A single tensor cannot be the same object as another one.
    return (*(sources if len(sources) > 1 else ()), *pairs)


def _find_pairs(guard_manager: Any) -> list[str] | None:
    """The sources that have to be one object; None if there are guards on several values of another kind.

    torch 2.15 guards on a module that two functions know under two names, so most models have such a pair.
    """
    parts = guard_manager.code_parts
    text = "\n".join(parts)
    if not any(hint in text for hint in _HINTS):
        return []
    last = _read_last_parts(guard_manager.root)
    pairs: list[str] = []
    for part in parts:
        if part in last or not any(hint in part for hint in _HINTS):
            continue
        check = read_check(part)
        if check.kind not in ("alias", "symbolic_shape", "other"):
            continue  # The hint is in a constant, or the guard compares with None.
        if check.kind != "alias" or part.startswith("check_overlapping(") or (check.expected or "").startswith("not "):
            return None
        # OBJECT_ALIASING: `a is b`.
        pairs += [path.torch_text for path in check.operands]
    return pairs


def _read_last_parts(root: Any) -> set[str]:
    """The code parts of the root's last guards, which keep no state: torch 2.15 lists them with the others."""
    guards = root.get_epilogue_lambda_guards()
    return {split_comment(part)[0].rstrip() for guard in guards for part in guard.verbose_code_parts()}
