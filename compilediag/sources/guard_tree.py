"""All failing guards of a cache entry, with the values of now, read from torch's guard tree.

`check_verbose` of torch names the first failing guard only. This walks the tree that C++ checks (managers,
their leaf guards, their children), evaluates each source in the scope that torch itself uses for its
reasons, and asks each leaf guard. What keeps the caller's program as it was:

- Only `root.check_verbose` and single leaf guards are called. `root.check`, the look-up's way, counts
  failures and sorts the accessors by them.
- Guards that compare several values (`NO_TENSOR_ALIASING`, `OBJECT_ALIASING`, `STORAGE_OVERLAPPING`,
  `SYMBOLIC_SHAPE_GUARD`) keep state between calls in C++; they are never called but computed here.
- Where a leaf fails the walk stops, as C++ does: what lies below may be reached through the wrong type.
  It goes on only below a leaf whose failing says nothing about the type (`_GO_ON`).
- Tensors are told by metadata; no data is read and no device is waited for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from compilediag.decode.guards import ParsedGuard, parse_guard
from compilediag.sources.guard_state import global_state_changes, mode_stack_types, state_now
from compilediag.sources.guard_tensors import TensorCheck, mismatches, overlap_now
from compilediag.sources.guard_values import Scope, actual_now, user_place

_GO_ON = {
    "TENSOR_MATCH",
    "LENGTH_CHECK",
    "DICT_LENGTH",
    "DICT_CONTAINS",
    "SET_CONTAINS",
    "DIMENSION_DYNAMIC_MARKING_GUARD",
    "DYNAMIC_INDICES",
}
_RELATIONAL = {"NO_TENSOR_ALIASING", "OBJECT_ALIASING", "STORAGE_OVERLAPPING", "SYMBOLIC_SHAPE_GUARD"}


@dataclass(slots=True)
class FailingGuard:
    """One failing guard. `guard` is torch's text; `fail_count` is torch's count for the guard's subtree."""

    guard: str
    source: str | None
    kind: str
    expected: str | None
    actual: str | None
    is_first: bool = False
    fail_count: int | None = None
    user_file: str | None = None
    user_line: int | None = None
    user_code: str | None = None


class FailingGuards(list[FailingGuard]):
    """The failing guards of an entry in the tree's order; `truncated` if time ran out before the end."""

    truncated = False


def failing_guards(guard_manager: Any, f_locals: dict[str, Any], budget_s: float = 0.05) -> FailingGuards:
    """All failing guards of one cache entry against `f_locals`; empty if they all pass.

    `guard_manager`: `cache_entry.guard_manager`. `budget_s`: when to stop searching, in seconds.
    """
    if dead := _deallocated(guard_manager):
        return FailingGuards([dead])
    debug = guard_manager.root.check_verbose(f_locals)
    if debug.result:
        return FailingGuards()
    scope = Scope(guard_manager, f_locals)
    walk = _Walk(guard_manager, scope, time.perf_counter() + budget_s)
    walk.run()
    _mark_first(walk.found, _first(debug, guard_manager, scope))
    return walk.found


def first_failing_guard(guard_manager: Any, f_locals: dict[str, Any]) -> FailingGuard | None:
    """The guard that torch itself meets first, at the price of one check; None if all pass."""
    if dead := _deallocated(guard_manager):
        return dead
    debug = guard_manager.root.check_verbose(f_locals)
    return None if debug.result else _first(debug, guard_manager, Scope(guard_manager, f_locals))


def _deallocated(guard_manager: Any) -> FailingGuard | None:
    reason = getattr(guard_manager, "invalidation_reason", None)
    if reason is None:
        return None
    failing = _failing(parse_guard(reason), None)
    failing.is_first = True
    return failing


def _failing(parsed: ParsedGuard, actual: str | None, fail_count: int | None = None) -> FailingGuard:
    return FailingGuard(
        guard=parsed.text,
        source=parsed.source,
        kind=parsed.kind,
        expected=parsed.expected,
        actual=parsed.actual if parsed.actual is not None else actual,
        fail_count=fail_count,
        user_file=parsed.user_file,
        user_line=parsed.user_line,
        user_code=parsed.user_code,
    )


