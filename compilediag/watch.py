"""Begin and end a watch: `watch()` for a block, `start()` and `stop()` for notebooks and REPLs.

One recording runs at a time in a process. A watch inside a watch shares its session; the recording ends
with the outermost one. Hooks go in when it begins and come out when it ends.
"""

from __future__ import annotations

import contextlib
import operator
import os
from collections.abc import Sequence
from typing import Any

from .console import Console, ConsoleLine, IncidentWarnings
from .errors import CompilediagError
from .recording.active_recording import (
    DETAILS,
    ActiveRecording,
    WarmupOptions,
    begin,
    end,
    end_all,
    find_current,
    notice,
)
from .recording.recorder import Turn, listen
from .session import Session

__all__ = ["DETAILS", "Turn", "current", "listen", "notice", "start", "step", "stop", "stop_all", "watch"]


def watch(
    path: str | os.PathLike[str] | None = None,
    detail: str = "full",
    replays: bool = False,
    calls: bool = False,
    my_code: Sequence[str] = (),
    warmup_steps: int | None = None,
    on_compile: str = "count",
    console: Console = False,
    tracing: bool = False,
) -> Watch:
    """Record every compile in the block; gives the session, which stays readable afterwards.

    Inside another watch the session is that one's, as that one was begun. A disk that fails costs the session and never
    the program: its state is "lost" then, and `sources` has the reason.

    Args:
        path: the session's file (`.cdiag`), replaced if it exists; None for a temporary one, which is removed with the
            session. In a distributed job, a folder (one that exists, or a name that ends with a slash): each rank has a
            file of its own in it, and `load(folder)` opens all of them as one session.
        detail: "full", or "lean" for the cheap hooks only: no graphs or code are kept, and all failing guards are found
            only for the latest entry.
        replays: also count the replays of CUDA graphs, which adds 1 to 2 µs to each.
        calls: also count and time the calls of compiled functions, which adds 2 to 5 µs to each. Python 3.12 or later.
            One check of each entry's guards is timed when the entry is made, with any Python.
        my_code: folders, files and names of modules that are your own code; findings name its lines. By default all
            code outside of torch, Python's standard library and installed packages.
        warmup_steps: so many calls of `step` are warm-up; the next one ends it, as `session.end_warmup` does.
        on_compile: what happens when something compiles after these steps: "count", "warn" or "raise".
        console: show a line on stderr while something compiles for more than a second; it ends with the seconds.
            Nothing is shown if stderr is not a terminal, unless it is "always".
        tracing: also time each function that Dynamo traces. It puts one more frame of Python's on the stack for each
            function that is inlined into another, so a program at the limit of recursion reaches it earlier.

    Raises:
        CompilediagError: no session can be at the path, an option is unknown or torch can't be imported.
    """
    return Watch(path, detail, replays, calls, my_code, warmup_steps, on_compile, console, tracing)


class Watch(contextlib.ContextDecorator):
    """What `watch()` returns: a context manager that gives the session, and a decorator."""

    #: What names this watch among those that run; None when it has ended.
    _level: object | None = None

    def __init__(self, *options: Any):
        self._options = options

    def _recreate_cm(self) -> Watch:
        return Watch(*self._options)  # A decorated function may call itself.

    def __enter__(self) -> Session:
        if self._level is not None:
            raise CompilediagError("this watch has begun already; call watch() again for another one")
        self._level = level = object()
        try:
            return _start(level, *self._options)
        except BaseException:
            self._level = None
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            running = find_current()
            if error is not None and running is not None and running.levels == [self._level]:
                notice(error)
        finally:
            self._end()

    def __del__(self) -> None:
        # An interrupt (Ctrl-C) between the last line of the block and the first of `__exit__`.
        self._end()

    def _end(self) -> None:
        if self._level is not None:
            end(self._level)
            self._level = None


def start(
    path: str | os.PathLike[str] | None = None,
    detail: str = "full",
    replays: bool = False,
    calls: bool = False,
    my_code: Sequence[str] = (),
    warmup_steps: int | None = None,
    on_compile: str = "count",
    console: Console = False,
    tracing: bool = False,
) -> Session:
    """Begin to record, as `watch` does. If a recording runs, its session is given and one more `stop()` is needed."""
    return _start(object(), path, detail, replays, calls, my_code, warmup_steps, on_compile, console, tracing)


def _start(
    level: object,
    path: str | os.PathLike[str] | None,
    detail: str,
    replays: bool,
    calls: bool,
    my_code: Sequence[str],
    warmup_steps: int | None,
    on_compile: str,
    console: Console,
    tracing: bool,
) -> Session:
    """Begin to record. Whatever ends this early, Ctrl-C included, nothing of it stays."""
    try:
        on_request = (("replays", replays), ("calls", calls), ("guard_checks", calls), ("tracing", tracing))
        asked_for = [name for name, is_asked in on_request if is_asked]
        warmup = WarmupOptions(warmup_steps, on_compile)
        told = (IncidentWarnings(), *((ConsoleLine(console == "always"),) if console else ()))
        return _session_of(begin(path, detail, asked_for, my_code, level, warmup, told))
    except BaseException:
        end(level)
        raise


def step(n: int | None = None) -> None:
    """The program begins a step: of a training, a request of a server. What is recorded from here on has its number.

    Call it at the beginning of each step, outside of compiled functions. Without a watch it does nothing. Steps are
    those of the process, whatever the thread.

    Args:
        n: number of the step; by default the one after the last, counted from 0.
    """
    running = find_current()
    if running is not None:
        running.begin_step(None if n is None else operator.index(n))


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
