"""The current value of a guard's source, evaluated in the scope in which torch evaluates it, as bounded text."""

from __future__ import annotations

import functools
import linecache
import os
import re
import types
import weakref
from collections.abc import Callable
from typing import Any

from ...decode.guards.guard_text import ParsedGuard
from ...decode.guards.source_names import format_source, parse_class_name
from ...decode.guards.special_forms import format_dim_ranges
from ...events import ANOTHER_CLASS, ANOTHER_OBJECT
from . import torch_api
from .describe import code_place, describe, type_name

_STEP = re.compile(r"(?:\.[A-Za-z_]\w*|\[(?:'[^'\\]*'|-?\d+)\])+")
_OBJECT_ID = re.compile(r"___check_obj_id\(.+, (\d+)\)", re.S)
#: To search more of them (0.1 us each) is not worth a name.
_MOST_FINALIZERS = 20_000
#: Parts of a Python function that guards check; an object without them is no Python function.
FUNCTION_PARTS = (".__code__", ".__closure__", ".__defaults__", ".__kwdefaults__")
#: Stands for a value that is not known.
NOTHING = object()


class GuardScope:
    """Evaluates guard sources for one entry and one call: `L` is its locals, `G` its globals."""

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.f_locals = f_locals
        self._manager = guard_manager
        self._plain = {"L": f_locals, "G": (guard_manager.global_scope or {}).get("G", {})}

    @functools.cached_property
    def closure_vars(self) -> dict[str, Any]:
        return self._manager.closure_vars or {}

    @functools.cached_property
    def _names(self) -> dict[str, Any]:
        # The order is torch's: get_guard_fail_reason_helper lets the closure variables win.
        return {**self._plain, **torch_api.marking_names(), **self.closure_vars}

    @functools.cached_property
    def own_file(self) -> str | None:
        """The file of the function that the entry is for."""
        entry = self._manager.cache_entry
        return entry.code.co_filename if entry is not None else None

    def value(self, source: str) -> tuple[Any, Exception | None]:
        """(value, None), or (None, the error of its evaluation)."""
        if ".item()" in source and "___as_tensor(" not in source:
            return None, ValueError("would wait for the device")
        try:
            code, is_plain = _compile_source(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return None, error
        names = self._plain if is_plain else self._names
        try:
            return eval(code, names), None
        except Exception as error:
            return None, error

    def step(self, source: str, base: str, base_value: Any) -> tuple[Any, Exception | None]:
        """As `value`, but from the value of the parent where the source only extends the parent's."""
        if base and source.startswith(base) and (go := _compile_step(source[len(base) :])):
            try:
                return go(base_value), None
            except Exception as error:
                return None, error
        return self.value(source)

    def is_false(self, expression: str) -> bool:
        """True if a code part can be evaluated and is false."""
        result, error = self.value(expression)
        return error is None and not isinstance(result, str) and not result

    def full_path(self, short: str | None) -> str | None:
        """The whole path of a file: torch removes the part that it shares with torch's own path."""
        return find_full_path(short, self.own_file)


def find_full_path(short: str | None, own_file: str | None) -> str | None:
    """The whole path of a file that a guard names. `own_file`: the file of the compiled function."""
    if not short or os.path.isabs(short):
        return short
    return own_file if own_file and own_file.endswith(short) else _found_path(short)


@functools.lru_cache(maxsize=8192)
def _compile_source(source: str) -> tuple[types.CodeType, bool]:
    """The source as code, and whether it needs only the names `L` and `G`: most do."""
    return compile(source, "<guard>", "eval"), source[:1] in "LG" and _STEP.fullmatch(source, 1) is not None


@functools.lru_cache(maxsize=8192)
def _compile_step(suffix: str) -> Callable[[Any], Any] | None:
    return eval(f"lambda value: value{suffix}", {}) if _STEP.fullmatch(suffix) else None


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
        # torch's own class has a repr with the numbers alone.
        return parsed.expected, format_dim_ranges(repr(scope.value(parsed.operands[0])[0]))
    if parsed.kind in ("symbolic_shape", "alias") and parsed.operands:
        return parsed.expected, _describe_operands(parsed, scope)
    if value is NOTHING:
        if not parsed.operands:
            return parsed.expected, None
        value, missing = scope.value(parsed.operands[0])
        if missing is not None:
            return parsed.expected, f"missing: {type(missing).__name__}"
    describe_kind = _DESCRIBERS.get(parsed.kind)
    return describe_kind(parsed, value) if describe_kind else (parsed.expected, describe(value))


def _describe_operands(parsed: ParsedGuard, scope: GuardScope) -> str | None:
    texts = []
    for source in parsed.operands:
        value, missing = scope.value(source)
        texts.append(describe(value) if missing is None else f"missing: {type(missing).__name__}")
    if len(texts) == 1:
        return texts[0]
    return ", ".join(f"{format_source(source)} = {text}" for source, text in zip(parsed.operands, texts, strict=True))


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
    try:
        if parsed.text.startswith(("___tuple_iterator_len", "___list_reverseiterator_len")):
            return parsed.expected, str(value.__length_hint__())
        if parsed.text.startswith(("set.__len__", "frozenset.__len__")):
            return parsed.expected, str((set if isinstance(value, set) else frozenset).__len__(value))
        return parsed.expected, str(len(value))
    except Exception:
        # An object without a length fails the guard too.
        return parsed.expected, describe(value)


def _describe_keys(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    whole = type(value) in (dict, types.MappingProxyType) and (parsed.source or "").endswith(".keys()")
    return parsed.expected, describe(list(value) if whole else value)


_DESCRIBERS: dict[str, Callable[[ParsedGuard, Any], tuple[str | None, str]]] = {
    "type": _describe_type,
    "identity": _describe_identity,
    "length": _describe_length,
    "dict_keys": _describe_keys,
}
