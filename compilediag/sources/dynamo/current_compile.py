"""Whose compile it is that runs in this thread: the columns that say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...recording import Recorder
from .. import _compat

CODE = ("function", "file", "line")
#: What the recorder knows of a compile, by compile id.
Frames = Mapping[str, Mapping[str, Any]]


def code_of(compile_id: str | None, frames: Frames) -> dict[str, Any]:
    """function, file and line of a compile, None where they are not known."""
    frame = frames.get(compile_id or "", {})
    return {name: frame.get(name) for name in CODE}


def whose(recorder: Recorder, compile_id: str | None = None) -> dict[str, Any]:
    """compile_id, function, file and line of a compile; by default of the one that runs."""
    found = compile_id or _compat.current_compile_id()
    return {"compile_id": found, **code_of(found, recorder.frames)}
