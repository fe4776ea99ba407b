"""The thread in which a hook runs: its stack, and state of its own."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Generic, TypeVar


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


Value = TypeVar("Value")


class PerThread(Generic[Value]):
    """One value per thread, created by `create` when a thread first asks. It goes when the thread ends."""

    def __init__(self, create: Callable[[], Value]):
        self._create = create
        self._local = threading.local()

    def get(self) -> Value:
        """This thread's value."""
        try:
            value: Value = self._local.value
        except AttributeError:
            value = self._local.value = self._create()
        return value

    def set(self, value: Value) -> None:
        self._local.value = value

    def forget(self) -> None:
        """Let the next `get` create this thread's value anew."""
        self._local.__dict__.clear()

    def take(self) -> Value:
        """This thread's value, which the next `get` creates anew."""
        value = self.get()
        del self._local.value
        return value
