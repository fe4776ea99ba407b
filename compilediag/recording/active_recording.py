"""The recording that runs in this process: how it begins and ends, and survives a fork.

One recording runs at a time. Beginning one while another runs adds a level to it; it ends with its last level.
"""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import errno
import functools
import importlib
import os
import platform
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from .. import sources
from ..errors import CompilediagError
from ..events import ON_COMPILE, WarmupEnd
from ..sources.hooks.patches import WhenImported
from ..storage.recorded_data import RecordedData
from ..storage.session_files import (
    OF_THE_PATH,
    Taken,
    make_temporary,
    name_temporary,
    remove_abandoned,
    remove_temporary,
)
from ..storage.store import SESSION_FILE, Store, remove
from ..system import clock, own_errors
from ..system.files import check_replaceable, make_absolute
from ..system.interrupts import finish, ignore, pass_on
from ..system.own_errors import log_warning
from ..system.program import META_KEY as PROGRAM
from ..system.program import describe_program, find_parent, identify_process, list_library_folders, program_name
from ..version import __version__
from .recorder import Listener, Recorder, WriterStatus

# The file to record to: which one a path names, and whether another process records to it already. A path at which no
# session can be (no such folder, a file that is no session, no permission) is an error. A disk that fails is none: the
# program goes on, and its session is lost.

#: The file of a session that has none: it was to be a temporary one.
NO_FILE = Path("session.cdiag")


@dataclass(frozen=True)
class TargetFile:
    """`is_joined`: another process records to it, and this one joins. `problem`: why it can't be written, in words."""

    path: Path
    is_joined: bool = False
    problem: str | None = None


def choose_file(path: str | os.PathLike[str] | None, taken: Taken) -> TargetFile:
    """The file to record to, free to be made. CompilediagError if no session can be meant to be there.

    Without a path it is a temporary one, which `taken` has before its folder is made.
    """
    file = NO_FILE
    remove_abandoned(taken.descriptors)
    try:
        if path is None:
            taken.temporary.append(name_temporary())
            make_temporary(taken.temporary[0])
            file = taken.temporary[0]
        else:
            named = _file_in_folder(path) or make_absolute(path)
            if not named.parent.is_dir():
                raise CompilediagError(f"{named} can't be written: there is no folder {named.parent}")
            check_replaceable(named, SESSION_FILE)
            file = named
            if is_recorded_by_another(file):
                return TargetFile(file, is_joined=True)
        remove(file)
        return TargetFile(file)
    except OSError as error:
        pass_on(error)
        if path is not None and error.errno in OF_THE_PATH:
            raise CompilediagError(f"{path} can't be written: {error.strerror}") from None
        return TargetFile(file, problem=error.strerror or str(error))


def _file_in_folder(path: str | os.PathLike[str]) -> Path | None:
    """The file of this process where `path` is a folder, which is made if need be; None where it is none.

    It is named by the rank. Without a rank, because torch.distributed has not begun and no launcher set RANK, it is
    named by the host and the pid.
    """
    folder = make_absolute(path)
    if not folder.is_dir() and not os.fspath(path).endswith(("/", os.sep)):
        return None
    rank = sources.rank()
    file = folder / (f"{platform.node()}-{os.getpid()}.cdiag" if rank is None else f"rank-{rank}.cdiag")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        pass_on(error)
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.EEXIST):
            raise CompilediagError(f"{folder} can't be made: {error.strerror}") from None
        raise
    return file


def is_recorded_by_another(file: Path) -> bool:
    """True if another living process records to this file: so a spawned worker watches into its parent's session."""
    try:
        store = Store.open(file)
    except CompilediagError:
        return False
    try:
        return store.is_recorded_elsewhere()
    except sqlite3.Error:
        return False  # A damaged session is replaced.
    finally:
        store.connection.close()


DETAILS = ("lean", "full")
#: Bytes of address space that are kept for the end of a recording.
RESERVE = 8 << 20


@dataclass(frozen=True)
class WarmupOptions:
    """So many `steps` are warm-up, and `on_compile` happens after them; None if only the program ends it."""

    steps: int | None = None
    on_compile: str = "count"

    def __post_init__(self) -> None:
        if self.on_compile not in ON_COMPILE:
            raise CompilediagError(f"on_compile is {self.on_compile!r}: use {', '.join(map(repr, ON_COMPILE))}")


