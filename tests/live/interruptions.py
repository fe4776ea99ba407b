"""Raises an interrupt at one line after the other of what runs in a watch, and looks for what is left."""

import contextlib
import dis
import gc
import logging
import os
import signal
import sys
import threading
from pathlib import Path

import compilediag as cd
from tests import inside

PACKAGE = str(Path(cd.__file__).parent)
#: Where Python itself takes a lock one line before the `try` that releases it, or is half done with an import.
PYTHONS_GAPS = (logging.__file__, threading.__file__, "<frozen importlib")
#: Where compilediag's own lines are, and any lines.
OWN, ANY = (PACKAGE,), ("",)
#: When to interrupt at a line that runs often: in the middle, so that some hooks are in place, or each time.
MIDDLE, EACH = "middle", "each"


class TooLate(TimeoutError):
    """What a signal handler raises that limits the time of something."""


def handle_timeout(number, frame):
    raise TooLate("the time is over")


def handle_timeout_without_arguments(number, frame):
    del number, frame
    raise TooLate("the time is over")


def press_key():
    raise KeyboardInterrupt


def time_out(handler=handle_timeout):
    """Let a signal come now, whose handler raises."""
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def raise_in_trace_function():
    raise TooLate


class Interrupter:
    """Traces a call and raises at the given place: (file, line, how often it has run before)."""

    def __init__(self, files, target=None, strike=press_key):
        self.files = files
        self.target = target
        self.strike = strike
        self.runs = {}
        self.has_raised = False

    def trace(self, frame, event, argument):
        name = frame.f_code.co_filename
        if not name.startswith(self.files) or name.startswith(PYTHONS_GAPS) or name == __file__:
            return None
        if frame.f_code.co_name == "__del__":
            return None  # Python prints what is raised there, and goes on.
        return self.trace_line

    def trace_line(self, frame, event, argument):
        if event == "line" and not self.has_raised and not is_leaving_with(frame):
            line = frame.f_code.co_filename, frame.f_lineno
            count = self.runs[line] = self.runs.get(line, -1) + 1
            if (*line, count) == self.target:
                self.has_raised = True
                sys.settrace(None)
                self.stack = [(each.f_code.co_filename, each.f_code.co_name) for each in walk(frame)]
                self.strike()
        return self.trace_line

    def call(self, function):
        """Call it; true if an interrupt came out."""
        before = sys.gettrace()
        sys.settrace(self.trace)
        try:
            self.result = function()  # Held: nothing is finalized while it is traced.
        except (KeyboardInterrupt, TooLate):
            return True
        finally:
            sys.settrace(before)
        return False

    def places(self, times):
        """The places that a call passed."""
        if times == MIDDLE:
            return [(*line, last // 2) for line, last in self.runs.items()]
        return [(*line, n) for line, last in self.runs.items() for n in range(last + 1)]


def walk(frame):
    while frame is not None:
        yield frame
        frame = frame.f_back


def is_leaving_with(frame):
    """True where a `with` statement calls `__exit__`: Python handles no signal between its body and that call."""
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == dis.opmap["LOAD_CONST"] and code[at : at + 6] == code[at : at + 2] * 3


def find_places(prepare, function, clean_up, files, times):
    """The places that `function` passes, once `prepare` was called."""
    prepare()
    with collection_off():
        interrupter = Interrupter(files)
        interrupter.call(function)
    clean_up()
    return interrupter.places(times)


@contextlib.contextmanager
def collection_off():
    """No search for garbage, whose callbacks would run, and swallow the interrupt, at any line."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def interrupt(place, prepare, function, files, strike=press_key):
    """Call `function` and interrupt it at a place; what happened: "raised", "swallowed" or "not reached"."""
    prepare()
    with collection_off():
        interrupter = Interrupter(files, place, strike)
        has_raised = interrupter.call(function)
    if not interrupter.has_raised:
        return "not reached"
    return "raised" if has_raised else "swallowed"


class World:
    """Everything outside of compilediag that a watch changes while it runs."""

    def __init__(self, folder):
        self.folder = folder
        with cd.watch():
            found = inside.list_places()
        self.originals = {place: vars(place[0])[place[1]] for place in found}
        gc.collect()
        gc.freeze()  # Later searches for garbage leave torch out.
        self.before = self.read()

    def read(self):
        trace = logging.getLogger("torch.__trace")
        caches = logging.getLogger("torch._inductor.codecache")
        monitoring = getattr(sys, "monitoring", None)
        return {
            "hooks": inside.list_hooks(),
            "recordings": inside.list_recordings(),
            "sources": inside.list_watching(),
            "finders": list(sys.meta_path),
            "handlers": (type(trace.handlers), list(trace.handlers), list(trace.filters), list(caches.filters)),
            "caches": len(sys.modules["torch._inductor.utils"]._registered_caches),
            "monitoring": [monitoring.get_tool(tool) for tool in range(6)] if monitoring else [],
            "threads": sorted(thread.name for thread in threading.enumerate()),
            "environment": dict(os.environ),
            "files": sorted(path.name for path in self.folder.iterdir()),
            "descriptors": sorted(filter(None, map(read_link, os.listdir("/proc/self/fd")))),
            "locks": [is_free(lock) for lock in (*inside.list_locks(), logging._lock)],
        }

    def list_leftovers(self):
        """What is not as it was before the first watch."""
        now = self.read()
        if now != self.before:
            gc.collect()  # A traceback refers to itself.
            now = self.read()
        changed = [f"{name}: {now[name]}" for name in now if now[name] != self.before[name]]
        patched = [name for (owner, name), original in self.originals.items() if vars(owner)[name] is not original]
        return changed + [f"patched: {name}" for name in patched]


def read_link(number):
    """The file that a descriptor is open on; None for the folder that is listed now."""
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/self/fd/{number}")
    return None


def is_free(lock):
    """True if another thread can take a lock."""
    taken = []

    def take():
        taken.append(lock.acquire(timeout=300))
        if taken[0]:
            lock.release()

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return taken[0]
