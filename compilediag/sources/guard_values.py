"""The values of now behind a guard: its source evaluated where torch evaluates it, and told in bounds."""

from __future__ import annotations

import functools
import linecache
import os
import re
import types
from collections.abc import Callable
from typing import Any

from compilediag.decode.guard_names import class_name, readable
from compilediag.decode.guards import ParsedGuard
from compilediag.sources.values import describe, type_name

_STEP = re.compile(r"(?:\.[A-Za-z_]\w*|\[(?:'[^'\\]*'|-?\d+)\])+")
_NOTHING = object()


class Scope:
    """Evaluates guard sources for one entry and one call: `L` is its locals, `G` its globals."""

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.f_locals = f_locals
        names = dict(guard_manager.closure_vars or {})
        # The order is torch's: get_guard_fail_reason_helper lets the closure variables win.
        self.names = {"L": f_locals, "G": (guard_manager.global_scope or {}).get("G", {}), **names}
        entry = guard_manager.cache_entry
        self.own_file = entry.code.co_filename if entry is not None else None

    def value(self, source: str) -> tuple[Any, Exception | None]:
        """(value, None), or (None, why it could not be had)."""
        if ".item()" in source and "___as_tensor(" not in source:
            return None, ValueError("would wait for the device")
        try:
            return eval(_compiled(source), self.names), None
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
        if self.own_file and self.own_file.endswith(short):
            return self.own_file
        return _found_path(short)


@functools.lru_cache(maxsize=8192)
def _compiled(source: str) -> types.CodeType:
    return compile(source, "<guard>", "eval")


@functools.lru_cache(maxsize=8192)
def _step(suffix: str) -> Callable[[Any], Any] | None:
    return eval(f"lambda value: value{suffix}", {}) if _STEP.fullmatch(suffix) else None


@functools.lru_cache(maxsize=1024)
def _found_path(short: str) -> str:
    import torch

    folder = os.path.dirname(torch.__file__)
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
    import torch

    inside = os.path.dirname(torch.__file__) + os.sep
    frame = next((f for f in reversed(stack) if not f.filename.startswith(inside)), stack[-1])
    return frame.filename, frame.lineno, (frame.line or "").strip() or None


def actual_now(parsed: ParsedGuard, scope: Scope, value: Any = _NOTHING) -> str | None:
    """What the guarded thing is now, in the words in which `parsed.expected` tells what it was."""
    if parsed.kind in ("symbolic_shape", "alias") and parsed.operands:
        return _operands_now(parsed, scope)
    if value is _NOTHING:
        if not parsed.operands:
            return None
        value, missing = scope.value(parsed.operands[0])
        if missing is not None:
            return f"missing: {type(missing).__name__}"
    return _TELL.get(parsed.kind, _tell_value)(parsed, value)


def _operands_now(parsed: ParsedGuard, scope: Scope) -> str | None:
    told = []
    for source in parsed.operands:
        value, missing = scope.value(source)
        told.append(describe(value) if missing is None else f"missing: {type(missing).__name__}")
    if len(told) == 1:
        return told[0]
    return ", ".join(f"{readable(source)} = {text}" for source, text in zip(parsed.operands, told, strict=True))


def _tell_value(parsed: ParsedGuard, value: Any) -> str:
    return describe(value)


def _tell_type(parsed: ParsedGuard, value: Any) -> str:
    cls = type(value)
    return type_name(cls, module=type_name(cls).rpartition(".")[2] == parsed.expected)


def _tell_identity(parsed: ParsedGuard, value: Any) -> str:
    text = describe(value)
    same = class_name(parsed.text) in (type_name(type(value)), type_name(value) if isinstance(value, type) else None)
    return f"{text} (another object)" if same else text


def _tell_length(parsed: ParsedGuard, value: Any) -> str:
    if parsed.text.startswith("___tuple_iterator_len"):
        return str(value.__length_hint__())
    try:
        return str(len(value))
    except Exception:
        return describe(value)


def _tell_keys(parsed: ParsedGuard, value: Any) -> str:
    if isinstance(value, (dict, types.MappingProxyType)) and parsed.source and parsed.source.endswith(".keys()"):
        return describe(list(value))
    return describe(value)


_TELL: dict[str, Callable[[ParsedGuard, Any], str]] = {
    "type": _tell_type,
    "identity": _tell_identity,
    "length": _tell_length,
    "dict_keys": _tell_keys,
}
