"""The walk over one guard tree, in the order in which C++ checks it. guard_tree.py lists its rules."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...decode.guards.failed_guards import FailingGuard
from ...decode.guards.guard_text import ParsedGuard, parse_guard
from ...interrupts import pass_on
from . import torch_api
from .deferred_failures import defer_failure
from .failing_managers import find_failing_managers, has_dicts
from .guard_scope import FUNCTION_PARTS, NOTHING, GuardScope, describe_guard
from .guard_state import find_state_changes, read_mode_types, read_state
from .partial_checks import PartialChecks
from .tensor_checks import TensorCheck, describe_overlap, find_mismatches

#: Leaf guards that say nothing about the type, so that the walk goes on when they fail.
_GO_ON = {
    "TENSOR_MATCH",
    "LENGTH_CHECK",
    "DICT_LENGTH",
    "DICT_CONTAINS",
    "SET_CONTAINS",
    "DIMENSION_DYNAMIC_MARKING_GUARD",
    "DYNAMIC_INDICES",
    "GLOBAL_STATE",
    "TORCH_FUNCTION_MODE_STACK",
    "DEFAULT_DEVICE",
}
#: Leaf guards that compare several values and keep state for it between calls.
_RELATIONAL = {"NO_TENSOR_ALIASING", "OBJECT_ALIASING", "STORAGE_OVERLAPPING", "SYMBOLIC_SHAPE_GUARD"}


class FailingGuards(list[FailingGuard]):
    """The failing guards of an entry in the tree's order; `truncated` if time ran out before the end."""

    truncated = False


class Deadline:
    """Ends after `budget_s` seconds of this thread. The thread's own clock needs a system call, so it is only read once
    that much time has passed by the wall clock; the seconds count from then.
    """

    def __init__(self, budget_s: float):
        self._budget_s = budget_s
        self._wall_end = time.perf_counter() + budget_s
        self._end: float | None = None

    def is_over(self) -> bool:
        if time.perf_counter() < self._wall_end:
            return False
        now = time.thread_time()
        if self._end is None:
            self._end = now + self._budget_s
        return now >= self._end


def make_failure(
    parsed: ParsedGuard, scope: GuardScope, fail_count: int | None = None, value: Any = NOTHING
) -> FailingGuard:
    """A parsed guard as a failing one, with the current value of its source (`value`, where it is already known)."""
    expected, actual = parsed.expected, parsed.actual
    if actual is None:
        actual = read_state(parsed, scope)
    if actual is None:
        expected, actual = describe_guard(parsed, scope, value)
    if parsed.kind == "mode_stack":
        expected = read_mode_types(parsed, scope.closure_vars) or expected
    return FailingGuard(
        guard=parsed.text,
        source=parsed.source,
        kind=parsed.kind,
        expected=expected,
        actual=actual,
        fail_count=fail_count,
        user_file=scope.full_path(parsed.user_file),
        user_line=parsed.user_line,
        user_code=parsed.user_code,
    )


def make_tensor_failures(
    parsed: ParsedGuard, check: TensorCheck, value: Any, scope: GuardScope, fail_count: int | None = None
) -> tuple[bool, list[FailingGuard]]:
    """(is it a tensor of the expected type?, one failure for each property that differs)."""
    same_type, wrong = find_mismatches(check, value)
    found = []
    for kind, source, expected, actual in wrong:
        failure = make_failure(parsed, scope, fail_count, value)
        failure.kind, failure.source, failure.expected, failure.actual = kind, source, expected, actual
        found.append(failure)
    return same_type, found


def find_tensor_failures(parsed: ParsedGuard, check: TensorCheck, scope: GuardScope) -> list[FailingGuard]:
    """As `make_tensor_failures`, for the value that the guard names now; empty if it cannot be read."""
    value, missing = scope.value(parsed.operands[0]) if parsed.operands else (None, None)
    if missing is not None or not parsed.operands:
        return []
    return make_tensor_failures(parsed, check, value, scope)[1]


def find_state_failures(leaf: Any, fail_count: int | None) -> list[FailingGuard]:
    """One failure for each part of the global state that changed."""
    text = "; ".join(leaf.verbose_code_parts())
    return [
        FailingGuard(text, name, "global_state", expected, actual, fail_count=fail_count)
        for name, expected, actual in find_state_changes(text)
    ]


def find_duplicates(guard_manager: Any, scope: GuardScope) -> list[FailingGuard]:
    """Tensors that have to be different objects and are the same one now."""
    by_id: dict[int, list[str]] = {}
    for source in torch_api.unaliased_sources(guard_manager) or []:
        value, missing = scope.value(source)
        if missing is None:
            by_id.setdefault(id(value), []).append(source)
    return [
        make_failure(parse_guard(f"Duplicate tensors found: {same!r}"), scope)
        for same in by_id.values()
        if len(same) > 1
    ]


