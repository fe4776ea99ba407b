"""The log of code that runs inside the user's program: nothing that logging raises leaves it."""

from __future__ import annotations

import logging

from .interrupts import ignore

_LOGGER = logging.getLogger("compilediag")


def warning(text: str, *args: object) -> None:
    """Warn, as `logging.Logger.warning`."""
    _log(logging.WARNING, text, args)


def debug(text: str, *args: object) -> None:
    """Note a detail, as `logging.Logger.debug`."""
    _log(logging.DEBUG, text, args)


def _log(level: int, text: str, args: tuple[object, ...]) -> None:
    # There may be no memory for the message, or a handler of the program raises.
    with ignore(Exception):
        _LOGGER.log(level, text, *args, stacklevel=3)
