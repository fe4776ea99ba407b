"""What the structured trace needs of torch: its numbers for the names of files, and where a compile was asked for."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

from . import frames, member

#: Frames that are looked at; of a deeper stack the innermost.
MAX_DEPTH = 1_000
#: Code objects of frames, and how far each has come in it: which line that is takes longer to find out than all else
#: here. Two lists and not one of pairs, of which each would count towards Python's next garbage collection.
Places = tuple[list[types.CodeType], list[int]]
#: Record -> its field -> the variable that torch makes it from, in the function that gives the record's fields.
_VARIABLES = {
    "create_symbol": {"symbol": "sympy_expr", "val": "val", "vr": "range_str", "source": "source"},
    "create_unbacked_symbol": {"symbol": "symbol", "vr": "vr"},
    "symbolic_shape_specialization": {"symbol": "a", "value": "tgt", "reason": "msg", "user_stack": "user_tb"},
    "guard_added_fast": {"expr": "g"},
}


def intern_table() -> dict[str, int]:
    """Names of files -> torch's numbers for them, which count from 0 in the order of the table."""
    return vars(member("torch._logging.structured", "INTERN_TABLE"))["INTERN_TABLE"]


def built(metadata: Callable[[], Any], table: dict[str, int]) -> tuple[Any, dict[int, str]]:
    """A record's fields as torch would log them, and the names that its numbers stand for.

    The names that it put into `table` are taken out again: a log that begins later tells each name once, at its
    first use.
    """
    before = len(table)
    try:
        told = metadata()
        return told, dict(enumerate(table))
    finally:
        while len(table) > before:
            table.popitem()


def variables(kind: str, metadata: Callable[[], Any]) -> dict[str, Any] | None:
    """What a record is to be made from, field by field, and the user's stack. None where torch keeps it elsewhere:
    then `built` gives the record as torch does.

    torch's own way takes 2 ms a record beside a compile, to look up the lines of all its frames: a quarter of the
    compile if shapes are dynamic.
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
        found["user_stack"] = sys.modules["torch._guards"].TracingContext.extract_stack()
    return found


def tracing_frames() -> Places:
    """The frames around the record that torch writes now, the outermost first, without those that write it."""
    return _around("trace_structured", None)


def callers() -> Places:
    """The frames around the call that dynamo compiles, the outermost first. torch's own dynamo_start tells the same,
    but leaves out the innermost callers.
    """
    return _around(None, "torch._dynamo.convert_frame")


def _around(function: str | None, module: str | None) -> Places:
    """This thread's frames around the outermost one of that function, or of that module."""
    codes: list[types.CodeType] = []
    offsets: list[int] = []
    for frame in frames(MAX_DEPTH):
        code = frame.f_code
        if code.co_name == function or (module is not None and frame.f_globals.get("__name__") == module):
            codes.clear()
            offsets.clear()
        else:
            codes.append(code)
            offsets.append(frame.f_lasti)
    return codes[::-1], offsets[::-1]
