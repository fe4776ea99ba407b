"""Checks of single parts of a guard tree at the speed of C++.

Only a whole tree can be checked, not a manager in it. But torch can copy a tree in part (it does for its
own "diff" guards), and a copy that is one path and what hangs from its end tells whether that holds.
A copy shares its leaf guards with the tree, also those that keep state between calls. Parts that hold
such guards are never copied for a check: another thread may be in the middle of checking the tree.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from .. import _compat

#: Code parts of guards that keep state, but for NO_TENSOR_ALIASING, whose sources torch lists.
_RELATION = re.compile(
    r"check_overlapping\(|(?!check_tensor\()(?:.*\(\)\[|.+ is (?!not None|None|float and|complex and))"
)
#: One of these is in each text that `_RELATION` matches.
_HINTS = ("check_overlapping(", "()[", " is ")


def _stateful_sources(guard_manager: Any) -> list[str] | None:
    """The sources that guards with state look at; None if they cannot be told."""
    parts = guard_manager.code_parts
    text = "\n".join(parts)
    if any(hint in text for hint in _HINTS) and any(_RELATION.match(part) for part in parts):
        return None
    sources = _compat.unaliased_sources(guard_manager)
    # One tensor alone has no guard on being another.
    return sources if sources is None or len(sources) > 1 else []


class Pruner:
    """Tells for one entry and one call which parts of the tree need no look."""

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.root = guard_manager.root
        self.f_locals = f_locals
        self.stateful = _stateful_sources(guard_manager)

    def holds(self, mgr: Any, source: str, beside: Collection[str]) -> bool:
        """True if everything at and below a manager holds. `beside`: the sources of what hangs on its path else."""
        if self.stateful is None or mgr.has_no_accessors() or any(s.startswith(source) for s in self.stateful):
            return False
        copy = self.root.clone_manager(lambda part: part.get_source() not in beside)
        return self.check(copy).result

    def complaint(self, path: Collection[str]) -> str:
        """What C++ says of the managers of one path alone; "" if nothing."""
        if self.stateful is None:
            return ""
        copy = self.root.clone_manager(lambda part: part.get_source() in path)
        return next(iter(self.check(copy).verbose_code_parts), "")

    def ask(self, copy: Any) -> Any:
        return copy.check_verbose(self.f_locals)

    def check(self, copy: Any) -> Any:
        import torch

        # The walk has torch function disabled, to which the guards on ambient state would object.
        with torch._C._EnableTorchFunction():
            return self.ask(copy)
