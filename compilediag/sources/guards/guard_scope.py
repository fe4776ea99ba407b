"""The current value of a guard's source, read in the scope in which torch evaluates it, as bounded text."""

from __future__ import annotations

import functools
import linecache
import operator
import os
import re
import types
import weakref
from collections.abc import Callable
from typing import Any

from ...decode.guards.cpp_names import parse_class_name
from ...decode.guards.guard_forms import format_dim_ranges
from ...decode.guards.guard_text import ParsedGuard, split_comment
from ...decode.guards.path import Path, parse_expression, parse_path
from ...events import ANOTHER_CLASS, ANOTHER_OBJECT
from ...interrupts import pass_on
from .describe import code_place, describe, type_name
from .read_values import CANNOT_READ, FrameReader, Unreadable, read_length

_OBJECT_ID = re.compile(r"___check_obj_id\(.+, (\d+)\)", re.S)
#: To search more of them (0.1 us each) is not worth a name.
_MOST_FINALIZERS = 20_000
#: Parts of a Python function that guards check; an object without them is no Python function.
FUNCTION_PARTS = (".__code__", ".__closure__", ".__defaults__", ".__kwdefaults__")
#: Stands for a value that is not known.
NOTHING = object()


class GuardScope:
    """Reads the values of guards for one entry and one call."""

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.f_locals = f_locals
        self._manager = guard_manager
        f_globals = (guard_manager.global_scope or {}).get("G", {})
        self._reader = FrameReader(f_locals, f_globals, lambda: self.closure_vars)

    @functools.cached_property
    def closure_vars(self) -> dict[str, Any]:
        return self._manager.closure_vars or {}

    @functools.cached_property
    def own_file(self) -> str | None:
        """The file of the function that the entry is for."""
        entry = self._manager.cache_entry
        return entry.code.co_filename if entry is not None else None

    def value(self, path: Path | str) -> tuple[Any, Exception | None]:
        """(value, None), or (None, why it cannot be read). A text is torch's name of the value."""
        found = parse_path(path) if isinstance(path, str) else path
        if found is None:
            return None, Unreadable("its name")
        try:
            return self._reader.read(found), None
        except CANNOT_READ as error:
            pass_on(error)
            return None, error

    def step(self, name: str, base: str, base_value: Any) -> tuple[Any, Exception | None]:
        """As `value`, but from the value of the parent where the name only extends the parent's."""
        path, parent = parse_path(name), parse_path(base) if base_value is not NOTHING else None
        steps = path.find_steps_below(parent) if path is not None and parent is not None else None
        if steps is None:
            return self.value(path or name)
        try:
            return self._reader.walk(base_value, steps), None
        except CANNOT_READ as error:
            pass_on(error)
            return None, error

    def is_false(self, text: str) -> bool:
        """True if a code part can be decided and is false."""
        expression = parse_expression(split_comment(text)[0])
        if expression is None:
            return False
        try:
            result = self._reader.decide(expression)
        except CANNOT_READ as error:
            pass_on(error)
            return False
        return not isinstance(result, str) and not result

    def full_path(self, short: str | None) -> str | None:
        """The whole path of a file: torch removes the part that it shares with torch's own path."""
        return find_full_path(short, self.own_file)


def find_full_path(short: str | None, own_file: str | None) -> str | None:
    """The whole path of a file that a guard names. `own_file`: the file of the compiled function."""
    if not short or os.path.isabs(short):
        return short
    return own_file if own_file and own_file.endswith(short) else _found_path(short)


@functools.cache
def _torch_folder() -> str:
    import torch

    return os.path.dirname(torch.__file__)


@functools.lru_cache(maxsize=1024)
def _found_path(short: str) -> str:
    folder = _torch_folder()
    while True:
        path = os.path.join(folder, short)
        if path in linecache.cache or os.path.exists(path):
            return path
        if folder == os.path.dirname(folder):
            return short
        folder = os.path.dirname(folder)


def find_user_line(stack: Any) -> tuple[str, int, str | None] | None:
    """File, line and text of the innermost frame outside torch in a traceback.StackSummary."""
    if not stack:
        return None
    inside = _torch_folder() + os.sep
    frame = next((f for f in reversed(stack) if not f.filename.startswith(inside)), stack[-1])
    return frame.filename, frame.lineno, (frame.line or "").strip() or None