def _first(debug: Any, guard_manager: Any, scope: Scope) -> FailingGuard:
    """Torch's own first failure, told with the value of now and, where torch kept it, the user's stack."""
    parts = list(debug.verbose_code_parts)
    text = parts[0] if parts else ""
    if len(parts) > 1:
        # The parts of one lambda guard: torch itself looks for the part that is false.
        text = next((part for part in parts if scope.is_false(part)), text)
    if text.startswith("GLOBAL_STATE changed"):
        for leaf in guard_manager.root.get_leaf_guards():
            if type(leaf).__name__ == "GLOBAL_STATE" and (changes := _state_failures(leaf, None)):
                changes[0].is_first = True
                return changes[0]
    if text.startswith("Duplicate tensor found") and (duplicates := _duplicates(guard_manager, scope)):
        failing = duplicates[0]
    else:
        parsed = parse_guard(text)
        failing = _failing(parsed, _actual(parsed, scope))
    failing.is_first = True
    if place := user_place(getattr(debug, "user_stack", None)):
        failing.user_file, failing.user_line, failing.user_code = place
    else:
        failing.user_file = scope.full_path(failing.user_file)
    return failing


def _actual(parsed: ParsedGuard, scope: Scope) -> str | None:
    if parsed.actual is not None:
        return parsed.actual
    state = state_now(parsed, scope)
    return state if state is not None else actual_now(parsed, scope)


def _mark_first(found: FailingGuards, first: FailingGuard) -> None:
    for failing in found:
        if (failing.kind, failing.source) == (first.kind, first.source):
            failing.is_first = True
            failing.user_file, failing.user_line, failing.user_code = (
                first.user_file,
                first.user_line,
                first.user_code,
            )
            return
    found.insert(0, first)


def _state_failures(leaf: Any, fail_count: int | None) -> list[FailingGuard]:
    text = "; ".join(leaf.verbose_code_parts())
    return [
        FailingGuard(text, name, "global_state", expected, actual, fail_count=fail_count)
        for name, expected, actual in global_state_changes(text)
    ]


def _duplicates(guard_manager: Any, scope: Scope) -> list[FailingGuard]:
    """Tensors that the entry needs to be different objects and that are one now."""
    sources = getattr(guard_manager, "no_tensor_aliasing_sources", None) or []
    by_id: dict[int, list[str]] = {}
    for source in sources:
        value, missing = scope.value(source)
        if missing is None:
            by_id.setdefault(id(value), []).append(source)
    return [
        _failing(parse_guard(f"Duplicate tensors found: {same}"), None) for same in by_id.values() if len(same) > 1
    ]


