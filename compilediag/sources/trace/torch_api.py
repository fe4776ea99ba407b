"""Private names of torch's structured trace. Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0."""

from __future__ import annotations

import logging
import sys
import types
from collections.abc import Callable
from typing import Any

from ..hooks.caller_frames import caller_frames
from ..hooks.torch_names import TorchName, fields

#: The logger of the structured trace. It feeds any handler, without a variable set.
TRACE_LOGGER = TorchName("torch._logging._internal", "trace_log")
#: Names of files -> torch's numbers for them, which count from 0 in the order of the table.
FILE_NAMES = TorchName("torch._logging.structured", "INTERN_TABLE")
TRACING_CONTEXT = TorchName("torch._guards", "TracingContext.extract_stack")
_READ = fields("torch.fx.experimental.symbolic_shapes", "ShapeEnv", "var_to_sources")
#: The function that writes a record.
WRITER = "trace_structured"
#: The function that writes the records of a guard, and how many frames further in we run at most.
_GUARD_WRITER, _NEAR = "_log_guard", 40
#: Record -> its field -> the variable that torch makes it from, in the function that gives the record's fields.
_VARIABLES = {
    "create_symbol": {"symbol": "sympy_expr", "val": "val", "vr": "range_str", "source": "source"},
    "create_unbacked_symbol": {"symbol": "symbol", "vr": "vr"},
    "symbolic_shape_specialization": {"symbol": "a", "value": "tgt", "reason": "msg", "user_stack": "user_tb"},
    "guard_added_fast": {"expr": "g"},
}


def trace_logger() -> logging.Logger:
    TRACE_LOGGER.owner()
    return logging.getLogger("torch.__trace")


def file_names() -> dict[str, int]:
    table: dict[str, int] = FILE_NAMES.find()
    return table


def record_asked_for() -> tuple[str, Callable[[], Any], Callable[[], Any]] | None:
    """The record for which torch asks, three frames up, whether anybody listens: its name, and the functions that give
    its metadata and its payload. None where something else asks.
    """
    caller = sys._getframe(3)
    if caller.f_code.co_name != WRITER:
        return None
    local = caller.f_locals
    name, metadata, payload = local.get("name"), local.get("metadata_fn"), local.get("payload_fn")
    return (name, metadata, payload) if isinstance(name, str) and callable(metadata) and callable(payload) else None


def build_record(metadata: Callable[[], Any], table: dict[str, int]) -> tuple[Any, dict[int, str]]:
    """A record's fields as torch would log them, and the names that its numbers stand for.

    The names that it added to `table` are removed again: a log that starts later has to contain each name once, at
    its first use.
    """
    before = len(table)
    try:
        record = metadata()
        return record, dict(enumerate(table))
    finally:
        while len(table) > before:
            table.popitem()


def read_variables(kind: str, metadata: Callable[[], Any]) -> dict[str, Any] | None:
    """What a record would be built from, field by field, and the user's stack. None if torch keeps it elsewhere: then
    `build_record` gives the record as torch does.

    torch's own way takes 2 ms per record, to look up the lines of all its frames: a quarter of the compile if shapes
    are dynamic.
    """
    names = _VARIABLES.get(kind)
    if names is None or not isinstance(metadata, types.FunctionType):
        return None
    cells = dict(zip(metadata.__code__.co_freevars, metadata.__closure__ or (), strict=True))
    if not cells.keys() >= {*names.values()}:
        return None
    found = {field: cells[name].cell_contents for field, name in names.items()}
    if kind == "symbolic_shape_specialization":
        env = cells["self"].cell_contents if "self" in cells else None
        found["sources"] = list(getattr(env, "var_to_sources", {}).get(found["symbol"], ()))
    else:
        found["user_stack"] = TRACING_CONTEXT.get_loaded()()
    return found


def find_guard_prefix() -> str | None:
    """What torch's log says before a guard: "eval", or "eval [guard suppressed]" where it made no guard.

    torch's short record of a guard leaves this out; the function that writes it is on the stack.
    """
    logging_frames = (frame for frame in caller_frames(_NEAR) if frame.f_code.co_name == _GUARD_WRITER)
    found = next((frame.f_locals.get("prefix") for frame in logging_frames), None)
    return found if isinstance(found, str) else None
