"""Checks of single parts of a guard tree at the speed of C++.

Only a whole tree can be checked, not a manager in it. But torch can copy a part of a tree (it does so for its own
"diff" guards), and a copy of one path with the subtree at its end shows whether that holds. A copy shares its leaf
guards with the tree, also those that keep state between calls. Parts with such guards are never copied for a check:
another thread may be in the middle of checking the tree.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from ...decode.guards.guard_text import split_comment
from ...decode.guards.source_names import PATH
from . import torch_api

#: Code parts of guards that keep state, except NO_TENSOR_ALIASING, whose sources torch lists.
_RELATION = re.compile(
    r"check_overlapping\(|(?!check_tensor\()(?:.*\(\)\[|.+ is (?!not None|None|float and|complex and))"
)
#: One of these is in each text that `_RELATION` matches.
_HINTS = ("check_overlapping(", "()[", " is ")
#: The code part of OBJECT_ALIASING.
_SAME_OBJECT = re.compile(rf"({PATH}) is ({PATH})")


def _stateful_sources(guard_manager: Any) -> list[str] | None:
    """The sources that guards with state check; None if they are not known."""
    pairs = _find_pairs(guard_manager)
    sources = torch_api.unaliased_sources(guard_manager)
    if pairs is None or sources is None:
        return None
    # A single tensor cannot be the same object as another one.
    return [*(sources if len(sources) > 1 else ()), *pairs]


def _find_pairs(guard_manager: Any) -> list[str] | None:
    """The sources that have to be one object; None if there are guards on several values of another kind.

    torch 2.15 guards on a module that two functions know under two names, so most models have such a pair.
    """
    parts = guard_manager.code_parts
    text = "\n".join(parts)
    if not any(hint in text for hint in _HINTS):
        return []
    last = _read_last_parts(guard_manager.root)
    pairs = [_SAME_OBJECT.fullmatch(part) for part in parts if _RELATION.match(part) and part not in last]
    return None if None in pairs else [source for pair in pairs if pair for source in pair.groups()]


def _read_last_parts(root: Any) -> set[str]:
    """The code parts of the root's last guards, which keep no state: torch 2.15 lists them with the others."""
    guards = root.get_epilogue_lambda_guards()
    return {split_comment(part)[0].rstrip() for guard in guards for part in guard.verbose_code_parts()}


class PartialChecks:
    """For one entry and one call: the parts of the tree that hold, which a walk can skip."""

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.root = guard_manager.root
        self.f_locals = f_locals
        self.stateful = _stateful_sources(guard_manager)

    def holds(self, mgr: Any, source: str, beside: Collection[str]) -> bool:
        """True if everything at and below a manager holds. `beside`: the sources of the other managers on its path."""
        if self.stateful is None or mgr.has_no_accessors() or self._is_related(source):
            return False
        copy = self.root.clone_manager(lambda part: part.get_source() not in beside)
        return self.check(copy).result

    def _is_related(self, source: str) -> bool:
        """True if a manager on the path to `source`, or below it, has a guard with state."""
        return any(s.startswith(source) or source.startswith(s) for s in self.stateful or ())

    def describe_failure(self, path: Collection[str]) -> str:
        """The failure that C++ reports for the managers of one path alone; "" if they hold."""
        if self.stateful is None:
            return ""
        copy = self.root.clone_manager(lambda part: part.get_source() in path)
        return next(iter(self.check(copy).verbose_code_parts), "")

    def ask(self, copy: Any) -> Any:
        return copy.check_verbose(self.f_locals)

    def check(self, copy: Any) -> Any:
        # The walk has torch functions off, which would fail the guards on global state.
        with torch_api.with_torch_function():
            return self.ask(copy)
