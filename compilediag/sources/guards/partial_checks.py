"""Checks of single parts of a guard tree at the speed of C++.

Only a whole tree can be checked, not a manager in it. But torch can copy a part of a tree (it does so for its own
"diff" guards), and a copy of one path with the subtree at its end shows whether that holds. A copy shares its leaf
guards with the tree, also those that keep state between calls. Parts with such guards are never copied for a check:
another thread may be in the middle of checking the tree.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from . import torch_api
from .entry_texts import read_texts


class PartialChecks:
    """For one entry and one call: the parts of the tree that hold, which a walk can skip."""

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.root = guard_manager.root
        self.f_locals = f_locals
        self.stateful = read_texts(guard_manager).stateful

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
