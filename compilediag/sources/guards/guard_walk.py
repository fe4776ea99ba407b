"""The walk over one guard tree, in the order in which C++ checks it. guard_tree.py lists its rules."""

from __future__ import annotations

import functools
import operator
import re
import time
import weakref
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...decode.guards.failed_guards import FailingGuard
from ...decode.guards.guard_forms import read_check
from ...decode.guards.guard_text import ParsedGuard, TensorCheck, parse_guard, parse_user_line, split_comment
from ...decode.guards.path import Path, scan_source
from ...system.interrupts import pass_on
from . import torch_api
from .guard_scope import (
    FUNCTION_PARTS,
    NOTHING,
    GuardScope,
    describe_guard,
    describe_overlap,
    find_full_path,
    find_mismatches,
    find_state_changes,
    find_user_line,
    read_mode_types,
    read_state,
)
from .read_values import describe, has_users_methods

# What the texts of an entry's guards say about checking them again. Each entry's texts are read once.

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
        pairs, sources = _find_pairs(guard_manager), torch_api.unaliased_sources(guard_manager)
        stateful: tuple[str, ...] | None = None
        if pairs is not None and sources is not None:
            # A single tensor cannot be the same object as another one.
            stateful = (*(sources if len(sources) > 1 else ()), *pairs)
        texts = _known[guard_manager] = EntryTexts(stateful, containers)
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


def _find_pairs(guard_manager: Any) -> list[str] | None:
    """The sources that have to be one object; None if there are guards on several values of another kind.

    torch 2.15 guards on a module that two functions know under two names, so most models have such a pair.
    """
    parts = guard_manager.code_parts
    text = "\n".join(parts)
    if not any(hint in text for hint in _HINTS):
        return []
    # The code parts of the root's last guards, which keep no state: torch 2.15 lists them with the others.
    guards = guard_manager.root.get_epilogue_lambda_guards()
    last = {split_comment(part)[0].rstrip() for guard in guards for part in guard.verbose_code_parts()}
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


class PartialChecks:
    """For one entry and one call: the parts of the tree that hold, which a walk can skip.

    Only a whole tree can be checked, not a manager in it. But torch can copy a part of a tree (it does so for its own
    "diff" guards), and a copy of one path with the subtree at its end shows whether that holds. A copy shares its leaf
    guards with the tree, also those that keep state between calls. Parts with such guards are never copied for a check:
    another thread may be in the middle of checking the tree.
    """

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.root = guard_manager.root
        self.f_locals = f_locals
        self.stateful = read_texts(guard_manager).stateful

    def holds(self, mgr: Any, source: str, beside: Collection[str]) -> bool:
        """True if everything at and below a manager holds. `beside`: the sources of the other managers on its path."""
        if self.stateful is None or mgr.has_no_accessors():
            return False
        if any(each.startswith(source) or source.startswith(each) for each in self.stateful):
            return False  # A manager on the path, or below it, has a guard with state.
        copy = self.root.clone_manager(lambda part: part.get_source() not in beside)
        return bool(self.check(copy).result)

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


# The managers that fail, found without a walk: leave out what C++ names, and check again. Mostly one guard fails. A
# copy of the tree without the manager of that guard, checked once, then shows that nothing else does. Cases that this
# cannot decide, such as guards of the root or of several values, are left to the walk.

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
    sources = [source for source, _ in managers]
    if len(set(sources)) < len(sources) or not failing <= set(sources):
        return None
    # The manager of a dict checks more than its guards.
    return None if any(is_dict(manager) for _, manager in managers) else (failing, managers)


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


def is_dict(manager: Any) -> bool:
    """True for the manager of a dict, which also checks the dict's type and size."""
    return hasattr(manager, "get_key_value_managers")


def has_dicts(manager: Any) -> bool:
    """True if a manager is a dict's, or one below it."""
    return is_dict(manager) or any(map(has_dicts, manager.get_child_managers()))


# Failing guards that compare a value with a constant are parsed and described in the writer's thread. In a compiling
# thread nothing of ours is in the processor's caches, so parsing a text takes ten times as long as in the writer's
# thread, which does the same for all compiles of a batch. Only values that cannot change are kept for it.

