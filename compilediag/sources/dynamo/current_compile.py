"""The compile attempt that runs in this thread, and the columns that name it in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...recording import Recorder
from ..hooks.columns import FunctionColumns, OwnerColumns
from .compile_keys import CompileKeys

#: What the recorder knows about attempts, by compile key: function, file, line, backend, attempt, stack.
Frames = Mapping[str, Mapping[str, Any]]


def compile_keys(recorder: Recorder) -> CompileKeys:
    """The keys of a recording's attempts, which all of its sources share."""
    keys: CompileKeys = recorder.shared.get("compile_keys") or recorder.shared.setdefault("compile_keys", CompileKeys())
    return keys


def function_columns(compile_key: str | None, frames: Frames) -> FunctionColumns:
    """function, file and line of an attempt; None where they are not known."""
    frame = frames.get(compile_key or "", {})
    return {"function": frame.get("function"), "file": frame.get("file"), "line": frame.get("line")}


def compile_columns(recorder: Recorder, compile_id: Any) -> OwnerColumns:
    """compile_id, compile_key, function, file and line of the attempt that a CompileId object belongs to."""
    key = compile_keys(recorder).find(compile_id)
    text = None if compile_id is None else str(compile_id)
    return {"compile_id": text, "compile_key": key, **function_columns(key, recorder.frames)}


def current_columns(recorder: Recorder) -> OwnerColumns:
    """compile_id, compile_key, function, file and line of the attempt that runs in this thread; None outside of one."""
    compile_id, key = compile_keys(recorder).current()
    return {"compile_id": compile_id, "compile_key": key, **function_columns(key, recorder.frames)}
