"""What torch does about a compile that fails: it raises the exception, or runs the function uncompiled."""

from __future__ import annotations

from collections.abc import Sequence
from types import FrameType
from typing import Any, TypedDict

from ..hooks.caller_frames import caller_frames
from .torch_api import compiles_frame, get_setting, has_own_limit, is_conversion

#: Frames between the hook on the metrics and those that convert the function.
DEPTH = 40
_BREAK, _LIMIT_RAISED = "Unsupported", "FailOnRecompileLimitHit"


class FailureColumns(TypedDict):
    """The columns of a failed compile that torch's metrics lack."""

    on_failure: str
    limit: str | None
    limit_value: int | None
    limit_argument: bool | None


def read_failure(fail_type: str) -> FailureColumns | None:
    """What torch does about the failure whose metrics it records in this thread; None outside of a conversion.

    The frame that compiles is called by one that raises whatever it gets (`fullgraph=True`), and that one, without
    fullgraph, by one that runs the function uncompiled after some exceptions.
    """
    frames = [frame for frame in caller_frames(DEPTH) if is_conversion(frame)]
    if not frames or not compiles_frame(frames[0]):
        return None
    local = frames[0].f_locals
    is_hit = bool(local.get("exceeded"))
    limit = local.get("limit_type") if is_hit else None
    return {
        "on_failure": _find_handling(fail_type, local, frames[1:]),
        "limit": limit,
        "limit_value": get_setting(limit) if limit else None,
        "limit_argument": _is_argument(frames[1:2]) if limit == "recompile_limit" else None,
    }


def _find_handling(fail_type: str, local: dict[str, Any], callers: Sequence[FrameType]) -> str:
    if local.get("one_graph"):
        is_hit = fail_type == _LIMIT_RAISED and not get_setting("fail_on_recompile_limit_hit")
        return "fullgraph" if fail_type == _BREAK or is_hit else "raised"
    is_soft = fail_type in _list_soft(callers)
    if getattr(local.get("convert_frame_box"), "error_on_graph_break", False):
        return "error_on_graph_break" if is_soft else "raised"
    return "eager" if is_soft or get_setting("suppress_errors") else "raised"


def _list_soft(callers: Sequence[FrameType]) -> tuple[str, ...]:
    """The exceptions after which torch runs a function uncompiled: since 2.13 also those of wrong use."""
    handlers = [frame.f_code.co_names for frame in callers if "suppress_errors" in frame.f_code.co_names]
    return (_BREAK, "UserError") if any("UserError" in names for names in handlers) else (_BREAK,)


def _is_argument(callers: Sequence[FrameType]) -> bool:
    """True if `torch.compile(recompile_limit=...)` set the limit."""
    return any(has_own_limit(frame.f_locals.get("self")) for frame in callers)
