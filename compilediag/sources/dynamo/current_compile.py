"""The compile attempt that runs in this thread, and the columns that name it in a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...recording import Recorder
from .compile_keys import CompileKeys

#: The columns of a function.
FUNCTION = ("function", "file", "line")
#: What the recorder knows about attempts, by compile key: function, file, line, backend, attempt, stack.
Frames = Mapping[str, Mapping[str, Any]]


def compile_keys(recorder: Recorder) -> CompileKeys:
    """The keys of a recording's attempts, which all of its sources share."""
    keys: CompileKeys = recorder.shared.get("compile_keys") or recorder.shared.setdefault("compile_keys", CompileKeys())
    return keys


def function_columns(compile_key: str | None, frames: Frames) -> dict[str, Any]:
    """function, file and line of an attempt; None where they are not known."""
    frame = frames.get(compile_key or "", {})
    return {name: frame.get(name) for name in FUNCTION}


def compile_columns(recorder: Recorder, compile_id: Any) -> dict[str, Any]:
    """compile_id, compile_key, function, file and line of the attempt that a CompileId object belongs to."""
    key = compile_keys(recorder).find(compile_id)
    text = None if compile_id is None else str(compile_id)
    return {"compile_id": text, "compile_key": key, **function_columns(key, recorder.frames)}


def current_columns(recorder: Recorder) -> dict[str, Any]:
    """compile_id, compile_key, function, file and line of the attempt that runs in this thread; None outside of one."""
    compile_id, key = compile_keys(recorder).current()
    return {"compile_id": compile_id, "compile_key": key, **function_columns(key, recorder.frames)}