#: Types of values that cannot change.
_CONSTANTS = (int, str, bool, float, type(None))
#: Longer texts, in characters, are not searched for their parts.
_MAX_TEXT = 2_000
_CONSTANT = r"[\w.+-]+|'[^'\"\\]*'"
_SOURCE = r"[LG]\['[^'\"\\]*'\](?:\.\w+|\['[^'\"\\]*'\]|\[\d+\])*"
_COMPARISON = re.compile(rf"(?P<source>{_SOURCE}) == (?P<constant>{_CONSTANT})\s+(?P<comment># [^\n]*)")
_INTEGER = re.compile(r"-?[1-9]\d{0,30}|0", re.A)
_ONE_CONSTANT = re.compile(rf"(?:{_CONSTANT})\s+")


@dataclass(slots=True)
class DeferredFailure(FailingGuard):
    """A failing guard whose text is not parsed yet. `head` and `comment` are what is around the constant in it.

    `stack` is torch's stack of the line that caused the guard, if it kept one.
    """

    value: Any = None
    stack: Any = None
    own_file: str | None = None
    head: str = ""
    comment: str = ""


def defer_failure(text: str, value: Any, fail_count: int | None, scope: GuardScope) -> DeferredFailure | None:
    """The failure of a guard that compares `value` with a constant; None if it has to be described at once."""
    if type(value) not in _CONSTANTS or len(text) > _MAX_TEXT:
        return None
    found = _COMPARISON.fullmatch(text)
    # Where the text does not name the user's line, other guards of the entry are asked for it.
    if found is None or parse_user_line(found["comment"][2:].rstrip(), "")[0] is None:
        return None
    return DeferredFailure(
        *(text.strip(), found["source"], "value", None, None),
        fail_count=fail_count,
        value=value,
        own_file=scope.own_file,
        head=text[: found.start("constant")],
        comment=found["comment"],
    )


def defer_same(text: str, known: FailingGuard, stack: Any) -> DeferredFailure | None:
    """The failure of another entry at the value of `known`; None if the texts differ in more than the constant."""
    if not isinstance(known, DeferredFailure) or len(text) > _MAX_TEXT:
        return None
    if not (text.startswith(known.head) and text.endswith(known.comment)):
        return None
    if _ONE_CONSTANT.fullmatch(text, len(known.head), len(text) - len(known.comment)) is None:
        return None
    return DeferredFailure(
        *(text.strip(), known.source, known.kind, None, None),
        is_first=True,
        value=known.value,
        own_file=known.own_file,
        stack=stack,
        head=known.head,
        comment=known.comment,
    )


#: torch names the locals in its reasons as users do.
_LOCAL = re.compile(r"L\[\s*['\"](.*?)['\"]\s*\]")


class ReasonForm(NamedTuple):
    """torch's reason for one entry, around the constant of the guard that failed first there.

    Where the reason of another entry differs in its constant alone, the same guard failed first in it, and the entry
    need not be checked once more to find it.
    """

    failure: DeferredFailure
    before: str
    after: str

    @classmethod
    def of(cls, reason: str, found: Iterable[FailingGuard]) -> ReasonForm | None:
        """The form of an entry's reason; None if its first failing guard is not deferred, or has another text there."""
        first = next((guard for guard in found if guard.is_first), None)
        if not isinstance(first, DeferredFailure):
            return None
        _, end, stack = reason.partition(": ")[2].partition("\n")
        before, comment = _LOCAL.sub(r"\1", first.head), _LOCAL.sub(r"\1", first.comment)
        form = cls(first, before, f"{comment}{end}{stack}")
        return form if form.find_same(reason) is not None else None

    def find_same(self, reason: str) -> DeferredFailure | None:
        """The first failure of another entry at the same call, from torch's reason for it; None for other reasons."""
        text = reason.partition(": ")[2]
        if not (text.startswith(self.before) and text.endswith(self.after)):
            return None
        constant = text[len(self.before) : len(text) - len(self.after)]
        return defer_same(self.failure.head + constant + self.failure.comment, self.failure, self.failure.stack)


