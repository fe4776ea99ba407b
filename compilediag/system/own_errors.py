"""compilediag's own errors: caught, counted, logged and shown, and never raised in the user's program."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypedDict

from .interrupts import ignore, pass_on

_LOGGER = logging.getLogger("compilediag")
#: Called with the name of the source and its error. Tests raise it again.
listeners: list[Callable[[str, BaseException], None]] = globals().get("listeners", [])


class ErrorColumns(TypedDict, total=False):
    """What went wrong; no columns if nothing did."""

    reason: str | None
    exception_type: str | None


def describe_error(error: BaseException) -> str:
    """An error in one line, even if its own text fails."""
    try:
        text = " ".join(str(error).split())
    except Exception as worse:
        pass_on(worse)
        text = f"(its text raised {type(worse).__name__})"
    return f"{type(error).__name__}: {text}"


def error_columns(error: BaseException | None, longest: int | None = None) -> ErrorColumns:
    """The columns of an error: its text, at most `longest` characters, and its type; none without an error."""
    if error is None:
        return {}
    return {"reason": describe_error(error)[:longest], "exception_type": type(error).__name__}


def run_each(steps: Iterable[Callable[[], object]]) -> None:
    """Call every step. The first error that one raises is raised when all were called; an interrupt at once."""
    errors: list[Exception] = []
    for step in steps:
        try:
            step()
        except Exception as error:
            pass_on(error)
            errors.append(error)
    if errors:
        raise errors[0]


def report(name: str, error: BaseException) -> None:
    """Call the listeners. Never raises in production, where there are none."""
    for listener in listeners:
        listener(name, error)


def log_warning(text: str, *args: object) -> None:
    """Warn, as `logging.Logger.warning`."""
    _log(logging.WARNING, text, args)


def log_debug(text: str, *args: object) -> None:
    """Note a detail, as `logging.Logger.debug`."""
    _log(logging.DEBUG, text, args)


def _log(level: int, text: str, args: tuple[object, ...]) -> None:
    # There may be no memory for the message, or a handler of the program raises.
    with ignore(Exception):
        _LOGGER.log(level, text, *args, stacklevel=3)
