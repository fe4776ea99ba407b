"""Runs at the start of each Python that a test starts: it looks for garbage less often, and not in what torch imports.

Importing torch makes 400,000 objects. To look through them again and again, and once more at the end, takes a second of
each process.
"""

import atexit
import gc
import sys


def freeze() -> None:
    """Keep what is there out of the last search, but not triton 3.9: it would print what that search did not free."""
    if "triton" not in sys.modules:
        gc.freeze()


gc.set_threshold(100_000, 50, 100)
atexit.register(freeze)
