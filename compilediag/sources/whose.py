"""Whose compile it is that runs in this thread: the columns that say so."""

from __future__ import annotations

from typing import Any

from ..recorder import Recorder
from . import _compat

CODE = ("function", "file", "line")


def whose(recorder: Recorder, compile_id: str | None = None) -> dict[str, Any]:
    """compile_id, function, file and line of a compile, None where they are not known; by default of the current."""
    found = compile_id or _compat.current_compile_id()
    frame = recorder.frames.get(found or "", {})
    return {"compile_id": found, **{name: frame.get(name) for name in CODE}}
