"""Work that an interrupt (Ctrl-C) must not leave half done: beginning and ending a watch."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


def finish(work: Callable[[], Result]) -> Result:
    """Call `work`, which goes on where it was if it is called again; if an interrupt ends it, call it again.

    The interrupt is raised when the work is done.
    """
    try:
        return work()
    except Exception:
        raise
    except BaseException:
        work()
        raise
