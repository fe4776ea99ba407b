"""Nothing that we raise reaches the host. In tests, `listeners` hear of it and raise it again."""

from __future__ import annotations

from collections.abc import Callable

#: Called with the name of the source and what it raised.
listeners: list[Callable[[str, BaseException], None]] = []


def told(error: BaseException) -> str:
    """An error in one line, even if its own text can't be had."""
    try:
        text = " ".join(str(error).split())
    except Exception as worse:
        text = f"(its text raised {type(worse).__name__})"
    return f"{type(error).__name__}: {text}"


def columns(error: BaseException | None, longest: int | None = None) -> dict[str, str]:
    """What a row says of an error: its text, of at most `longest` characters, and its type; nothing without one."""
    return {} if error is None else {"reason": told(error)[:longest], "exception_type": type(error).__name__}


def swallowed(name: str, error: BaseException) -> None:
    """Tell the listeners. Never raises."""
    for listener in listeners:
        listener(name, error)
