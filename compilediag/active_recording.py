"""The recording that runs in this process: how it begins and ends, is set aside for another one, and survives a fork.

One recording runs at a time. Beginning one while another runs adds a level to it; it ends with its last level.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import site
import sysconfig
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import sources
from .errors import CompilediagError
from .program import META_KEY as PROGRAM
from .program import describe_program
from .recording import Recorder
from .sources.caches.key_history import VARIABLE as HISTORY
from .sources.caches.key_history import program_name
from .storage.data import SessionData
from .storage.run_identity import identify_process
from .storage.session_files import remove_temporary
from .target_file import choose_file
from .version import __version__

DETAILS = ("lean", "full")


@dataclass
class ActiveRecording:
    """A recording that runs. `session` is what the user was given for it, if anything."""

    data: SessionData
    recorder: Recorder
    levels: int = 1
    session: Any = None


_current: ActiveRecording | None = None
#: The recordings that wait until another one has ended; see `record_aside`.
_waiting: list[ActiveRecording] = []
_lock = threading.RLock()


def find_current() -> ActiveRecording | None:
    """The recording that runs now."""
    return _current


def begin(
    path: str | os.PathLike[str] | None, detail: str, asked_for: list[str], my_code: Iterable[str] = ()
) -> ActiveRecording:
    """Begin to record, or add a level to the recording that runs; see `compilediag.watch.watch`."""
    global _current
    if detail not in DETAILS:
        raise CompilediagError(f"detail is {detail!r}: use 'lean' or 'full'")
    with _lock:
        if _current is None:
            _current = _begin(path, detail, asked_for, my_code)
        else:
            _current.levels += 1
        return _current


def end() -> ActiveRecording | None:
    """End one level of the recording, and with the last one take every hook out; None if none runs."""
    with _lock:
        ended = _end_level()
    if ended is not None and ended.levels == 0:
        ended.data.announce_end()
    return ended


def _end_level() -> ActiveRecording | None:
    global _current
    ended = _current
    if ended is None:
        return None
    ended.levels -= 1
    if ended.levels == 0:
        _current = None
        # Only now it is known which device the program uses.
        ended.recorder.facts["device"] = sources.device_name()
        sources.detach()
        ended.data.release()  # The last connection, which is the recorder's, leaves one file behind.
        try:
            ended.recorder.close()
        finally:
            ended.data.reopen()
        ended.data.end_recording()
    return ended


def end_all() -> ActiveRecording | None:
    """End the recording whatever its levels."""
    ended = None
    while _current is not None:
        ended = end()
    return ended


def notice(error: BaseException) -> None:
    """Look at an exception that is about to leave what is watched: a block, a cell, a script."""
    if _current is not None:
        sources.notice(error)


@contextlib.contextmanager
def record_aside(detail: str = "lean") -> Iterator[SessionData]:
    """A recording of its own for the block, whatever else records: that one sees nothing of it and then goes on.

    No watch can begin or end in another thread meanwhile.
    """
    global _current
    with _lock, sources.pause():
        outer, _current = _current, None
        _waiting.extend([outer] if outer else [])
        try:
            with _without_history():
                yield begin(None, detail, []).data
        finally:
            end_all()
            _current = _waiting.pop() if outer else None


@contextlib.contextmanager
def _without_history() -> Iterator[None]:
    """What is recorded aside is no part of the user's history of cache keys."""
    before = os.environ.get(HISTORY)
    os.environ[HISTORY] = "off"
    try:
        yield
    finally:
        os.environ.pop(HISTORY) if before is None else os.environ.update({HISTORY: before})


def _begin(
    path: str | os.PathLike[str] | None, detail: str, asked_for: list[str], my_code: Iterable[str]
) -> ActiveRecording:
    named = _find_named([my_code] if isinstance(my_code, (str, os.PathLike)) else my_code)
    sources.require_torch()
    target = choose_file(path)
    file = target.path
    if target.problem is not None:
        raise CompilediagError(f"{file} can't be written: {target.problem}")
    try:
        recorder = Recorder(file, None if target.is_joined else _meta(detail, asked_for, named), rank=sources.rank)
    except Exception as error:
        raise CompilediagError(f"{file} can't be written: {error}") from None
    data = SessionData(file, recorder.flush)
    if path is None:
        weakref.finalize(data, _remove_own, file, os.getpid())
    try:
        sources.attach(recorder, detail, asked_for)
    except BaseException:
        sources.detach()
        recorder.close()
        raise
    return ActiveRecording(data, recorder)


def _remove_own(file: Path, pid: int) -> None:
    """Remove a temporary session, in the process that made it and not in a forked one."""
    if os.getpid() == pid:
        remove_temporary(file)


def _find_named(my_code: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Folders and files as absolute paths; what is no path is the name of a module, or of a cell."""
    names = []
    for name in my_code:
        if not isinstance(name, (str, os.PathLike)):
            raise CompilediagError(f"my_code has {name!r}: use folders, files and names of modules")
        text = os.path.expanduser(os.fspath(name))
        is_path = os.path.exists(text) or "/" in text or os.sep in text
        names.append(os.path.abspath(text) if is_path else text)
    return names


def _list_library_folders() -> list[str]:
    """Where this process has the standard library and installed packages."""
    paths = sysconfig.get_paths()
    folders = {paths.get(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    with contextlib.suppress(Exception):  # Not every site module has these, and a restricted user has no home.
        folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return sorted(filter(None, folders))


def _meta(detail: str, asked_for: list[str], my_code: list[str]) -> dict[str, object]:
    return {
        "compilediag_version": __version__,
        "torch_version": sources.torch_version(),
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "title": program_name() or "session",
        "detail": detail,
        "asked_for": asked_for,
        "my_code": my_code,
        "library_folders": _list_library_folders(),
        PROGRAM: describe_program(),
        **identify_process(),
        "created_ns": time.time_ns(),
        "stopped_ns": None,
    }


def _recordings() -> list[ActiveRecording]:
    return [*_waiting, *([_current] if _current else [])]


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for recording in _recordings():
        recording.recorder.after_fork_in_child()
        recording.data.after_fork_in_child()


def _before_fork() -> None:
    """No watch begins or ends while a process forks, nothing is read or written, no connection is open."""
    _lock.acquire()
    for recording in _recordings():
        recording.data.release()
        recording.recorder.before_fork()


def _after_fork_in_parent() -> None:
    try:
        for recording in _recordings():
            recording.recorder.after_fork_in_parent()
            recording.data.reopen()
    finally:
        _lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(end_all)
