"""State that each thread has for itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

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
