"""Begin and end a watch: `watch()` for a block, `start()` and `stop()` for notebooks and REPLs.

One recording runs at a time in a process. A watch inside a watch shares its session; the recording ends
with the outermost one. Hooks go in when it begins and come out when it ends.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from .active_recording import DETAILS, ActiveRecording, begin, end, end_all, find_current, notice
from .session import Session

__all__ = ["DETAILS", "current", "notice", "start", "stop", "stop_all", "watch"]


@contextlib.contextmanager
def watch(
    path: str | os.PathLike[str] | None = None,
    detail: str = "full",
    replays: bool = False,
    calls: bool = False,
    my_code: Sequence[str] = (),
) -> Iterator[Session]:
    """Record every compile in the block; gives the session, which stays readable afterwards.

    `path`: the session's file (`.cdiag`), replaced if it exists; a temporary one if None, which is removed with the
    session; a folder (one that exists, or a name that ends with a slash) in a distributed job, where each rank has
    a file of its own in it and `load(folder)` opens all of them as one session. `detail`: "full", or "lean" for the
    cheap hooks only (no graphs or code are kept, and only the closest earlier entry's failing guards are all found).
    `replays`: count the replays of CUDA graphs too, which adds a microsecond or two to each. `calls`: count and time
    the calls of compiled functions too, on Python 3.12 or later, which adds a few microseconds to each. `my_code`:
    folders, files and names of modules that are your own code; findings name its lines. By default that is all code
    outside of torch, Python's standard library and installed packages. Inside another watch the session is that one's,
    as that one was begun.
    CompilediagError if the path can't be written, the detail is unknown or torch can't be imported.
    """
    session = start(path, detail, replays, calls, my_code)
    try:
        yield session
    except BaseException as error:
        running = find_current()
        if running is not None and running.levels == 1:
            notice(error)
        raise
    finally:
        stop()


def start(
    path: str | os.PathLike[str] | None = None,
    detail: str = "full",
    replays: bool = False,
    calls: bool = False,
    my_code: Sequence[str] = (),
) -> Session:
    """Begin to record; see `watch`. If a recording runs, its session is given and one more `stop()` is needed."""
    asked_for = [name for name, is_asked in (("replays", replays), ("calls", calls)) if is_asked]
    return _session_of(begin(path, detail, asked_for, my_code))


def stop() -> Session | None:
    """End the recording (or one level of it) and take every hook out; the session, None if none ran."""
    ended = end()
    return None if ended is None else _session_of(ended)


def stop_all() -> Session | None:
    """End the recording whatever its levels."""
    ended = end_all()
    return None if ended is None else _session_of(ended)


def current() -> Session | None:
    """The session that records now, or None."""
    running = find_current()
    return None if running is None else _session_of(running)


def _session_of(recording: ActiveRecording) -> Session:
    """The one session that a recording is shown as."""
    if recording.session is None:
        recording.session = Session(recording.data)
    session: Session = recording.session
    return session
