"""Call stacks, told once: each frame is a row with the key of the frame around it, and a stack is the key of its last.

Keys are made of what a stack consists of, so that the same stack has the same key in every process and every session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ...events import StackFrame
from .stacks import is_torch_file

#: Frames that are remembered as told; one that is forgotten is told again under the same key.
MAX_KNOWN = 100_000
#: Frames of one stack; of a deeper one the innermost.
MAX_DEPTH = 400


class Frame(NamedTuple):
    """One frame of a stack."""

    file: str | None
    line: int | None
    function: str | None
    code: str | None = None


class CallStacks:
    """Gives stacks their keys, and the frames that were not told yet as events."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, str | None, int | None, str | None], str] = {}

    def add(self, frames: Iterable[Frame], time_ns: int) -> tuple[str | None, list[StackFrame]]:
        """The key of a stack, given from the outermost frame on, and its new frames. None of an empty stack."""
        if len(self._known) > MAX_KNOWN:
            self._known.clear()
        key: str | None = None
        fresh = []
        for frame in list(frames)[-MAX_DEPTH:]:
            caller, place = key, (key, frame.file, frame.line, frame.function)
            known = self._known.get(place)
            key = known or hashlib.md5(repr(place).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]
            if known is None:
                self._known[place] = key
                code = None if frame.file is None or is_torch_file(frame.file) else frame.code
                told = {**frame._asdict(), "code": code}
                fresh.append(StackFrame(time_ns=time_ns, stack=key, caller=caller, **told))
        return key, fresh


def logged_frames(stack: Any, names: Mapping[int, str]) -> list[Frame]:
    """A stack as torch logs it, the outermost frame first; `names` are the files behind its numbers."""
    told = [each for each in stack if isinstance(each, Mapping)] if isinstance(stack, list) else []
    return [_logged(each, names) for each in told]


def _logged(told: Mapping[str, Any], names: Mapping[int, str]) -> Frame:
    file, line, function, code = (told.get(name) for name in ("filename", "line", "name", "loc"))
    return Frame(
        names.get(file) if isinstance(file, int) else _text(file),
        line if type(line) is int else None,
        _text(function),
        _text(code),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def user_frame_of(*stacks: list[Frame]) -> Frame | None:
    """The innermost frame outside torch, of the first stack that has one."""
    for frames in stacks:
        for frame in reversed(frames):
            if frame.file is not None and not is_torch_file(frame.file):
                return frame
    return None
