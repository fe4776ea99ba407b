"""Checks of single parts of a guard tree at the speed of C++.

Only a whole tree can be checked, not a manager in it. But torch can copy a part of a tree (it does so for its own
"diff" guards), and a copy of one path with the subtree at its end shows whether that holds. A copy shares its leaf
guards with the tree, also those that keep state between calls. Parts with such guards are never copied for a check:
another thread may be in the middle of checking the tree.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...decode.guards.guard_forms import read_check
from ...decode.guards.guard_text import split_comment
from . import torch_api

#: One of these is in the text of each guard that keeps state, except NO_TENSOR_ALIASING, whose sources torch lists.
_HINTS = ("check_overlapping(", "()[", " is ")


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
    pairs: list[str] = []
    last: set[str] | None = None
    for part in guard_manager.code_parts:
        if not any(hint in part for hint in _HINTS):
            continue
        check = read_check(part)
        if check.kind not in ("alias", "symbolic_shape", "other"):
            continue  # The hint is in a constant, or the guard compares with None.
        last = _read_last_parts(guard_manager.root) if last is None else last
        if part in last:
            continue
        # OBJECT_ALIASING: `a is b`.
        if check.kind != "alias" or len(check.operands) != 2 or "(" in part[: len(check.operands[0].torch_text)]:
            return None
        pairs += [path.torch_text for path in check.operands]
    return pairs


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