@dataclass(eq=False)
class ActiveRecording:
    """A recording that runs. `session` is what the user was given for it, if anything.

    `levels`: an object for each watch that has begun and not ended.
    """

    data: RecordedData
    recorder: Recorder
    levels: list[object]
    session: Any = None
    #: Memory that the end of the recording frees first, so that it works where the program has used up a limit. The
    #: pages are never touched: it takes address space alone.
    reserve: bytes = field(default_factory=lambda: bytes(RESERVE))
    warmup: WarmupOptions = WarmupOptions()
    _is_detached: bool = False

    def begin_step(self, number: int | None) -> None:
        """The program begins a step. The one after the warm-up ends it."""
        count = self.recorder.steps.begin(number)
        if self.warmup.steps is not None and count > self.warmup.steps and self.recorder.warmup is None:
            try:
                self.end_warmup(self.warmup.on_compile, "warmup_steps")
            except CompilediagError as error:
                log_warning("compilediag: %s", error)
                self.end_warmup("warn", "warmup_steps")

    def end_warmup(self, on_compile: str, ended_by: str = "end_warmup") -> None:
        """The program is warm: see `Session.end_warmup`. Called again, it changes what happens alone."""
        if on_compile not in ON_COMPILE:
            raise CompilediagError(f"on_compile is {on_compile!r}: use {', '.join(map(repr, ON_COMPILE))}")
        file, line = sources.find_user_line()
        problem = sources.raise_on_compile(on_compile == "raise", (file, line))
        if problem is not None:
            raise CompilediagError(f"this torch can't raise before it compiles ({problem}); use on_compile='warn'")
        now = clock.now_ns()
        if self.recorder.warmup is not None:
            self.recorder.warmup = dataclasses.replace(self.recorder.warmup, on_compile=on_compile)
            return
        event = WarmupEnd(
            time_ns=now,
            on_compile=on_compile,
            ended_by=ended_by,
            user_file=file,
            user_line=line,
            step=self.recorder.find_step(now),
        )
        self.recorder.warmup = event
        self.recorder.put(self.recorder.feeds[-1], lambda: event)

    def close(self) -> bool:
        """Take every hook out and close the file. Called again after an interrupt (Ctrl-C), it goes on.

        A step that fails costs itself: ending a watch raises nothing of ours. False if something is left to do.
        """
        self.reserve = b""
        steps = (
            self._note_device,
            self._detach,
            self.recorder.end,
            lambda: self._keep_if_lost({**self.recorder.facts.to_meta(), "stopped_ns": clock.now_ns()}),
            lambda: self.data.close_during(self.recorder.close),  # The last connection leaves one file behind.
            self.data.end_recording,
        )
        has_worked = False not in [self.shield(step) for step in steps]
        if self.recorder.has_late_errors or not has_worked:
            self.shield(self._add_last_states)
        return has_worked and self._is_detached

    def shield(self, step: Callable[[], object]) -> bool:
        """Call a step of the end; False if it raises, which is a warning and is counted at the writer."""
        try:
            step()
        except Exception as error:
            pass_on(error)
            self.recorder.note_error(error)
            log_warning("compilediag: the watch could not be ended completely: %r", error)
            own_errors.report("watch", error)
            return False
        return True

    def _note_device(self) -> None:
        # Only at the end it is known which device the program uses.
        self.recorder.facts.device = sources.device_name()

    def _detach(self) -> None:
        self._is_detached = sources.detach()

    def _add_last_states(self) -> None:
        self.data.add_states(self.recorder.list_last_states())

    def announce_end(self) -> None:
        """Call what waits for the end of the recording."""
        if not self.shield(self.data.announce_end):
            self.shield(self._add_last_states)

    def _keep_if_lost(self, facts: Mapping[str, Any] = MappingProxyType({})) -> None:
        if self.recorder.lost is not None:
            self.data.keep_in_memory(self.recorder.unwritten, facts)

    # Around a fork: nothing is read or written, and no connection is open

    def before_fork(self) -> None:
        self.data.lock.acquire()
        self.recorder.before_fork()
        self._keep_if_lost()
        self.data.release()
        self.recorder.release_file()

    def after_fork_in_parent(self) -> None:
        self.recorder.after_fork_in_parent()
        self.data.reopen()

    def after_fork_in_child(self) -> None:
        self.recorder.after_fork_in_child()
        self.data.after_fork_in_child()


