"""The values of now behind a guard: its source evaluated where torch evaluates it, and told in bounds."""

from __future__ import annotations

import functools
import linecache
import os
import re
import types
import weakref
from collections.abc import Callable
from typing import Any

from compilediag.decode.guards.guard_text import ParsedGuard
from compilediag.decode.guards.source_names import format_source, parse_class_name
from compilediag.sources.guards.guarded_values import describe, place, type_name

_STEP = re.compile(r"(?:\.[A-Za-z_]\w*|\[(?:'[^'\\]*'|-?\d+)\])+")
_OBJECT_ID = re.compile(r"___check_obj_id\(.+, (\d+)\)", re.S)
#: Looking through more of them would cost more than a name is worth (0.1 us each).
_MOST_FINALIZERS = 20_000
#: Parts of a Python function that guards look at; what has none of them is no Python function.
FUNCTION_PARTS = (".__code__", ".__closure__", ".__defaults__", ".__kwdefaults__")
#: No value is known.
NOTHING = object()


class Scope:
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
        return {**self._plain, **self.closure_vars}

    @functools.cached_property
    def _own_file(self) -> str | None:
        entry = self._manager.cache_entry
        return entry.code.co_filename if entry is not None else None

    def value(self, source: str) -> tuple[Any, Exception | None]:
        """(value, None), or (None, why it could not be had)."""
        if ".item()" in source and "___as_tensor(" not in source:
            return None, ValueError("would wait for the device")
        try:
            code, is_plain = _compiled(source)
            return eval(code, self._plain if is_plain else self._names), None
        except Exception as error:
            return None, error

    def step(self, source: str, base: str, base_value: Any) -> tuple[Any, Exception | None]:
        """As `value`, but from the value of the parent where the source merely goes on from it."""
        if base and source.startswith(base) and (go := _step(source[len(base) :])):
            try:
                return go(base_value), None
            except Exception as error:
                return None, error
        return self.value(source)

    def is_false(self, expression: str) -> bool:
        """True if a code part can be evaluated and does not hold."""
        result, error = self.value(expression)
        return error is None and not isinstance(result, str) and not result

    def full_path(self, short: str | None) -> str | None:
        """Torch cuts from a path what it shares with torch's own; this puts it back where it can be found."""
        if not short or os.path.isabs(short):
            return short
        if self._own_file and self._own_file.endswith(short):
            return self._own_file
        return _found_path(short)


@functools.lru_cache(maxsize=8192)
def _compiled(source: str) -> tuple[types.CodeType, bool]:
    """The source as code, and whether it needs no names but `L` and `G`: most do not."""
    return compile(source, "<guard>", "eval"), source[:1] in "LG" and _STEP.fullmatch(source, 1) is not None


@functools.lru_cache(maxsize=8192)
def _step(suffix: str) -> Callable[[Any], Any] | None:
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


def user_place(stack: Any) -> tuple[str, int, str | None] | None:
    """File, line and text of the innermost frame of the user's in a traceback.StackSummary."""
    if not stack:
        return None
    inside = _torch_folder() + os.sep
    frame = next((f for f in reversed(stack) if not f.filename.startswith(inside)), stack[-1])
    return frame.filename, frame.lineno, (frame.line or "").strip() or None


def tell(parsed: ParsedGuard, scope: Scope, value: Any = NOTHING) -> tuple[str | None, str | None]:
    """(expected, actual): what the guarded thing had to be and what it is now, in the same words."""
    if parsed.kind in ("symbolic_shape", "alias") and parsed.operands:
        return parsed.expected, _operands_now(parsed, scope)
    if value is NOTHING:
        if not parsed.operands:
            return parsed.expected, None
        value, missing = scope.value(parsed.operands[0])
        if missing is not None:
            return parsed.expected, f"missing: {type(missing).__name__}"
    teller = _TELLERS.get(parsed.kind)
    return teller(parsed, value) if teller else (parsed.expected, describe(value))


def _operands_now(parsed: ParsedGuard, scope: Scope) -> str | None:
    told = []
    for source in parsed.operands:
        value, missing = scope.value(source)
        told.append(describe(value) if missing is None else f"missing: {type(missing).__name__}")
    if len(told) == 1:
        return told[0]
    return ", ".join(f"{format_source(source)} = {text}" for source, text in zip(parsed.operands, told, strict=True))


def _tell_type(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    expected, actual = parsed.expected, type_name(type(value))
    if actual.rpartition(".")[2] != expected:
        return expected, actual
    expected = parse_class_name(parsed.text, module=True)
    actual = parse_class_name(type.__repr__(type(value)), module=True)
    # A class that was defined again, as by running a notebook's cell again, has the same name.
    return expected, f"{actual} (another class)" if actual == expected else actual


def _tell_identity(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    old = _old_object(parsed.text)
    actual = _identity(value)
    if old is None:
        cls = value if isinstance(value, type) else type(value)
        same = parse_class_name(parsed.text) == type_name(cls).rpartition(".")[2]
        return parsed.expected, f"{actual} (another object)" if same else actual
    expected = _identity(old)
    return expected, f"{actual} (another object)" if actual == expected else actual


def _identity(value: Any) -> str:
    if type(value) is types.CodeType:
        return f"{getattr(value, 'co_qualname', value.co_name).rpartition('.<locals>.')[2]} at {place(value)}"
    return describe(value)


def _old_object(text: str) -> Any:
    """The object that an ID_MATCH guard wants, or None.

    It lives: torch drops the entry when it dies, by a `weakref.finalize` on it, and that is where it is found.
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


def _tell_length(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    if parsed.text.startswith("___tuple_iterator_len"):
        return parsed.expected, str(value.__length_hint__())
    try:
        return parsed.expected, str(len(value))
    except Exception:
        # What has no length now fails a guard on it just so.
        return parsed.expected, describe(value)


def _tell_keys(parsed: ParsedGuard, value: Any) -> tuple[str | None, str]:
    whole = type(value) in (dict, types.MappingProxyType) and (parsed.source or "").endswith(".keys()")
    return parsed.expected, describe(list(value) if whole else value)


_TELLERS: dict[str, Callable[[ParsedGuard, Any], tuple[str | None, str]]] = {
    "type": _tell_type,
    "identity": _tell_identity,
    "length": _tell_length,
    "dict_keys": _tell_keys,
}
