"""What counting calls needs of Dynamo: the code that it runs for a call. Read in torch 2.11.0 and 2.13.0."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from . import member, metrics_module
from .dynamo_caches import CONVERT, EVAL_FRAME, code_columns, conversion_result, converted_code, entries_of
from .states import compiled_codes

__all__ = ["code_columns", "compiled_codes", "conversion_result", "converted_code", "entries_of", "metrics_module"]


def need() -> None:
    """Unavailable if one of the places that are used here is missing."""
    conversion_result()
    metrics_module()
    member(CONVERT, "input_codes")
    for name in ("_debug_get_cache_entry_list", "get_eval_frame_callback", "set_code_exec_strategy"):
        member(EVAL_FRAME, name)
    for name in ("FrameExecStrategy", "FrameAction"):
        member("torch._dynamo.types", name)


def frame_callback() -> Callable[[], Any]:
    """The function that gives what Dynamo does with the frames of this thread: None outside of torch.compile, False
    where it runs what is compiled and compiles nothing more.
    """
    return sys.modules[EVAL_FRAME].get_eval_frame_callback


def leave_alone(function: types.MethodType) -> None:
    """Dynamo shall run this function of ours as it is, also where it would compile all that is called."""
    kinds = sys.modules["torch._dynamo.types"]
    strategy = kinds.FrameExecStrategy(kinds.FrameAction.SKIP, kinds.FrameAction.DEFAULT)
    sys.modules[EVAL_FRAME].set_code_exec_strategy(function.__func__.__code__, strategy)


def most_entries() -> int:
    """The number of entries after which nothing more is compiled for a code object."""
    return int(sys.modules["torch._dynamo.config"].recompile_limit)