#: As all state of a module, it outlives `importlib.reload`.
_current: ActiveRecording | None = globals().get("_current")
#: Recordings whose last level has ended; they are here until they are closed, also if an interrupt comes between.
_ended: list[ActiveRecording] = globals().get("_ended", [])
#: Recordings whose end has failed in part. The next watch that begins or ends tries once more.
_unended: list[ActiveRecording] = globals().get("_unended", [])
#: True if torch may have registered exit functions after `end_all`.
_is_before_torch: bool = globals().get("_is_before_torch", "torch" not in sys.modules)
_lock: threading.RLock = globals().get("_lock") or threading.RLock()


def find_current() -> ActiveRecording | None:
    """The recording that runs now."""
    return _current


def begin(
    path: str | os.PathLike[str] | None,
    detail: str,
    asked_for: list[str],
    my_code: Iterable[str] = (),
    level: object | None = None,
    warmup: WarmupOptions = WarmupOptions(),
    listeners: Iterable[Listener] = (),
) -> ActiveRecording:
    """Begin to record, or add a level to the recording that runs; see `compilediag.watch.watch`.

    `level` names the level for `end`. If an interrupt (Ctrl-C) ends this early, `end(level)` cleans up.
    """
    global _current
    if detail not in DETAILS:
        raise CompilediagError(f"detail is {detail!r}: use 'lean' or 'full'")
    level = level or object()
    with _lock:
        _close_ended()
        if _current is None:
            _current = _begin(path, detail, asked_for, my_code, level)
            _current.warmup, _current.recorder.listeners = warmup, [*listeners]
        else:
            _current.levels.append(level)
        return _current


def end(level: object | None = None) -> ActiveRecording | None:
    """End one level of the recording, and with the last one take every hook out; None if none runs.

    By default the latest level. Ctrl-C does not end this early: the interrupt is raised when all is done.
    """
    return finish(_Ending(level).run)


def end_all() -> ActiveRecording | None:
    """End the recording whatever its levels."""
    return finish(_Ending(None, is_all=True).run)


class _Ending:
    """The end of a level of the recording, or of all of them; `run` goes on where an interrupt ended it."""

    def __init__(self, level: object | None, is_all: bool = False):
        self._level = level
        self._is_all = is_all
        self._recording: ActiveRecording | None = None

    def run(self) -> ActiveRecording | None:
        with _lock:
            if self._recording is None and _current is not None and _current.levels:
                if self._level is None:
                    self._level = _current.levels[-1]
                if self._level in _current.levels:
                    self._recording = _current
            recording = self._recording
            if recording is not None:
                recording.levels[:] = [] if self._is_all else [each for each in recording.levels if each != self._level]
            _close_ended()
        if recording is not None and not recording.levels:
            recording.announce_end()
        return recording


def _close_ended() -> None:
    """Close what has no level any more."""
    global _current
    if _current is not None and not _current.levels:
        if _current not in _ended:
            _ended.append(_current)
        _current = None
    while _unended and _current is None:
        _unended[0].close()
        del _unended[0]
    while _ended:
        if not _ended[0].close():
            _unended.append(_ended[0])
        del _ended[0]


def notice(error: BaseException) -> None:
    """Look at an exception that is about to leave what is watched: a block, a cell, a script. Raises nothing."""
    if _current is not None:
        try:
            sources.notice(error)
        except Exception as failure:
            pass_on(failure)
            _current.recorder.note_error(failure)


def _begin(
    path: str | os.PathLike[str] | None, detail: str, asked_for: list[str], my_code: Iterable[str], level: object
) -> ActiveRecording:
    named = _find_named([my_code] if isinstance(my_code, (str, os.PathLike)) else my_code)
    sources.require_torch()
    clock.synchronize()
    target: TargetFile | None = None
    recorder: Recorder | None = None
    taken = Taken()
    try:
        target = choose_file(path, taken)
        meta = _meta(detail, asked_for, named)
        lost = None if target.problem is None else f"{target.path} can't be written: {target.problem}"
        recorder = Recorder(target.path, None if target.is_joined else meta, rank=sources.rank, lost=lost)
        recording = ActiveRecording(_open(recorder, meta, is_named=path is not None), recorder, [level])
        recording.data.when_warm = recording.end_warmup
        for file in taken.temporary:
            weakref.finalize(recording.data, _remove_own, file, os.getpid())
        recorder.feeds = [*sources.attach(recorder, detail, asked_for), WriterStatus(recorder)]
        _end_before_torch()
        recording.data.flush(statuses=True)  # Not in the first batch, beside the first compiles.
        return recording
    except BaseException:
        is_made = recorder is not None and recorder.is_open and target is not None and not target.is_joined
        finish(functools.partial(_abandon, recorder, taken, target.path if target and is_made else None))
        raise


