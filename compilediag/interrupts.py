"""Work that an interrupt (Ctrl-C) must not leave half done: beginning and ending a watch."""

from __future__ import annotations

import threading
import time
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


def finish_start(thread: threading.Thread) -> None:
    """Complete a start that was interrupted, so that the thread can be joined and the interpreter forgets it.

    The interrupt may have come after the thread itself began; then the thread has an identifier soon.
    """
    end = time.monotonic() + 1
    while thread.ident is None and time.monotonic() < end:
        time.sleep(0.01)
    if thread.ident is None:
        thread.start()
    elif not thread.is_alive():
        time.sleep(0.01)