def describe_guard(parsed: ParsedGuard, scope: GuardScope, value: Any = NOTHING) -> tuple[str | None, str | None]:
    """(expected, actual): the value that the guard expects and the value now, in the same form."""
    if (parsed.source or "").endswith("._dynamo_dynamic_range"):
        return parsed.expected, _describe_ranges(scope.value(parsed.operands[0])[0])
    if parsed.kind in ("symbolic_shape", "alias") and parsed.operands:
        return parsed.expected, _describe_operands(parsed, scope)
    if value is NOTHING:
        if not parsed.operands:
            return parsed.expected, None
        value, missing = scope.value(parsed.operands[0])
        if missing is not None:
            return parsed.expected, _describe_missing(missing)
    describe_kind = _DESCRIBERS.get(parsed.kind)
    return describe_kind(parsed, value) if describe_kind else (parsed.expected, describe(value))


def _describe_ranges(marks: Any) -> str:
    is_torchs = type(marks) is set and all(type_name(type(mark)) == "_DimRange" for mark in marks)
    # The repr of torch's own class has the numbers alone.
    return format_dim_ranges(repr(marks) if is_torchs else "")


def _describe_missing(error: Exception) -> str | None:
    """Why a value cannot be read; None if that says nothing of the value."""
    return None if isinstance(error, Unreadable) else f"missing: {type(error).__name__}"


def _describe_operands(parsed: ParsedGuard, scope: GuardScope) -> str | None:
    texts = []
    for path in parsed.operands:
        value, missing = scope.value(path)
        text = describe(value) if missing is None else _describe_missing(missing)
        texts.append(text if len(parsed.operands) == 1 else f"{path.text} = {text}" if text is not None else None)
    return ", ".join(text for text in texts if text is not None) or None


def _describe_type(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    expected, actual = parsed.expected, type_name(type(value))
    if actual.rpartition(".")[2] != expected:
        return expected, actual
    expected = parse_class_name(parsed.text, module=True)
    actual = parse_class_name(type.__repr__(type(value)), module=True) or actual
    # A class that was defined again, when a notebook's cell ran again, has the same name.
    return expected, actual + ANOTHER_CLASS if actual == expected else actual


def _describe_identity(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    old = _find_expected_object(parsed.text)
    actual = _identity(value)
    if old is None:
        cls = value if isinstance(value, type) else type(value)
        same = parse_class_name(parsed.text) == type_name(cls).rpartition(".")[2]
        return parsed.expected, actual + ANOTHER_OBJECT if same else actual
    expected = _identity(old)
    return expected, actual + ANOTHER_OBJECT if actual == expected else actual


def _identity(value: Any) -> str:
    if type(value) is types.CodeType:
        return f"{getattr(value, 'co_qualname', value.co_name).rpartition('.<locals>.')[2]} at {code_place(value)}"
    return describe(value)


def _find_expected_object(text: str) -> Any:
    """The object that an ID_MATCH guard expects, or None.

    It is alive: torch drops the entry when it dies, by a `weakref.finalize` on it, and there it is found.
    """
    found = _OBJECT_ID.search(text)
    registry = getattr(weakref.finalize, "_registry", {})
    if not found or len(registry) > _MOST_FINALIZERS:
        return None
    wanted = int(found[1])
    for info in list(registry.values()):
        value = info.weakref()
        if id(value) == wanted:
            return value
    return None


def _describe_length(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    if parsed.text.startswith(("___tuple_iterator_len", "___list_reverseiterator_len")):
        return parsed.expected, str(operator.length_hint(value)) if type(value) in _ITERATORS else describe(value)
    try:
        return parsed.expected, str(read_length(value))
    except Unreadable:
        # An object without a length fails the guard too.
        return parsed.expected, describe(value)


#: Iterators whose remaining length is guarded.
_ITERATORS: tuple[type, ...] = (type(iter(())), type(reversed([1])))


def _describe_keys(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    whole = type(value) in (dict, types.MappingProxyType) and (parsed.source or "").endswith(".keys()")
    return parsed.expected, describe(list(dict.keys(value) if type(value) is dict else value) if whole else value)


_DESCRIBERS: dict[str, Callable[[ParsedGuard, Any], tuple[str | None, str]]] = {
    "type": _describe_type,
    "identity": _describe_identity,
    "length": _describe_length,
    "dict_keys": _describe_keys,
}