def _end_before_torch() -> None:
    """Register `end_all` after torch's exit functions, as these run in reverse order.

    One of them, of `weakref`, removes operators, so that what compiles later fails, and temporary sessions.
    """
    global _is_before_torch
    if _is_before_torch:
        atexit.unregister(end_all)
        atexit.register(end_all)
        _is_before_torch = False


def _open(recorder: Recorder, meta: dict[str, Any], is_named: bool) -> RecordedData:
    """The data of the file; of an empty session in memory if there is no file that can be written and read.

    CompilediagError if no file can be made at the path that the user has named. All else costs the session alone.
    """
    try:
        recorder.begin()
    except OSError as error:
        pass_on(error)
        problem = f"{recorder.path} can't be written: {error}"
        if is_named:
            raise CompilediagError(problem) from None
        recorder.lose(problem)
    try:
        if recorder.lost is None:
            return RecordedData(recorder.path, recorder.flush)
    except (OSError, sqlite3.Error, CompilediagError) as error:
        pass_on(error)
        recorder.lose(f"{recorder.path} can't be read: {error}")
    return RecordedData(recorder.path, recorder.flush, Store.create_in_memory(recorder.path, meta))


def _abandon(recorder: Recorder | None, taken: Taken, made: Path | None) -> None:
    """Undo a beginning that failed, or that an interrupt (Ctrl-C) ended. `made`: the file that was created for it."""
    sources.detach()
    if recorder is not None:
        recorder.close()
    if made is not None:
        with ignore(OSError):
            remove(made)
    taken.give_back()


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
        names.append(str(make_absolute(text)) if is_path else text)
    return names


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
        "library_folders": list_library_folders(),
        PROGRAM: describe_program(),
        **identify_process(),
        "created_ns": clock.now_ns(),
        "stopped_ns": None,
    }


def _before_fork() -> None:
    """No watch begins or ends while a process forks."""
    _lock.acquire()
    if _current is not None:
        _current.before_fork()


def _after_fork_in_parent() -> None:
    try:
        if _current is not None:
            _current.after_fork_in_parent()
    finally:
        _lock.release()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    if _current is not None:
        _current.after_fork_in_child()


if not globals().get("_is_registered", False):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
    if "zmq" in sys.modules:
        # In a kernel. Exit functions run in reverse order, and that of pyzmq has to run after `end_all`, which sends
        # pages their last rows. Its module would only be imported when something large is sent for the first time.
        with contextlib.suppress(ImportError):
            importlib.import_module("zmq.utils.garbage")
    atexit.register(end_all)
_is_registered = True


# A process that a recorded program has started records to its parent's session, as soon as it may compile

#: multiprocessing calls its finalizers of a higher priority first, and those of its own queues and pools have 10 to 15.
_AFTER_POOLS = 5


class TorchImports(MetaPathFinder):
    """Waits until `torch._dynamo` is imported and whatever of torch imports it is complete; then the process records.

    A process that compiles nothing does not import it, and is not made to.
    """

    #: The module of torch that is imported now, and itself imports the others.
    _outermost: str | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_inside = self._outermost in sys.modules  # One whose import fails leaves them.
        if name.partition(".")[0] != "torch" or is_inside:
            return None
        spec = WhenImported({name: self._leave}, _note, _note).find_spec(name)
        self._outermost = None if spec is None else name
        return spec

    def _leave(self) -> None:
        self._outermost = None
        if "torch._dynamo" not in sys.modules or self not in sys.meta_path:
            return
        sys.meta_path.remove(self)
        parent = find_parent()
        # A file to which nobody records any more is complete: it would be replaced.
        if parent is not None and (os.path.isdir(parent[0]) or is_recorded_by_another(Path(parent[0]))):
            begin(*parent)
            from multiprocessing import util  # Its import registers a function of `atexit`.

            # A process of a fork server ends without the functions of `atexit`.
            util.Finalize(None, end_all, exitpriority=_AFTER_POOLS)


def _note(error: BaseException) -> None:
    pass_on(error)
    log_warning("compilediag: process %d is not recorded: %s", os.getpid(), error)
