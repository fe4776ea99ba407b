"""Frames as the decoders take them. It is the writer's thread that makes them: reading a line opens a file."""

from __future__ import annotations

import functools
import linecache
import os
import types
from typing import Any

from ...decode.call_stacks import CallStacks, Frame, is_torch_file
from ...decode.records.shape_records import TracedRecords
from ...recording import Made
from .._compat import source_name
from .._compat.tracing import Places

#: Frames of our hooks are nobody's.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def called_from(stacks: CallStacks, frame: dict[str, Any], own: types.CodeType, around: Places, time_ns: int) -> Made:
    """Notes the key of a compile's call stack with what is known of its function; gives the frames that are new."""
    told = [*placed(around), Frame(own.co_filename, own.co_firstlineno, own.co_name)]
    frame["stack"], fresh = stacks.add(told, time_ns)
    return fresh


def shape_events(
    traced: TracedRecords, kind: str, found: dict[str, Any], around: Places, compile_id: str | None, time_ns: int
) -> Made:
    """The events of a record that torch did not write, from what it would have been made of."""
    user = [Frame(each.filename, each.lineno, each.name, each.line) for each in found.pop("user_stack") or ()]
    told = {name: _TEXTS.get(name, str)(value) for name, value in found.items() if value is not None}
    return traced.events(kind, told, {}, compile_id, time_ns, (user, placed(around)))


def placed(around: Places) -> list[Frame]:
    return [_frame(code, at) for code, at in zip(*around, strict=True) if not code.co_filename.startswith(_OWN)]


@functools.lru_cache(10_000)
def _frame(code: types.CodeType, at: int) -> Frame:
    file = code.co_filename
    line = next((line for begin, end, line in code.co_lines() if begin <= at < end), None)
    text = "" if line is None or is_torch_file(file) else linecache.getline(file, line)
    return Frame(file, line, code.co_name, text.strip() or None)


def _range(told: Any) -> str:
    return told if isinstance(told, str) else f"[{told.lower}, {told.upper}]"


#: Field -> how torch writes it, where that is not `str`.
_TEXTS = {
    "vr": _range,
    "val": repr,
    "value": repr,
    "source": source_name,
    "sources": lambda sources: [source_name(source) for source in sources],
}
