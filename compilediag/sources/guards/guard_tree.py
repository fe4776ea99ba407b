"""All failing guards of a cache entry, with the current values, read from torch's guard tree.

`check_verbose` of torch names the first failing guard only. This walks the tree that C++ checks (managers,
their leaf guards, their children), reads each value in the scope that torch itself uses for its
reasons, and asks each leaf guard. The program's state does not change:

- Only `root.check_verbose` and single leaf guards are called. `root.check`, the look-up's way, counts
  failures and sorts the accessors by them.
- Guards that compare several values (`NO_TENSOR_ALIASING`, `OBJECT_ALIASING`, `STORAGE_OVERLAPPING`,
  `SYMBOLIC_SHAPE_GUARD`) keep state between calls in C++; they are never called but computed here.
- Where a leaf fails the walk stops, as C++ does: below it, sources may be read from an object of the wrong type. It
  goes on only below a leaf whose failure says nothing about the type.
- Tensors are described by metadata; no data is read and no device is waited for.
- C++ asks a container for its length, and a dict compares its keys. Where those are methods that the user wrote, no
  part of the tree is checked: the guards' texts are decided one by one, with the methods of Python's own types.

The C++ side was read in torch/csrc/dynamo/guards.cpp; the tests compare with torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...decode.guards.failed_guards import FailingGuard
from ...decode.guards.guard_text import ParsedGuard, TensorCheck, parse_guard
from ...formatting import bound_text
from . import torch_api
from .guard_scope import GuardScope, find_user_line
from .guard_walk import (
    Deadline,
    DeferredFailure,
    FailingGuards,
    GuardWalk,
    complete,
    defer_same,
    find_duplicates,
    find_state_failures,
    find_tensor_failures,
    make_failure,
    runs_users_code,
)

__all__ = ["FailingGuard", "FailingGuards", "failing_guards", "first_failing_guard"]

#: Seconds that one entry's analysis may take before it is cut.
BUDGET_S = 0.05
#: Kinds of guards whose current value is described in the same way, whatever the entry expects.
_SAME_VALUE = frozenset({"value", "length", "tensor_size", "tensor_stride", "tensor_rank", "tensor_dtype"})


def failing_guards(
    guard_manager: Any,
    f_locals: dict[str, Any],
    budget_s: float = BUDGET_S,
    *,
    defers: bool = False,
    reason: str | None = None,
) -> FailingGuards:
    """All failing guards of one cache entry against `f_locals`; empty if they all pass.

    `guard_manager`: `cache_entry.guard_manager`. `budget_s`: seconds of this thread after which the search stops.
    `defers`: some of them are completed later, by `complete` in the writer's thread. `reason`: torch's own text for the
    entry, which names the first failing guard.
    """
    if dead := _find_dead_reference(guard_manager):
        return FailingGuards([dead])
    scope = GuardScope(guard_manager, f_locals)
    deadline = Deadline(budget_s)
    if runs_users_code(guard_manager, scope):
        return _decide_texts(guard_manager, scope, deadline, reason)
    debug = guard_manager.root.check_verbose(f_locals)
    if debug.result:
        return FailingGuards()
    walk = GuardWalk(guard_manager, scope, deadline, defers)
    found = walk.found if walk.run_fast(debug) else GuardWalk(guard_manager, scope, deadline, defers).run()
    _mark_first(found, debug, guard_manager, scope)
    return found


def first_failing_guard(
    guard_manager: Any, f_locals: dict[str, Any], known: Sequence[FailingGuard] = (), reason: str | None = None
) -> FailingGuard | None:
    """The guard that torch itself checks first among the failing ones, for the cost of one check; None if all pass.

    `known` are failing guards of another entry at the same call, whose values need not be read again. `reason` is
    torch's own text for the entry.
    """
    if dead := _find_dead_reference(guard_manager):
        return dead
    scope = GuardScope(guard_manager, f_locals)
    if runs_users_code(guard_manager, scope):
        found = _decide_texts(guard_manager, scope, Deadline(BUDGET_S), reason)
        return next((guard for guard in found if guard.is_first), found[0] if found else None)
    debug = guard_manager.root.check_verbose(f_locals)
    if debug.result:
        return None
    if (same := _use_known(debug, known)) is not None:
        return same
    first = _make_first(debug, guard_manager, scope)
    if first.source is None:
        # A few texts of C++ do not name the source; the walk finds it.
        first = next((found for found in failing_guards(guard_manager, f_locals) if found.is_first), first)
    return first


def _decide_texts(guard_manager: Any, scope: GuardScope, deadline: Deadline, reason: str | None) -> FailingGuards:
    """The failing guards of an entry, from their texts alone; nothing of the guard tree is called."""
    found = FailingGuards()
    with torch_api.without_torch_function():
        for part in guard_manager.code_parts:
            if deadline.is_over():
                found.truncated = True
                break
            check = TensorCheck.parse(part)
            if check is not None:
                found.extend(find_tensor_failures(parse_guard(part, "TENSOR_MATCH"), check, scope))
            elif scope.is_false(part):
                found.append(make_failure(parse_guard(part), scope))
    if not reason:
        return found
    first = make_failure(parse_guard(reason), scope)
    same = next((guard for guard in found if (guard.source, guard.kind) == (first.source, first.kind)), None)
    if same is None:
        found.insert(0, first)
        same = first
    same.is_first = True
    same.user_file, same.user_line, same.user_code = first.user_file, first.user_line, first.user_code
    return found


def _use_known(debug: Any, known: Sequence[FailingGuard]) -> FailingGuard | None:
    """Torch's first failure, if another entry has failed at the same value with a guard of the same kind."""
    parts = debug.verbose_code_parts
    if len(parts) != 1:
        return None
    stack = getattr(debug, "user_stack", None)
    for guard in known:
        if later := defer_same(parts[0], guard, stack):
            return later
    parsed = parse_guard(parts[0])
    if parsed.kind not in _SAME_VALUE:
        return None
    known = list(map(complete, known))
    same = next((guard for guard in known if guard.source == parsed.source and guard.kind == parsed.kind), None)
    if same is None:
        return None
    place: tuple[str, int | None, str | None] | None = find_user_line(stack)
    if place is None and parsed.user_file and (same.user_file or "").endswith(parsed.user_file):
        place = same.user_file or "", parsed.user_line, parsed.user_code
    if place is None:
        return None
    actual = parsed.actual or same.actual
    return FailingGuard(parsed.text, parsed.source, parsed.kind, parsed.expected, actual, True, None, *place)