class GuardWalk:
    """One walk; `found` is its result. With `defers`, some guards are described later."""

    def __init__(self, guard_manager: Any, scope: GuardScope, deadline: Deadline, defers: bool = False):
        self.guard_manager = guard_manager
        self.scope = scope
        self.deadline = deadline
        self.defers = defers
        self.found = FailingGuards()
        self.path = [guard_manager.root.get_source()]
        self.checks = PartialChecks(guard_manager, scope.f_locals)
        #: Do all leaf guards from the root to here hold?
        self.clean = True
        #: The sources of the other managers on the path.
        self.beside: frozenset[str] = frozenset()
        self.aliasing = False
        self.relational: dict[str, int] = {}

    def run(self) -> FailingGuards:
        root, f_locals = self.guard_manager.root, self.scope.f_locals
        # The state guards check the torch function modes themselves; C++ checks the rest with torch functions off.
        passed, go_on = self.walk_leaves(root, f_locals)
        self.clean = passed
        with torch_api.without_torch_function():
            if go_on:
                self.walk_children(root, "", NOTHING, passed)
            self.walk_last()
        return self.found

    def run_fast(self, debug: Any) -> bool:
        """As `run`, from the result of C++ for the whole tree. False if that is not enough; then `found` is void."""
        root = self.guard_manager.root
        if self.checks.stateful is None or self.is_late():
            return False
        result = find_failing_managers(root, debug, self.checks.stateful, self.checks.ask)
        if result is None:
            return False
        sources, managers = result
        with torch_api.without_torch_function():
            if not all(self.check_manager(mgr, source, source in sources) for source, mgr in managers):
                return False
            self.walk_last()
        return True

    def check_manager(self, mgr: Any, source: str, must_fail: bool) -> bool:
        """Check one manager; False if that does not decide, as where one that must fail fails in its children."""
        value, missing = self.scope.value(source)
        if missing is not None:
            return False
        self.path.append(source)
        passed, go_on = self.walk_leaves(mgr, value)
        decides = not go_on or mgr.has_no_accessors()
        if not (decides or must_fail or has_dicts(mgr)):
            # Its path is not known here, so its parts are not checked in C++ first.
            self.clean = False
            self.walk_children(mgr, source, value, passed)
            decides = True
        self.path.pop()
        return decides and not (must_fail and passed)

    def is_late(self) -> bool:
        self.found.truncated = self.found.truncated or self.deadline.is_over()
        return self.found.truncated

    def walk_manager(self, mgr: Any, source: str, value: Any) -> None:
        key_values = getattr(mgr, "get_key_value_managers", None)
        if key_values is not None and not self.has_same_keys(mgr, source, value):
            return
        passed, go_on = self.walk_leaves(mgr, value)
        if go_on:
            clean, self.clean = self.clean, self.clean and passed
            self.walk_children(mgr, source, value, passed)
            if key_values is not None:
                self.walk_items(key_values())
            self.clean = clean

    def walk_children(self, mgr: Any, source: str, value: Any, passed: bool) -> None:
        children = mgr.get_child_managers()
        names = frozenset(child.get_source() for child in children)
        beside = self.beside
        for position, child in enumerate(children):
            if self.is_late():
                break
            name = child.get_source()
            self.beside = beside | names - {name}
            if self.clean and len(children) > 1 and self.checks.holds(child, name, self.beside):
                continue
            if name == source:
                # HASATTR names its child after the parent; the accessor knows the attribute.
                name = _attribute_of(mgr, position, source)
            # Below a failing length, what is missing is that failure again.
            self.visit(child, name, source, value, passed)
        self.beside = beside

    def visit(self, child: Any, name: str, source: str, value: Any, missing_matters: bool) -> None:
        child_value, missing = self.scope.step(name, source, value)
        if missing is None:
            self.path.append(child.get_source())
            self.walk_manager(child, name, child_value)
            self.path.pop()
        elif missing_matters and isinstance(missing, (AttributeError, LookupError)):
            self.keep_missing(name, missing, child.fail_count())

    def walk_items(self, managers: dict[int, tuple[Any, Any]]) -> None:
        for _, pair in sorted(managers.items(), key=lambda item: item[0]):
            before = len(self.found)
            for part in pair:
                # Under another key there is another value: only the key counts.
                if part is not None and len(self.found) == before and not self.is_late():
                    self.visit(part, part.get_source(), "", NOTHING, missing_matters=True)

    def has_same_keys(self, mgr: Any, source: str, value: Any) -> bool:
        """DictGuardManager checks type and size itself, without a leaf guard."""
        expected = mgr.get_type_of_guarded_value()
        if type(value) is not expected:
            text = f"___check_type_id({source}, 0), type={type.__repr__(expected)}"
        elif dict.__len__(value) == len(mgr.get_key_value_managers()):
            return True
        else:
            text = self.checks.describe_failure(self.path)
            if not text.startswith("len("):
                # It guards only some of the keys, and its size is right.
                return True
        self.keep(parse_guard(text), mgr.fail_count())
        return False

    def walk_leaves(self, mgr: Any, value: Any) -> tuple[bool, bool]:
        """Check the leaf guards of a manager: (do all hold?, may the walk go below?)."""
        passed = True
        for leaf in mgr.get_leaf_guards():
            name = type(leaf).__name__
            if name in _RELATIONAL:
                self.defer(leaf, name, mgr)
            elif not _holds(leaf, value):
                passed = False
                if not self.report(leaf, name, value, mgr.fail_count()):
                    return False, False
        return passed, True

    def defer(self, leaf: Any, name: str, mgr: Any) -> None:
        if name == "NO_TENSOR_ALIASING":
            self.aliasing = True
        else:
            for part in leaf.verbose_code_parts():
                self.relational.setdefault(part, mgr.fail_count())

    def report(self, leaf: Any, name: str, value: Any, fail_count: int) -> bool:
        """Keep one failing leaf; True if the walk may go on."""
        parts = list(leaf.verbose_code_parts())
        if self.defers and len(parts) == 1 and (later := defer_failure(parts[0], value, fail_count, self.scope)):
            self.found.append(later)
        elif name == "GLOBAL_STATE":
            self.found.extend(find_state_failures(leaf, fail_count))
        elif name == "TENSOR_MATCH" and (check := TensorCheck.parse(parts[0])):
            return self.keep_tensor(parse_guard(parts[0], name), check, value, fail_count)
        elif len(parts) > 1:
            self.keep_false_parts(parts, fail_count, name)
        else:
            self.keep(parse_guard(parts[0] if parts else "", name), fail_count, value)
        return name in _GO_ON or self.path == ["L"]

    def keep(self, parsed: ParsedGuard, fail_count: int, value: Any = NOTHING) -> None:
        self.found.append(make_failure(parsed, self.scope, fail_count, value))

    def keep_missing(self, name: str, error: Exception, fail_count: int) -> None:
        """The source cannot be reached; in the words that C++ uses."""
        if name.endswith(FUNCTION_PARTS):
            text = f"CodeGuardAccessor: Not a function on {name}"
        elif isinstance(error, AttributeError):
            text = f"getattr failed on source {name}"
        else:
            text = f"{type(error).__name__} on {name}"
        self.keep(parse_guard(text), fail_count)

    def keep_tensor(self, parsed: ParsedGuard, check: TensorCheck, value: Any, fail_count: int) -> bool:
        same_type, found = make_tensor_failures(parsed, check, value, self.scope, fail_count)
        for failure in found:
            is_autocast = "Autocast" in (failure.expected or "") + (failure.actual or "")
            if not (failure.kind == "dispatch_keys" and is_autocast and self.has_autocast_changed()):
                self.found.append(failure)
        return same_type

    def has_autocast_changed(self) -> bool:
        """Autocast also shows in the dispatch keys of every tensor; it is reported once, as global state."""
        return any(found.source == "autocast" for found in self.found)

    def keep_false_parts(self, parts: list[str], fail_count: int, leaf: str | None = "SYMBOLIC_SHAPE_GUARD") -> None:
        """The false ones among the code parts of one guard."""
        for part in parts:
            if self.is_late():
                return
            if self.scope.is_false(part):
                self.keep(parse_guard(part, leaf), fail_count)

    def walk_last(self) -> None:
        """The guards that C++ checks last: those that compare several values, and the root's epilogue."""
        self.walk_relations()
        root = self.guard_manager.root
        for leaf in root.get_epilogue_lambda_guards():
            if not _holds(leaf, self.scope.f_locals):
                self.keep_false_parts(leaf.verbose_code_parts(), root.fail_count())

    def walk_relations(self) -> None:
        if self.aliasing:
            self.found.extend(find_duplicates(self.guard_manager, self.scope))
        for part, fail_count in self.relational.items():
            parsed = parse_guard(part)
            if part.startswith("check_overlapping("):
                if (actual := describe_overlap(parsed, self.scope)) is not None:
                    self.keep(parsed, fail_count)
                    self.found[-1].actual = actual
            elif self.scope.is_false(part):
                self.keep(parsed, fail_count)


def _holds(leaf: Callable[[Any], bool], value: Any) -> bool:
    try:
        return leaf(value)
    except Exception as error:
        pass_on(error)
        # A check that raises has failed, as in C++, which clears the error.
        return False


def _attribute_of(mgr: Any, position: int, source: str) -> str:
    kind, _, rest = mgr.get_accessors()[position].repr().partition("(")
    return f"{source}.{rest[:-1]}" if kind.endswith("GetAttrGuardAccessor") else source
