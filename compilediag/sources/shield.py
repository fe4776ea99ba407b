"""Nothing that we raise reaches the host. In tests, `listeners` hear of it and raise it again."""

from __future__ import annotations

from collections.abc import Callable

#: Called with the name of the source and what it raised.
listeners: list[Callable[[str, BaseException], None]] = []


def swallowed(name: str, error: BaseException) -> None:
    """Tell the listeners. Never raises."""
    for listener in listeners:
        listener(name, error)
