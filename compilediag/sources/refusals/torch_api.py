"""Private names of torch's stances, and of code that `aot_compile` compiled.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass
from typing import Any

from ..dynamo.torch_api import AOT_COMPILE, COMPILED_CODES, CONVERT, GUARDS
from ..hooks.caller_frames import caller_frames
from ..hooks.torch_names import HookPoint, TorchName, declare_parameters, fields, is_frame_of

EVAL_FRAMES = "torch._dynamo.eval_frame"

#: Sets a stance, wherever a program does so; the stance that is set.
SET_STANCE = HookPoint("torch._dynamo.decorators", "_set_stance")
STANCE = TorchName(EVAL_FRAMES, "_stance")
#: Called at each compiled call; what it does depends on the stance.
CALLBACK_OF_STANCE = HookPoint(EVAL_FRAMES, "_callback_from_stance")
#: Called before torch raises under `fail_on_recompile`, and at each conversion.
TENSOR_SEARCH = HookPoint(CONVERT, "has_tensor_in_frame")
#: Called by the stances that compile the second call, with how often the function was called.
EXAMPLE_INPUTS = HookPoint(EVAL_FRAMES, "_get_or_add_example_inputs")
#: Finds the first guard that fails: of an entry at a recompile, and of code that was compiled ahead of time.
GUARDS_COMPARED = HookPoint(GUARDS, "GuardManagerWrapper.check_verbose")

_READ = (
    *fields(EVAL_FRAMES, "DynamoStance", "stance", "skip_guard_eval_unsafe"),
    *fields("torch._dynamo.aot_compile", "AOTCompiledFunction", "_artifacts"),
    *fields("torch._dynamo.aot_compile", "CompileArtifacts", "original_code"),
)

#: What the hooks read.
declare_parameters(
    {CALLBACK_OF_STANCE: "callback", TENSOR_SEARCH: "frame", EXAMPLE_INPUTS: "frame", GUARDS_COMPARED: "self x"}
)


@dataclass(frozen=True)
class AheadEntry:
    """Code that was compiled ahead of time, as if it was an entry."""

    guard_manager: Any
    compile_id: None = None


def was_converted(code: types.CodeType) -> bool:
    """True if torch has compiled a code object, or tried to, since the last reset."""
    tracker = COMPILED_CODES.find()
    return code in tracker


def is_refusing(depth: int = 8) -> bool:
    """True in the callback of the stance `fail_on_recompile`."""
    return any(is_frame_of(frame, EVAL_FRAMES, "fail_callback") for frame in caller_frames(depth))


def is_module_call(function: Any) -> bool:
    """True for the bound method that calls a module."""
    method = sys.modules["torch"].nn.Module.__call__
    return isinstance(function, types.MethodType) and function.__func__ is method


def plain_forward(module: Any) -> Any:
    """The method that a call of a module runs with the same arguments; None if hooks can change them."""
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return None if any(getattr(module, kind, None) for kind in kinds) else module.forward


def module_call_codes() -> tuple[types.CodeType, ...]:
    """The code of a module's call, outermost first."""
    module = sys.modules["torch"].nn.Module
    return module._wrapped_call_impl.__code__, module._call_impl.__code__


def refused_ahead(depth: int = 8) -> types.CodeType | None:
    """The function that was compiled ahead of time and whose guards are compared in this thread; None if none is."""
    for frame in caller_frames(depth):
        if frame.f_globals.get("__name__") == AOT_COMPILE.module:
            artifacts = getattr(frame.f_locals.get("self"), "_artifacts", None)
            return getattr(artifacts, "original_code", None)
    return None
