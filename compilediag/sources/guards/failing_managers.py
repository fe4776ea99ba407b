"""The managers of a guard tree that fail, found without a walk: leave out what C++ names, and check again.

Mostly one guard fails. A copy of the tree without the manager of that guard, checked once, then shows that nothing
else does. Cases that this cannot decide, such as guards of the root or of several values, are left to the walk.
"""

from __future__ import annotations

import functools
import operator
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any

from ...decode.guards.guard_text import parse_guard
from ...decode.guards.path import scan_source

#: Managers that are left out one by one; where more fail the walk is as fast.
MAX_ROUNDS = 6

Managers = list[tuple[str, Any]]


def find_failing_managers(
    root: Any, debug: Any, stateful: Collection[str], check: Callable[[Any], Any]
) -> tuple[set[str], Managers] | None:
    """(the sources that fail, those and the `stateful` ones with their managers in the tree's order); None if unsure.

    `debug`: the result of C++ for the whole tree. `stateful`: sources that are in no copy, so nothing is known of
    them. `check` checks a copy.
    """
    failing: set[str] = set()
    managers: Managers | None = None
    # What C++ checks last fails only if all before it holds. The walk computes these guards anyway.
    last = [list(leaf.verbose_code_parts()) for leaf in root.get_epilogue_lambda_guards()]
    while not debug.result and list(debug.verbose_code_parts) not in last:
        source = _find_source(debug.verbose_code_parts)
        if source is None or source in failing or len(failing) == MAX_ROUNDS:
            return None
        failing.add(source)
        copied = None if stateful or len(failing) > 1 else _copy_without(root, source)
        copy, managers = copied or _copy_tree(root, {*stateful, *failing})
        debug = check(copy)
    if managers is None:
        managers = _copy_tree(root, stateful)[1]
    return (failing, managers) if _are_sure(failing, managers) else None


def _find_source(parts: list[str]) -> str | None:
    """torch's name of the first value in the only text. If another one failed, the check of its manager shows it."""
    text = parts[0] if len(parts) == 1 else ""
    if text.startswith(("L[", "G[")):
        return text[: scan_source(text)]
    operands = parse_guard(text).operands
    return operands[0].torch_text if operands else None


def _copy_tree(root: Any, left_out: Collection[str]) -> tuple[Any, Managers]:
    """The tree without the managers of the sources in `left_out`, and those managers."""
    managers: Managers = []

    def is_kept(manager: Any) -> bool:
        source = manager.get_source()
        if source in left_out:
            managers.append((source, manager))
            return False
        return True

    return root.clone_manager(is_kept), managers


def _copy_without(root: Any, source: str) -> tuple[Any, Managers] | None:
    """As `_copy_tree`, for one source, with a filter that is no Python function: it is called for every manager.

    What C++ has checked before is left out too: it holds. None if the source has no manager on its own path, or
    several. If it has another one elsewhere, that is in the copy: where it fails too, C++ names the source again.
    """
    found = list(_find_on_path(root, source))
    if len(found) != 1:
        return None
    manager, passed = found[0]
    is_kept: Callable[[Any], bool] = functools.partial(operator.is_not, manager)
    if passed:
        # `True.__bool__` returns True: what the dict does not have is kept.
        is_kept = defaultdict(True.__bool__, dict.fromkeys((*passed, manager), False)).__getitem__
    return root.clone_manager(is_kept), [(source, manager)]


def _find_on_path(manager: Any, source: str) -> Iterator[tuple[Any, list[Any]]]:
    """The managers of a source on its own path, each with those that C++ checks before it."""
    before: list[Any] = []
    for child in manager.get_child_managers():
        name = child.get_source()
        if name == source:
            yield child, before[:]
        elif source.startswith(name.removesuffix(".__dict__")):
            for found, passed in _find_on_path(child, source):
                yield found, before + passed
        if not is_dict(manager):  # A dict checks its keys and values in an order of its own.
            before.append(child)


def _are_sure(failing: set[str], managers: Managers) -> bool:
    """False if a source has no manager or several, or a manager is a dict's, which checks more than its guards."""
    sources = [source for source, _ in managers]
    return (
        len(set(sources)) == len(sources)
        and failing <= set(sources)
        and not any(is_dict(manager) for _, manager in managers)
    )


def is_dict(manager: Any) -> bool:
    """True for the manager of a dict, which also checks the dict's type and size."""
    return hasattr(manager, "get_key_value_managers")


def has_dicts(manager: Any) -> bool:
    """True if a manager is a dict's, or one below it."""
    return is_dict(manager) or any(map(has_dicts, manager.get_child_managers()))