def _parse_deferred(failure: DeferredFailure) -> ParsedGuard:
    """As `parse_guard` of its text. The guards of a storm differ in an integer: around it, one of them is parsed."""
    constant = failure.guard[len(failure.head) :].removesuffix(failure.comment).rstrip()
    if _INTEGER.fullmatch(constant):
        parsed = _parse_around(failure.head, failure.comment)
        if (parsed.kind, parsed.expected, parsed.actual) == ("value", "0", None):
            return parsed._replace(expected=constant, text=failure.guard)
    return parse_guard(failure.guard)


@functools.lru_cache(maxsize=256)
def _parse_around(head: str, comment: str) -> ParsedGuard:
    return parse_guard(f"{head}0  {comment}")


def complete(failure: FailingGuard) -> FailingGuard:
    """The failure with all of its parts."""
    if not isinstance(failure, DeferredFailure):
        return failure
    parsed = _parse_deferred(failure)
    place: tuple[str | None, int | None, str | None] | None = find_user_line(failure.stack)
    if place is None:
        place = find_full_path(parsed.user_file, failure.own_file), parsed.user_line, parsed.user_code
    actual = describe(failure.value) if parsed.actual is None else parsed.actual
    return FailingGuard(
        failure.guard, parsed.source, parsed.kind, parsed.expected, actual, failure.is_first, failure.fail_count, *place
    )


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
#: Leaf guards that compare several values and keep state for it between calls, as NO_TENSOR_ALIASING does.
_RELATIONAL = {"OBJECT_ALIASING", "STORAGE_OVERLAPPING", "SYMBOLIC_SHAPE_GUARD"}


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
    if value is scope.f_locals and not parsed.operands:
        value = NOTHING  # A guard on torch's state is checked with the locals, which it is not about.
    if actual is None:
        actual = read_state(parsed, scope)
    lookalike = None
    if actual is None:
        expected, actual, lookalike = describe_guard(parsed, scope, value)
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
        lookalike=lookalike,
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
                kind, _, rest = mgr.get_accessors()[position].repr().partition("(")
                name = f"{source}.{rest[:-1]}" if kind.endswith("GetAttrGuardAccessor") else source
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
            # In the words that C++ uses.
            if name.endswith(FUNCTION_PARTS):
                text = f"CodeGuardAccessor: Not a function on {name}"
            elif isinstance(missing, AttributeError):
                text = f"getattr failed on source {name}"
            else:
                text = f"{type(missing).__name__} on {name}"
            self.keep(parse_guard(text), child.fail_count())

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
            if name == "NO_TENSOR_ALIASING":
                self.aliasing = True
            elif name in _RELATIONAL:
                for part in leaf.verbose_code_parts():
                    self.relational.setdefault(part, mgr.fail_count())
            elif not _holds(leaf, value):
                passed = False
                if not self.report(leaf, name, value, mgr.fail_count()):
                    return False, False
        return passed, True

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

    def keep_tensor(self, parsed: ParsedGuard, check: TensorCheck, value: Any, fail_count: int) -> bool:
        same_type, found = make_tensor_failures(parsed, check, value, self.scope, fail_count)
        # Autocast also shows in the dispatch keys of every tensor; it is reported once, as global state.
        has_changed = any(found.source == "autocast" for found in self.found)
        for failure in found:
            is_autocast = "Autocast" in (failure.expected or "") + (failure.actual or "")
            if not (failure.kind == "dispatch_keys" and is_autocast and has_changed):
                self.found.append(failure)
        return same_type

    def keep_false_parts(self, parts: list[str], fail_count: int, leaf: str = "SYMBOLIC_SHAPE_GUARD") -> None:
        """The false ones among the code parts of one guard."""
        for part in parts:
            if self.is_late():
                return
            if self.scope.is_false(part):
                self.keep(parse_guard(part, leaf), fail_count)

    def walk_last(self) -> None:
        """The guards that C++ checks last: those that compare several values, and the root's epilogue."""
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
        root = self.guard_manager.root
        for leaf in root.get_epilogue_lambda_guards():
            if not _holds(leaf, self.scope.f_locals):
                self.keep_false_parts(leaf.verbose_code_parts(), root.fail_count())


def _holds(leaf: Callable[[Any], bool], value: Any) -> bool:
    try:
        return leaf(value)
    except Exception as error:
        pass_on(error)
        # A check that raises has failed, as in C++, which clears the error.
        return False