def _find_dead_reference(guard_manager: Any) -> FailingGuard | None:
    """The reason of an entry that torch dropped with a guarded object; it has no guards left. None of a live entry."""
    reason = getattr(guard_manager, "invalidation_reason", None)
    if reason is None:
        return None
    parsed = parse_guard(reason)
    return FailingGuard(parsed.text, parsed.source, parsed.kind, parsed.expected, parsed.actual, is_first=True)


def _make_first(debug: Any, guard_manager: Any, scope: GuardScope) -> FailingGuard:
    """Torch's own first failure, with the current value and, where torch kept it, the user's line."""
    parts = list(debug.verbose_code_parts)
    text = parts[0] if parts else ""
    if len(parts) > 1:
        # The parts of one lambda guard: torch itself searches for the part that is false.
        text = next((part for part in parts if scope.is_false(part)), text)
    parsed = parse_guard(text, "SYMBOLIC_SHAPE_GUARD" if len(parts) > 1 else None)
    # Where C++ says less than the guard knows.
    known: list[FailingGuard] = []
    if text.startswith("GLOBAL_STATE changed"):
        leaves = [leaf for leaf in guard_manager.root.get_leaf_guards() if type(leaf).__name__ == "GLOBAL_STATE"]
        known = find_state_failures(leaves[0], None) if leaves else []
    elif text.startswith("Duplicate tensor found"):
        known = find_duplicates(guard_manager, scope)
    first = known[0] if known else make_failure(parsed, scope)
    first.is_first = True
    place = find_user_line(getattr(debug, "user_stack", None))
    if place is None and first.user_file is None:
        place = _find_line(guard_manager.root, parsed, scope)
    if place is not None:
        first.user_file, first.user_line, first.user_code = place
    return first


def _find_line(mgr: Any, parsed: ParsedGuard, scope: GuardScope) -> tuple[str, int, str | None] | None:
    """The user's line from the guard's own text, for tensors, where the text of C++ lacks it."""
    if not parsed.operands:
        return None
    wanted = parsed.operands[0].torch_text
    for child in mgr.get_child_managers():
        source = child.get_source()
        if source == wanted:
            for leaf in child.get_leaf_guards():
                guard = parse_guard(next(iter(leaf.verbose_code_parts()), ""), type(leaf).__name__)
                if (file := scope.full_path(guard.user_file)) and guard.user_line:
                    return file, guard.user_line, guard.user_code
        leads_there = wanted.startswith(source.removesuffix(".__dict__")) or source == "G"
        if leads_there and (place := _find_line(child, parsed, scope)):
            return place
    return None


def _mark_first(found: FailingGuards, debug: Any, guard_manager: Any, scope: GuardScope) -> None:
    """Mark torch's first failure among those that were found; insert it before them if it is missing."""
    place: tuple[str, int | None, str | None] | None
    parts = debug.verbose_code_parts
    same = [f for f in found if len(parts) == 1 and f.guard == bound_text(parts[0].strip())]
    if same and isinstance(same[0], DeferredFailure):
        same[0].stack, place = getattr(debug, "user_stack", None), None
    elif same:
        place = find_user_line(getattr(debug, "user_stack", None))
    else:
        first = _make_first(debug, guard_manager, scope)
        found[:] = map(complete, found)
        same = [f for f in found if f.kind == first.kind and first.source in (f.source, None)]
        if not same:
            found.insert(0, first)
            return
        place = (first.user_file, first.user_line, first.user_code) if first.user_file is not None else None
    same[0].is_first = True
    if place is not None:
        same[0].user_file, same[0].user_line, same[0].user_code = place
