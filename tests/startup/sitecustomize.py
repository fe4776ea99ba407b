"""Runs at the start of each Python that a test starts: it looks for garbage less often, and ends without torch's part.

Importing torch makes 400,000 objects. To look through them again and again, and once more at the end, takes a second of
each process; to destroy them and what is static in torch's libraries takes half a second, most of all in a fork.
"""

import atexit
import ctypes
import gc
import os
import sys

#: Packages whose modules stay as they are at the end.
KEPT = {"IPython", "functorch", "mpmath", "networkx", "numpy", "pandas", "sympy", "torch"}


def end_sooner() -> None:
    """Keep what is there out of the last search, but not triton 3.9: it would print what that search did not free.

    Modules of compilediag and of the program end as ever, and files are flushed.
    """
    if "triton" not in sys.modules:
        gc.freeze()
    if "torch" in sys.modules and sys.platform == "linux":
        kept = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in KEPT}
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
        libc = ctypes.CDLL(None)
        libc.on_exit(libc._exit, None)
        libc.__cxa_atexit(libc.fflush, None, None)  # runs before it


gc.set_threshold(100_000, 50, 100)
atexit.register(end_sooner)
if "COMPILEDIAG_TEST_SERVER" in os.environ:
    from tests.program_server import stand_for_fork

    stand_for_fork()
