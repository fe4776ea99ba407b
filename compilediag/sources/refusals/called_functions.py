"""The function that a compiled call runs, and the variables that its guards see, before the call begins."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..hooks.caller_frames import caller_frames
from ..hooks.torch_names import is_frame_of
from . import torch_api

#: Frames between a hook and the wrapper of a compiled function.
DEPTH = 8


class CalledFunction(NamedTuple):
    """A function and its variables; `through` are the codes of torch between the compiled call and the function."""

    code: types.CodeType
    f_locals: dict[str, Any]
    through: tuple[types.CodeType, ...] = ()


def find_called_function(depth: int = DEPTH) -> CalledFunction | None:
    """The function that the compiled call of this thread is about to run; None if its arguments do not show it.

    A compiled module calls `forward` with the arguments of its call, unless it has hooks, which can change them.
    """
    for frame in caller_frames(depth):
        if is_frame_of(frame, torch_api.EVAL_FRAMES, "compile_wrapper"):
            local = frame.f_locals
            return bind_call(local.get("fn"), local.get("args", ()), local.get("kwargs", {}))
    return None


def bind_call(function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> CalledFunction | None:
    """A call of a Python function as the variables with which it begins; None if it is no such function."""
    through: tuple[types.CodeType, ...] = ()
    if torch_api.is_module_call(function):
        forward = torch_api.plain_forward(function.__self__)
        if forward is None:
            return None
        function, through = forward, torch_api.module_call_codes()
    if isinstance(function, types.MethodType):
        function, args = function.__func__, (function.__self__, *args)
    if not isinstance(function, types.FunctionType):
        return None
    try:
        bound = inspect.signature(function, follow_wrapped=False).bind(*args, **kwargs)
    except (TypeError, ValueError):  # A call that will raise.
        return None
    bound.apply_defaults()
    return CalledFunction(function.__code__, {**bound.arguments, **_read_closure(function)}, through)


def _read_closure(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # Not assigned yet.
            continue
    return found
