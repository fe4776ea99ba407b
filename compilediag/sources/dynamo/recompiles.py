"""Recompiles: when all entries of a frame have failed, which guards failed in each, and the values now.

torch calls the hook with the entries and the frame's locals, and then forgets both. `full` finds all failing guards
of the entries that are closest, and the closest is the one with the fewest, of those made for the same structure.
`lean` takes the latest entry as the closest, finds all failing guards of that one and the first of each other.
Of more than `MAX_ANALYZED` entries, `full` analyzes so many, `lean` the latest alone; the others are only counted.
"""

from __future__ import annotations

import ast
import re
import types
import weakref
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import Any

from ...decode.guards.failed_guards import (
    STRUCTURE,
    FailedEntry,
    FailingGuard,
    make_first_failure,
    make_recompile_events,
)
from ...decode.guards.guard_text import TensorCheck, parse_guard
from ...decode.guards.path import NotConstant, parse_expression, read_constant, scan_source
from ...system import clock
from ..compile_context import CompileKeys, EventSink, Made
from ..guards.guard_scope import GuardScope, count_mismatches, read_properties
from ..guards.guard_tree import failing_guards, first_failing_guard
from ..guards.guard_walk import ReasonForm, complete
from ..guards.torch_api import FOR_GUARDS, without_torch_function
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import Source, hook
from ..hooks.torch_names import call_argument, is_torch_file
from . import torch_api

#: Entries whose failing guards are found. 8 is torch's own limit of entries, unless it is raised.
MAX_ANALYZED = 8
#: Functions with more entries whose guards are remembered.
MAX_INDEXES = 100
#: (is the entry alive?, its number): larger for later entries; the dead ones come before all that live.
Age = tuple[bool, int]


class Recompiles(Source):
    name = "recompiles"
    needs = (torch_api.COMPILE_CONTEXT, *FOR_GUARDS)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: By the id of the code and the region, whose entries are separate.
        self._indexes: dict[tuple[int, int | None], tuple[types.CodeType, EntryIndex]] = {}

    def close(self) -> None:
        self._indexes.clear()

    @hook(torch_api.ALL_ENTRIES_FAILED)
    def _all_failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        chain, frame, *_ = args
        if call_argument(args, kwargs, 3, "skip_logging"):
            return  # torch 2.11 calls it twice per recompile.
        entries = torch_api.cache_entries(chain)
        if not entries:
            return
        code: types.CodeType = frame.f_code
        failed = FailedCall(entries, result or (), code, frame.f_locals, self.context.keys)
        if self.detail == "lean":
            # The latest entry that is alive. That is mostly the latest of all.
            latest = max(range(len(failed.entries)), key=lambda at: torch_api.entry_number(failed.entries[at]))
            latest = latest if failed.read_age(latest)[0] else max(range(len(failed.entries)), key=failed.read_age)
            closest = self._check_entry(failed, latest)
            form = ReasonForm.of(closest.reason or "", closest.guards)
            analyzed = range(len(entries)) if len(entries) <= MAX_ANALYZED else (latest,)
            found = [closest if at == latest else self._check_entry(failed, at, closest, form) for at in analyzed]
        else:
            order = self._order_by_distance(failed)
            found = [self._check_entry(failed, at) for at in sorted(order[:MAX_ANALYZED])]
            closest = min(found, key=lambda entry: entry.distance)
        compile_id, key = self.context.keys.current()
        where = (code.co_name, code.co_filename, code.co_firstlineno)
        rest = (key, len(entries), torch_api.current_region(), get_ident())
        self.emit(_make_rows, clock.now_ns(), compile_id, where, found, closest, *rest)

    def _order_by_distance(self, failed: FailedCall) -> list[int]:
        """The positions of the entries, the closest first if there are too many to analyze all."""
        if len(failed.entries) <= MAX_ANALYZED:
            return list(range(len(failed.entries)))
        name = id(failed.code), torch_api.current_region()
        code, index = self._indexes.get(name, (None, None))
        if index is None or code is not failed.code or index.is_outdated(len(failed.entries)):
            if len(self._indexes) >= MAX_INDEXES:
                self._indexes.clear()
            index = EntryIndex()
            self._indexes[name] = failed.code, index
        every = range(len(failed.entries))
        ages, reasons = list(map(failed.read_age, every)), list(map(failed.find_reason, every))
        alive = next(entry for entry in failed.entries if not torch_api.is_dead(entry))
        return index.find_closest(failed.entries, ages, reasons, GuardScope(alive.guard_manager, failed.f_locals))

    def _check_entry(
        self, failed: FailedCall, at: int, closest: FailedEntry | None = None, form: ReasonForm | None = None
    ) -> FailedEntry:
        """One entry with all of its failing guards; with the first of them if the closest entry is already known.

        `form` is that of the closest entry's reason.
        """
        entry, reason = failed.entries[at], failed.find_reason(at)
        compile_id, key = self.context.keys.format(entry.compile_id), self.context.keys.find(entry.compile_id)
        guards: list[FailingGuard]
        if closest is None:
            guards = failing_guards(entry.guard_manager, failed.f_locals, defers=self.detail == "lean", reason=reason)
        elif form is not None and (same := form.find_same(reason)) is not None:
            guards = [same]
        else:
            first = first_failing_guard(entry.guard_manager, failed.f_locals, closest.guards, reason)
            guards = [first] if first else []
        if not guards and reason:
            # The guards themselves do not show another backend or an entry that was dropped: torch's text does.
            guards = [make_first_failure(parse_guard(reason))]
        return FailedEntry(compile_id, failed.read_age(at), guards, reason or None, key)


