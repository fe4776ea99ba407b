"""The thread in which a hook runs: its stack, and state of its own."""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Generic, Protocol, TypeVar


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


class HasThreads(Protocol):
    """An object with attributes that are `PerThread`; `per_thread` has their values."""

    per_thread: threading.local


class PerThread(Generic[Value]):
    """An attribute with one value per thread, created by `create` when a thread first reads it. It goes when the thread
    ends; when it is deleted, the next read creates it anew.
    """

    def __init__(self, create: Callable[[], Value]):
        self._create = create

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: HasThreads, cls: type) -> Value:
        values = owner.per_thread.__dict__
        try:
            value: Value = values[self._name]
        except KeyError:
            value = values[self._name] = self._create()
        return value

    def __set__(self, owner: HasThreads, value: Value) -> None:
        owner.per_thread.__dict__[self._name] = value

    def __delete__(self, owner: HasThreads) -> None:
        owner.per_thread.__dict__.pop(self._name, None)
