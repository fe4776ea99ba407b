"""Begin and end a watch: `watch()` for a block, `start()` and `stop()` for notebooks and REPLs.

One recording runs at a time in a process. A watch inside a watch shares its session; the recording ends
with the outermost one. Hooks go in when it begins and come out when it ends.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import platform
import threading
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .errors import CompilediagError
from .recording import Recorder
from .session import Session
from .sources.caches.key_history import VARIABLE as HISTORY
from .sources.caches.key_history import program
from .storage.store import Store, is_replaceable, remove, temporary_file

DETAILS = ("lean", "full")


@dataclass
class _Watch:
    session: Session
    recorder: Recorder
    depth: int


_current: _Watch | None = None
#: The recordings that wait until another one beside them has ended; see `aside`.
_waiting: list[_Watch] = []
_lock = threading.RLock()


@contextlib.contextmanager
def watch(
    path: str | os.PathLike[str] | None = None, detail: str = "full", replays: bool = False, calls: bool = False
) -> Iterator[Session]:
    """Record every compile in the block; gives the session, which stays readable afterwards.

    `path`: the session's file (`.cdiag`), replaced if it is there; a temporary one if None, which goes with the
    session; a folder (one that is there, or a name that ends with a slash) in a distributed job, where each rank has
    a file of its own in it and `load(folder)` gives all of them as one session. `detail`: "full", or "lean" for the
    cheap hooks only (no graphs or code are kept, and only the closest earlier entry's failing guards are all found).
    `replays`: count the replays of CUDA graphs too, which puts a microsecond or two on each. `calls`: count and time
    the calls of compiled functions too, on Python 3.12 or later, which puts a few microseconds on each. Inside another
    watch the session is that one's, as that one was begun.
    CompilediagError if the path can't be written, the detail is unknown or torch can't be imported.
    """
    session = start(path, detail, replays, calls)
    try:
        yield session
    except BaseException as error:
        if _current is not None and _current.depth == 1:
            notice(error)
        raise
    finally:
        stop()


def notice(error: BaseException) -> None:
    """An exception is about to leave what is watched: a block, a cell, a script. It is looked at, no more."""
    if _current is not None:
        from . import sources

        sources.notice(error)


def start(
    path: str | os.PathLike[str] | None = None, detail: str = "full", replays: bool = False, calls: bool = False
) -> Session:
    """Begin to record; see `watch`. If a recording runs, its session is given and one more `stop()` is needed."""
    global _current
    if detail not in DETAILS:
        raise CompilediagError(f"detail is {detail!r}: use 'lean' or 'full'")
    with _lock:
        if _current is not None:
            _current.depth += 1
            return _current.session
        _current = _begin(path, detail, [name for name, asked in (("replays", replays), ("calls", calls)) if asked])
        return _current.session


def stop() -> Session | None:
    """End the recording (or one level of it) and take every hook out; the session, None if none ran."""
    global _current
    with _lock:
        ended = _current
        if ended is None:
            return None
        ended.depth -= 1
        if ended.depth == 0:
            from . import sources

            _current = None
            sources.detach()
            ended.session.release()  # The last connection, which is the recorder's, leaves one file behind.
            try:
                ended.recorder.close()
            finally:
                ended.session.reopen()
            ended.session.ended()
        return ended.session


def stop_all() -> Session | None:
    """End the recording whatever its depth."""
    session = None
    while _current is not None:
        session = stop()
    return session


@contextlib.contextmanager
def aside(detail: str = "lean") -> Iterator[Session]:
    """A recording of its own for the block, whatever else records: that one sees nothing of it and then goes on.

    No watch can begin or end in another thread meanwhile.
    """
    global _current
    from . import sources

    with _lock, sources.paused():
        outer, _current = _current, None
        _waiting.extend([outer] if outer else [])
        try:
            with _no_history(), watch(detail=detail) as session:
                yield session
        finally:
            stop_all()
            _current = _waiting.pop() if outer else None


@contextlib.contextmanager
def _no_history() -> Iterator[None]:
    """What is recorded aside is no part of the user's history of cache keys."""
    before = os.environ.get(HISTORY)
    os.environ[HISTORY] = "off"
    try:
        yield
    finally:
        os.environ.pop(HISTORY) if before is None else os.environ.update({HISTORY: before})


def current() -> Session | None:
    """The session that records now, or None."""
    return None if _current is None else _current.session


def _begin(path: str | os.PathLike[str] | None, detail: str, asked_for: list[str]) -> _Watch:
    from . import sources

    sources.require_torch()
    file, join = _new_file(path)
    try:
        recorder = Recorder(file, None if join else _meta(detail, asked_for), rank=sources.rank)
    except Exception as error:
        raise CompilediagError(f"{file} can't be written: {error}") from None
    session = Session(file, recorder=recorder)
    if path is None:
        weakref.finalize(session, _remove_own, file, os.getpid())
    try:
        sources.attach(recorder, detail, asked_for)
    except BaseException:
        sources.detach()
        recorder.close()
        raise
    return _Watch(session, recorder, depth=1)


def _new_file(path: str | os.PathLike[str] | None) -> tuple[Path, bool]:
    """The file to record to, free to be made; true if another process records to it, which this one then joins."""
    if path is None:
        file = temporary_file()
    else:
        file = _in_folder(path) or Path(path).absolute()
        if not file.parent.is_dir():
            raise CompilediagError(f"{file} can't be written: there is no folder {file.parent}")
        if file.exists() and not is_replaceable(file):
            raise CompilediagError(f"{file} is there and is no session, so it is not replaced: give another path")
        if _recorded_elsewhere(file):
            return file, True
    try:
        remove(file)
    except OSError as error:
        raise CompilediagError(f"{file} can't be written: {error.strerror}") from None
    return file, False


def _in_folder(path: str | os.PathLike[str]) -> Path | None:
    """The file of this process where `path` is a folder, which is made if need be; None where it is none.

    It is named by the rank. A process that has none yet, as torch.distributed has not begun and no launcher set RANK,
    has a name that no other has.
    """
    from . import sources

    folder = Path(path).absolute()
    if not folder.is_dir() and not os.fspath(path).endswith(("/", os.sep)):
        return None
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise CompilediagError(f"{folder} can't be made: {error.strerror}") from None
    rank = sources.rank()
    return folder / (f"{platform.node()}-{os.getpid()}.cdiag" if rank is None else f"rank-{rank}.cdiag")


def _recorded_elsewhere(file: Path) -> bool:
    """True if another living process records to this file: so a spawned worker watches into its parent's session."""
    try:
        store = Store.open(file)
    except CompilediagError:
        return False
    elsewhere = store.is_recorded_elsewhere()
    store.close()
    return elsewhere


def _remove_own(file: Path, pid: int) -> None:
    """Remove a temporary session, in the process that made it and not in a forked one."""
    if os.getpid() == pid:
        remove(file)


def _meta(detail: str, asked_for: list[str]) -> dict[str, object]:
    from . import __version__, sources

    return {
        "compilediag_version": __version__,
        "torch_version": sources.torch_version(),
        "python_version": platform.python_version(),
        "platform": platform.platform(),
        "title": program() or "session",
        "detail": detail,
        "asked_for": asked_for,
        "pid": os.getpid(),
        "created_ns": time.time_ns(),
        "stopped_ns": None,
    }


def _recordings() -> list[_Watch]:
    return [*_waiting, *([_current] if _current else [])]


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    for watched in _recordings():
        watched.recorder.after_fork_in_child()
        watched.session.after_fork_in_child()


def _before_fork() -> None:
    """No watch begins or ends while a process forks, nothing is read or written, no connection is open."""
    _lock.acquire()
    for watched in _recordings():
        watched.session.release()
        watched.recorder.before_fork()


def _after_fork_in_parent() -> None:
    try:
        for watched in _recordings():
            watched.recorder.after_fork_in_parent()
            watched.session.reopen()
    finally:
        _lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(lambda: stop_all())