@dataclass(slots=True)
class FailedCall:
    """A call that no entry fits. `reasons` are torch's texts: at most one for each entry."""

    entries: list[Any]
    reasons: Sequence[str]
    code: types.CodeType
    f_locals: dict[str, Any]
    keys: CompileKeys

    def read_age(self, at: int) -> Age:
        """How late an entry was made, after all that are dead."""
        return not torch_api.is_dead(self.entries[at]), torch_api.entry_number(self.entries[at])

    def find_reason(self, at: int) -> str:
        """torch's text for an entry, "" without one: it names the compile id, and is mostly at the entry's place."""
        reasons, start = self.reasons, f"{self.keys.format(self.entries[at].compile_id)}: "
        if at < len(reasons) and reasons[at].startswith(start):
            return reasons[at]
        return next((reason for reason in reasons if reason.startswith(start)), "")


def _make_rows(
    time_ns: int,
    compile_id: str | None,
    where: tuple[str, str, int],
    entries: list[FailedEntry],
    closest: FailedEntry,
    key: str | None,
    checked: int,
    region: int | None,
    thread: int,
) -> Made:
    for entry in entries:
        entry.guards = list(map(complete, entry.guards))
    rest = (key, checked, region, thread)
    return make_recompile_events(time_ns, compile_id, where, entries, closest, is_torch_file, *rest)


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
            actual = _make_key(self.kind, value)
            failing = self.entries - self.holders.get(actual, set())
            on_structure = self.kind == "type" or self.source.startswith("len(")
            none = self.holders.get(_NONE, set())
            if self.kind == "value" and not on_structure and none and actual != _NONE:
                yield none, True, 1
                failing -= none
            if failing:
                yield failing, on_structure or (self.kind == "value" and actual == _NONE), 1


class EntryIndex:
    """The guards of the entries of one function, by what they compare: it finds the entries that are closest to a call.

    The guards of two entries are mostly the same texts. A text that all entries have says nothing about which of them
    is closest, so it is never decided. All texts that compare one value with a constant are decided by reading that
    value once. The result is an estimate: the failing guards of the closest entries are then found one by one.
    """

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
        with without_torch_function():
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
            if text not in self._known:
                kind, source, required = _split_text(text)
                self._known[text] = self._slots.setdefault((kind, source), _Slot(kind, source)), required
            slot, required = self._known[text]
            slot.add(required, self._count)
        return self._count


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
