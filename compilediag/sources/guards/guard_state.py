"""Guards on torch's ambient state: what they wanted and what it is now."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from compilediag.decode.guards.guard_text import ParsedGuard
from compilediag.sources.guards.guard_values import Scope
from compilediag.sources.guards.guarded_values import describe, type_name

#: c10::ScalarType by number, as the state's JSON tells dtypes.
_DTYPES = {5: "torch.float16", 6: "torch.float32", 7: "torch.float64", 15: "torch.bfloat16"}
#: at::autocast's devices by position; the others are told by their number.
_AUTOCAST_DEVICES = ("cpu", "cuda")


def global_state_changes(text: str) -> Iterator[tuple[str, str, str]]:
    """(part, expected, actual) for each part of torch's global state that differs from the guard's text."""
    from torch._C._dynamo.guards import GlobalStateGuard

    try:
        before = json.loads(text.partition(" against ")[2])
    except ValueError:
        before = {}
    now = json.loads(GlobalStateGuard().__getstate__())
    for part in now:
        if part in before and before[part] != now[part]:
            yield from _change(part, before[part], now[part])
    if not before:
        yield "global state", "unchanged", "changed"


def _change(part: str, before: Any, now: Any) -> Iterator[tuple[str, str, str]]:
    if part == "default_dtype":
        yield part, _dtype(before), _dtype(now)
    elif part != "autocast_state":
        yield part, str(before), str(now)
    elif _autocast(before) != _autocast(now):
        yield "autocast", _autocast(before), _autocast(now)
    elif before["cached_enabled"] != now["cached_enabled"]:
        yield "autocast_cache", str(before["cached_enabled"]), str(now["cached_enabled"])


def _dtype(number: Any) -> str:
    return _DTYPES.get(number, f"dtype {number}")


def _autocast(state: dict[str, Any]) -> str:
    on = [
        f"{_AUTOCAST_DEVICES[i] if i < len(_AUTOCAST_DEVICES) else f'device {i}'} {_dtype(dtype)}"
        for i, (enabled, dtype) in enumerate(zip(state["enabled"], state["dtype"], strict=True))
        if enabled
    ]
    return "on: " + ", ".join(on) if on else "off"


def state_now(parsed: ParsedGuard, scope: Scope) -> str | None:
    """What an ambient state is now, for the guards whose text has no source to evaluate; else None."""
    if parsed.kind == "default_device":
        return describe(scope.value("utils_device.CURRENT_DEVICE")[0])
    if parsed.kind == "mode_stack" and parsed.source == "torch function modes":
        from torch.overrides import _get_current_function_mode_stack

        return _names([type(mode) for mode in _get_current_function_mode_stack()])
    if parsed.kind == "global_state" and parsed.source == "forward AD level":
        return describe(scope.value("torch.autograd.forward_ad._current_level")[0])
    return None


def mode_stack_types(parsed: ParsedGuard, closure_vars: dict[str, Any]) -> str | None:
    """The torch function modes of compile time: Dynamo's own Python check keeps their types in its closure."""
    check = closure_vars.get("___check_torch_function_mode_stack")
    code = getattr(check, "__code__", None)
    if parsed.source != "torch function modes" or code is None or "types" not in code.co_freevars:
        return None
    return _names(check.__closure__[code.co_freevars.index("types")].cell_contents)


def _names(modes: list[type]) -> str:
    return ", ".join(type_name(mode) for mode in modes) or "no mode"
