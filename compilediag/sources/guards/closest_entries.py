"""Which entries of a function are closest to a call, where it has too many to find all failing guards of each.

The guards of two entries are mostly the same texts. A text that all entries have says nothing about which of them is
closest, so it is never decided. All texts that compare one value with a constant are decided by reading that value
once. The result is an estimate: the failing guards of the closest entries are then found one by one.
"""

from __future__ import annotations

import ast
import re
import weakref
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from ...decode.guards.failed_guards import STRUCTURE
from ...decode.guards.guard_text import parse_guard
from ...decode.guards.path import NotConstant, parse_expression, read_constant, scan_source
from ...decode.guards.tensor_text import TensorCheck
from . import torch_api
from .guard_scope import GuardScope
from .tensor_checks import count_mismatches, read_properties

#: Guards on torch's state have one text for all entries, and expect another state in each. They are checked first, so
#: torch's reason names them where they fail.
_STATE = re.compile(r"[\d/_]+: (?:GLOBAL_STATE|___check_global_state|___check_torch_function_mode_stack)")
_NOT_NONE = " is not None"
_CONSTANTS = (int, str, bool, float, type(None))


class _Slot:
    """The guards that compare one value: what each requires -> the entries that require it, by their numbers here."""

    def __init__(self, kind: str, source: str):
        self.kind = kind
        self.source = source
        self.holders: dict[Hashable, set[int]] = {}
        self.entries: set[int] = set()

    def add(self, required: Hashable, entry: int) -> None:
        self.holders.setdefault(required, set()).add(entry)
        self.entries.add(entry)

    def find_failing(self, scope: GuardScope) -> Iterator[tuple[set[int], bool, int]]:
        """(entries, whether the guard is on structure, number of failing guards in each of them)."""
        if self.kind == "unknown":
            return
        if self.kind == "other":
            if scope.is_false(self.source):
                yield self.entries, self.source.endswith(_NOT_NONE) or parse_guard(self.source).kind in STRUCTURE, 1
            return
        value, missing = scope.value(self.source)
        if missing is not None:
            yield self.entries, False, 1
        elif self.kind == "tensor":
            properties = read_properties(value)
            for check, entries in self.holders.items():
                if isinstance(check, TensorCheck) and (count := count_mismatches(check, properties)):
                    yield entries, count < 0, abs(count)
        else:
            yield from self._find_unequal(_make_key(self.kind, value))

    def _find_unequal(self, actual: Hashable) -> Iterator[tuple[set[int], bool, int]]:
        failing = self.entries - self.holders.get(actual, set())
        on_structure = self.kind == "type" or self.source.startswith("len(")
        none = self.holders.get(_NONE, set())
        if self.kind == "value" and not on_structure and none and actual != _NONE:
            yield none, True, 1
            failing -= none
        if failing:
            yield failing, on_structure or (self.kind == "value" and actual == _NONE), 1


class EntryIndex:
    """The guards of the entries of one function, by what they compare."""

    def __init__(self) -> None:
        self._slots: dict[tuple[str, str], _Slot] = {}
        #: Text of a guard -> its slot and what it requires.
        self._known: dict[str, tuple[_Slot, Hashable]] = {}
        #: id of the guards of an entry -> the guards, weakly, and the number of the entry here.
        self._entries: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._count = 0

    def is_outdated(self, entries: int) -> bool:
        """True if most of the entries that it knows are gone: the function has only so many."""
        return self._count > 2 * entries + 16

    def find_closest(
        self, entries: Sequence[Any], ages: Sequence[tuple[bool, int]], reasons: Sequence[str], scope: GuardScope
    ) -> list[int]:
        """The positions of the entries, the closest first; among equal ones, the latest first.

        `ages`: (is it alive?, its number). `reasons`: torch's text for each. `scope` is that of one of them.
        """
        numbers = [self._add(entry.guard_manager) if age[0] else -1 for entry, age in zip(entries, ages, strict=True)]
        structural, failed = Counter[int](), Counter[int]()
        with torch_api.without_torch_function():
            for slot in self._slots.values():
                if len(slot.holders) > 1 or len(slot.entries) < self._count:
                    for failing, on_structure, count in slot.find_failing(scope):
                        for _ in range(count):
                            failed.update(failing)
                        if on_structure:
                            structural.update(failing)
        failed.update(number for number, reason in zip(numbers, reasons, strict=True) if _STATE.match(reason))

        def estimate(at: int) -> tuple[bool, int, int, int]:
            number, (live, age) = numbers[at], ages[at]
            return not live, structural[number], failed[number], -age

        return sorted(range(len(entries)), key=estimate)

    def _add(self, guards: Any) -> int:
        """The number of an entry; its guards are read when it is first seen."""
        known = self._entries.get(id(guards))
        if known is not None and known[0]() is guards:
            return known[1]
        self._count += 1
        self._entries[id(guards)] = weakref.ref(guards), self._count
        for text in guards.code_parts:
            slot, required = self._known.get(text) or self._read(text)
            slot.add(required, self._count)
        return self._count

    def _read(self, text: str) -> tuple[_Slot, Hashable]:
        kind, source, required = _split_text(text)
        slot = self._slots.get((kind, source))
        if slot is None:
            slot = self._slots[kind, source] = _Slot(kind, source)
        self._known[text] = slot, required
        return slot, required


def _split_text(text: str) -> tuple[str, str, Hashable]:
    """(kind, what is compared, what is required). The kind is "other" for a text that is decided as a whole."""
    check = TensorCheck.parse(text)
    if check is not None:
        return "tensor", text[len("check_tensor(") : scan_source(text, len("check_tensor("))], check
    end = scan_source(text)
    expression = parse_expression(text[:end] if text.startswith(", type=", end) else text)
    if expression is None:
        return "unknown", "", None
    match expression.node:
        case ast.Call(ast.Name("___check_type_id" | "___check_obj_id" as by), [value, ast.Constant(int() as address)]):
            return "type" if by == "___check_type_id" else "object", expression.get_text(value), address
        case ast.Compare(value, [ast.Eq() | ast.Is()], [other]) if expression.read_path(value) is not None:
            try:
                constant = read_constant(other)
            except NotConstant:
                return "other", text, None
            if type(constant) in _CONSTANTS:
                return "value", expression.get_text(value), (type(constant), constant)
    return "other", text, None


_NONE = (type(None), None)


def _make_key(kind: str, value: Any) -> Hashable:
    """What a guard that a value fulfils requires. No code of the user's runs: values of other classes equal none."""
    if kind == "type":
        return id(type(value))
    if kind == "object":
        return id(value)
    return (type(value), value) if type(value) in _CONSTANTS else None
