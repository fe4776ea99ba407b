"""Guards on torch's global state: what they expect and what it is now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...decode.guards.guard_text import ParsedGuard
from ...interrupts import pass_on
from . import torch_api
from .describe import describe, type_name
from .guard_scope import GuardScope

#: c10::ScalarType by number: the state's JSON has dtypes as numbers.
_DTYPES = {5: "torch.float16", 6: "torch.float32", 7: "torch.float64", 15: "torch.bfloat16"}
#: at::autocast's devices by position; the others are shown as numbers.
_AUTOCAST_DEVICES = ("cpu", "cuda")


def find_state_changes(text: str) -> Iterator[tuple[str, str, str]]:
    """(part, expected, actual) for each part of torch's global state that differs from the guard's text."""
    try:
        before = json.loads(text.partition(" against ")[2])
    except ValueError as error:
        pass_on(error)
        before = {}
    now = json.loads(torch_api.global_state())
    for part in now:
        if part in before and before[part] != now[part]:
            yield from _compare_part(part, before[part], now[part])
    if not before:
        yield "global state", "unchanged", "changed"


def _compare_part(part: str, before: Any, now: Any) -> Iterator[tuple[str, str, str]]:
    if part == "default_dtype":
        yield part, _dtype_name(before), _dtype_name(now)
    elif part != "autocast_state":
        yield part, str(before), str(now)
    elif _autocast_text(before) != _autocast_text(now):
        yield "autocast", _autocast_text(before), _autocast_text(now)
    elif before["cached_enabled"] != now["cached_enabled"]:
        yield "autocast_cache", str(before["cached_enabled"]), str(now["cached_enabled"])


def _dtype_name(number: Any) -> str:
    return _DTYPES.get(number, f"dtype {number}")


def _autocast_text(state: dict[str, Any]) -> str:
    on = [
        f"{_AUTOCAST_DEVICES[i] if i < len(_AUTOCAST_DEVICES) else f'device {i}'} {_dtype_name(dtype)}"
        for i, (enabled, dtype) in enumerate(zip(state["enabled"], state["dtype"], strict=True))
        if enabled
    ]
    return "on: " + ", ".join(on) if on else "off"


def read_state(parsed: ParsedGuard, scope: GuardScope) -> str | None:
    """The current value of a global state, for the guards whose text names no value; else None."""
    if parsed.kind == "default_device":
        return describe(scope.value(torch_api.CURRENT_DEVICE)[0])
    if parsed.kind == "mode_stack" and parsed.source == "torch function modes":
        return _join_names(torch_api.function_modes())
    if parsed.kind == "global_state" and parsed.source == "forward AD level":
        return describe(scope.value(torch_api.FORWARD_AD_LEVEL)[0])
    return None


def read_mode_types(parsed: ParsedGuard, closure_vars: dict[str, Any]) -> str | None:
    """The torch function modes of compile time: Dynamo's own Python check keeps their types in its closure."""
    check = closure_vars.get(torch_api.MODE_STACK_CHECK)
    code = getattr(check, "__code__", None)
    if check is None or parsed.source != "torch function modes" or code is None or "types" not in code.co_freevars:
        return None
    return _join_names(check.__closure__[code.co_freevars.index("types")].cell_contents)


def _join_names(modes: list[type]) -> str:
    return ", ".join(type_name(mode) for mode in modes) or "no mode"