class _Walk:
    """One walk over one guard tree, in the order in which C++ checks it."""

    def __init__(self, guard_manager: Any, scope: Scope, deadline: float):
        self.guard_manager = guard_manager
        self.scope = scope
        self.deadline = deadline
        self.found = FailingGuards()
        self.relational: dict[str, int] = {}
        self.aliasing = False
        self.path = [guard_manager.root.get_source()]

    def run(self) -> None:
        root = self.guard_manager.root
        import torch

        # The state guards look at torch function mode themselves; C++ checks the values with it disabled.
        self.leaves(root, self.scope.f_locals)
        with torch._C.DisableTorchFunction():
            self.children(root, "", None)
            self.relations()
            for leaf in root.get_epilogue_lambda_guards():
                if not self.asks(leaf, self.scope.f_locals):
                    self.parts(leaf.verbose_code_parts(), root.fail_count())

    def late(self) -> bool:
        self.found.truncated = self.found.truncated or time.perf_counter() > self.deadline
        return self.found.truncated

    def manager(self, mgr: Any, source: str, value: Any) -> None:
        if hasattr(mgr, "get_key_value_managers") and not self.is_dict_as_before(mgr, source, value):
            return
        if self.leaves(mgr, value):
            self.children(mgr, source, value)
            if hasattr(mgr, "get_key_value_managers"):
                self.items(mgr)

    def children(self, mgr: Any, source: str, value: Any) -> None:
        managers = mgr.get_child_managers()
        for position, child in enumerate(managers):
            if self.late():
                return
            name = child.get_source()
            if name == source:
                # HASATTR names its child after the parent; the accessor knows the attribute.
                name = _attribute_of(mgr, position, source)
            self.visit(child, name, source, value)

    def visit(self, child: Any, name: str, source: str, value: Any) -> None:
        child_value, missing = self.scope.step(name, source, value)
        if missing is None:
            self.path.append(child.get_source())
            self.manager(child, name, child_value)
            self.path.pop()
        elif isinstance(missing, (AttributeError, LookupError)):
            self.missing(name, missing, child.fail_count())

    def missing(self, name: str, error: Exception, fail_count: int) -> None:
        if isinstance(error, AttributeError):
            text = f"getattr failed on source {name}"
        else:
            text = f"{type(error).__name__} on {name}"
        failing = _failing(parse_guard(text), None, fail_count)
        failing.actual = f"missing: {type(error).__name__}"
        self.found.append(failing)

    def items(self, mgr: Any) -> None:
        for _, pair in sorted(mgr.get_key_value_managers().items()):
            for part in pair:
                if part is not None and not self.late():
                    self.visit(part, part.get_source(), "", None)

    def is_dict_as_before(self, mgr: Any, source: str, value: Any) -> bool:
        """DictGuardManager checks type and size itself, without a leaf guard."""
        expected = mgr.get_type_of_guarded_value()
        if type(value) is not expected:
            text = f"___check_type_id({source}, 0), type={type.__repr__(expected)}"
        elif dict.__len__(value) == len(mgr.get_key_value_managers()):
            return True
        else:
            text = self.only_complaint()
            if not text.startswith("len("):
                # It guards some of the keys only, and its size is right.
                return True
        parsed = parse_guard(text)
        self.found.append(_failing(parsed, _actual(parsed, self.scope), mgr.fail_count()))
        return False

    def only_complaint(self) -> str:
        """What C++ says about the manager that the walk is at, told by a copy of the tree that is this path alone."""
        path = set(self.path)
        root = self.guard_manager.root.clone_manager(lambda mgr: mgr.get_source() in path)
        parts = root.check_verbose(self.scope.f_locals).verbose_code_parts
        return parts[0] if parts else ""

    def leaves(self, mgr: Any, value: Any) -> bool:
        """Ask the leaf guards of a manager; False if what is below must not be looked at."""
        for leaf in mgr.get_leaf_guards():
            name = type(leaf).__name__
            if name in _RELATIONAL:
                self.remember(leaf, name, mgr)
            elif not self.asks(leaf, value) and not self.report(leaf, name, value, mgr.fail_count()):
                return False
        return True

    def asks(self, leaf: Any, value: Any) -> bool:
        try:
            return leaf(value)
        except Exception:
            # A check that cannot be made (torch's own C++ clears the error) is a failed one.
            return False

    def remember(self, leaf: Any, name: str, mgr: Any) -> None:
        if name == "NO_TENSOR_ALIASING":
            self.aliasing = True
        else:
            for part in leaf.verbose_code_parts():
                self.relational.setdefault(part, mgr.fail_count())

    def report(self, leaf: Any, name: str, value: Any, fail_count: int) -> bool:
        """Keep one failing leaf; True if the walk may go on below it."""
        if name == "GLOBAL_STATE":
            self.found.extend(_state_failures(leaf, fail_count))
            return True
        if name == "TENSOR_MATCH":
            return self.tensor(leaf.verbose_code_parts(), value, fail_count)
        parts = list(leaf.verbose_code_parts())
        if len(parts) > 1:
            self.parts(parts, fail_count, name)
        else:
            self.keep(parse_guard(parts[0] if parts else "", name), fail_count, value)
        return name in _GO_ON or name in ("LAMBDA_GUARD", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE")

    def keep(self, parsed: ParsedGuard, fail_count: int, *value: Any) -> None:
        state = state_now(parsed, self.scope)
        failing = _failing(parsed, state if state is not None else actual_now(parsed, self.scope, *value), fail_count)
        if parsed.kind == "mode_stack":
            failing.expected = mode_stack_types(self.guard_manager) or failing.expected
        failing.user_file = self.scope.full_path(failing.user_file)
        self.found.append(failing)

    def tensor(self, parts: list[str], value: Any, fail_count: int) -> bool:
        parsed = parse_guard(parts[0] if parts else "", "TENSOR_MATCH")
        check = TensorCheck.parse(parsed.text)
        if check is None:
            self.keep(parsed, fail_count, value)
            return True
        same_type, wrong = mismatches(check, value)
        for kind, source, expected, actual in wrong:
            failing = _failing(parsed, None, fail_count)
            failing.kind, failing.source, failing.expected, failing.actual = kind, source, expected, actual
            failing.user_file = self.scope.full_path(failing.user_file)
            self.found.append(failing)
        return same_type

    def parts(self, parts: list[str], fail_count: int, leaf: str | None = "SYMBOLIC_SHAPE_GUARD") -> None:
        for part in parts:
            if self.late():
                return
            if self.scope.is_false(part):
                self.keep(parse_guard(part, leaf), fail_count)

    def relations(self) -> None:
        if self.aliasing:
            self.found.extend(_duplicates(self.guard_manager, self.scope))
        for part, fail_count in self.relational.items():
            parsed = parse_guard(part)
            if part.startswith("check_overlapping("):
                if (actual := overlap_now(parsed, self.scope)) is not None:
                    self.found.append(_failing(parsed, actual, fail_count))
            elif self.scope.is_false(part):
                self.keep(parsed, fail_count)


def _attribute_of(mgr: Any, position: int, source: str) -> str:
    kind, _, rest = mgr.get_accessors()[position].repr().partition("(")
    return f"{source}.{rest[:-1]}" if kind.endswith("GetAttrGuardAccessor") else source
