"""The stack of the thread in which a hook runs."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator
from types import FrameType


def caller_frames(depth: int) -> Iterator[FrameType]:
    """The frames above the function that asks, innermost first, at most `depth`."""
    frame = sys._getframe(1).f_back
    while frame is not None and depth > 0:
        yield frame
        frame, depth = frame.f_back, depth - 1


def is_torch_file(file: str) -> bool:
    """True for a file of the installed torch."""
    return file.startswith(_find_torch_folder())


@functools.cache
def _find_torch_folder() -> str:
    return os.path.dirname(str(sys.modules["torch"].__file__)) + os.sep
