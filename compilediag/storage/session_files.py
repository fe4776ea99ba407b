"""Session files on the disk: which files are sessions, private new ones, temporary ones, and how to remove them.

A file is created for its owner alone (mode 0600), at once and with `O_EXCL`, so that nobody can put a link in its
place. SQLite gives the side files `-wal` and `-shm` the mode of their session. A temporary session has a folder of its
own, which only its owner can enter (mode 0700). Whoever uses the session holds a lock (`flock`) on a file beside it.
The kernel ends the lock with the last process that has it, forked children included, whatever becomes of the pid. A
later process removes the sessions that nobody has locked: their processes were killed.

`compilediag run` keeps the sessions of the last runs in the user's state folder, which only its owner can enter. A file
gets its name when it is complete. Names begin with the time, so several processes can keep and delete sessions at once:
each deletes all but the newest, and a file that another one has deleted is no error. While it runs, the folder of its
temporary session says where it is to be kept: if the process is killed, the next one that looks for kept sessions moves
it there.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import secrets
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from ..errors import CompilediagError
from ..system.files import HISTORY, OutputKind, create_folder, find_user_folder, is_history_off, open_private
from ..system.interrupts import finish, ignore, pass_on
from ..system.source_files import open_without_waiting

try:
    import fcntl
except ImportError:  # On Windows. A session that is left there stays.
    fcntl = None  # type: ignore[assignment]

#: The first bytes of every SQLite file.
SQLITE = b"SQLite format 3\0"
#: What the folders of temporary sessions begin with.
FOLDER_PREFIX = "compilediag-"
#: A temporary session, and the file that is locked while somebody uses it.
SESSION, IN_USE = "session.cdiag", "in-use"
#: Beside it: the folder in which it is to be kept if its process is killed.
KEPT_IN = "kept-in"
_FOLDER = re.compile(re.escape(FOLDER_PREFIX) + "[0-9a-f]{16}")
#: Names in the temporary folder, and sessions among them, that a process looks at when it begins a watch.
MAX_NAMES, MAX_SESSIONS = 20_000, 1_000
#: What the names of a session's files end with.
SIDE_FILES = ("", "-wal", "-shm", "-journal")
PRIVATE = 0o600
#: Characters that are read of a path in a file.
MAX_PATH = 4_096
#: Errors of the path, not of the disk: this user can't make a file with that name.
OF_THE_PATH = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}
#: Device and inode of a file: what it is, whatever its name is.
FileKey = tuple[int, int]
#: The files that this process records to. They are not opened again: closing them would drop SQLite's locks.
RECORDED: set[FileKey] = globals().get("RECORDED", set())  # It outlives `importlib.reload`.


def is_session(file: Path) -> bool:
    """True if a file begins like a session, even if it is damaged. OSError if it can't be read."""
    return file.is_file() and _read_head(file) == SQLITE


def is_session_or_damaged(file: Path) -> bool:
    """True for a SQLite file, unless it can be read and has the tables of another program."""
    if _read_head(file) != SQLITE:
        return False
    if find_file_key(file) in RECORDED:
        return True
    try:
        # No locks are taken, and no side files are made.
        uri = f"{file.absolute().as_uri()}?immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return True
    return not tables or {"meta", "events"} <= tables


#: What a session replaces.
SESSION_FILE = OutputKind("a compilediag session", is_session_or_damaged)


def _read_head(file: Path) -> bytes:
    if find_file_key(file) in RECORDED:
        return SQLITE
    with file.open("rb") as opened:
        return opened.read(len(SQLITE))


def find_file_key(file: Path) -> FileKey | None:
    """Device and inode of the file that has this path now; None if there is none. OSError if it can't be looked up."""
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        pass_on(error)
        return None
    return found.st_dev, found.st_ino


# What is taken is noted where its owner finds it, in one call that runs no Python code: no interrupt comes between.


def create_private(file: Path, made: list[object] | None = None) -> None:
    """Create an empty file that only its owner can read. FileExistsError if the path exists, also as a link.

    Once there is one, `made` is not empty.
    """
    opened = map(os.open, (file,), (os.O_RDWR | os.O_CREAT | os.O_EXCL,), (PRIVATE,))
    (made if made is not None else []).extend(map(os.close, opened))


def open_into(descriptors: list[int], file: Path, flags: int, folder: int | None = None) -> None:
    """Open a file and add its descriptor to a list. `folder`: the open folder that a relative path begins in."""
    descriptors.extend(map(functools.partial(os.open, dir_fd=folder), (file,), (flags,)))


def close_all(descriptors: list[int]) -> None:
    """Close descriptors. Called again after an interrupt, it goes on."""
    while descriptors:
        with ignore(OSError):
            next(map(os.close, map(descriptors.pop, (-1,))))


@dataclass
class Taken:
    """What the beginning of a recording takes before the recording exists."""

    #: Temporary sessions, also those that are not made yet.
    temporary: list[Path] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)

    def give_back(self) -> None:
        """Remove and close it. Called again after an interrupt, it goes on."""
        close_all(self.descriptors)
        for file in self.temporary:
            remove_temporary(file)


def temporary_file() -> Path:
    """An unused path for a temporary session, in a new folder that only its owner can enter. OSError if it can't be
    made. `remove_temporary` removes both.
    """
    file = name_temporary()
    make_temporary(file)
    return file


def name_temporary() -> Path:
    """A path for a temporary session, which `make_temporary` makes. OSError if there is no folder for it."""
    return Path(tempfile.gettempdir()).absolute() / f"{FOLDER_PREFIX}{secrets.token_hex(8)}" / SESSION


def make_temporary(file: Path) -> None:
    """Make the folder of a temporary session, and lock it. OSError if it can't be made; then nothing is left."""
    folder = file.parent
    try:
        folder.mkdir(mode=0o700)
        if fcntl is not None:
            # It is locked before it has its name, so that no other process finds it unlocked.
            create_private(folder / f"{IN_USE}.new")
            _lock(folder / f"{IN_USE}.new", _held.setdefault(folder, []))
            os.rename(folder / f"{IN_USE}.new", folder / IN_USE)
    except BaseException:
        finish(functools.partial(remove_temporary, file))
        raise


#: The locks on the temporary sessions that this process has made. They outlive `importlib.reload`.
_held: dict[Path, list[int]] = globals().get("_held", {})


def hold_temporary(file: Path, descriptors: list[int]) -> None:
    """Keep a temporary session that another process has made from being removed until `descriptors` are closed: one
    is added.
    """
    is_temporary = file.name == SESSION and _FOLDER.fullmatch(file.parent.name) is not None
    if fcntl is not None and is_temporary and file.parent not in _held:
        _lock(file.parent / IN_USE, descriptors)


def _lock(marker: Path, descriptors: list[int]) -> None:
    # Without a lock it is another user's, or on a disk without locks, where nobody removes it.
    with ignore(OSError):
        open_into(descriptors, marker, os.O_RDONLY | os.O_NOFOLLOW)
        fcntl.flock(descriptors[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)


def remove_abandoned(descriptors: list[int], keep: Callable[[Path], object] | None = None) -> None:
    """Remove the temporary sessions of this user's processes that were killed. Follows no link; raises no OSError.

    One that is to be kept stays for ABANDONED_S; with `keep`, it is called for those that are to be kept in the folder
    of this process, which are then removed, unless it raises CompilediagError. `descriptors`: those that are still open
    if an interrupt ends this.
    """
    if fcntl is None:
        return
    with ignore(OSError), os.scandir(tempfile.gettempdir()) as entries:
        found = [each.path for each in islice(entries, MAX_NAMES) if _FOLDER.fullmatch(each.name)]
        for folder in found[:MAX_SESSIONS]:
            with ignore(OSError, CompilediagError):
                _remove_if_abandoned(folder, descriptors, keep)
            close_all(descriptors)


def _remove_if_abandoned(path: str, descriptors: list[int], keep: Callable[[Path], object] | None) -> None:
    open_into(descriptors, Path(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    folder = descriptors[0]
    if not _is_private(os.fstat(folder)):
        return
    open_into(descriptors, Path(IN_USE), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, folder)
    fcntl.flock(descriptors[1], fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError if somebody uses it.
    file = Path(path, SESSION)
    kept_in, age = _read_mark(file), time.time() - os.fstat(folder).st_mtime
    if kept_in and keep is not None and kept_in == str(_find_kept()):
        keep(file)
    elif kept_in and age < ABANDONED_S:
        return
    for name in (*(f"{SESSION}{ending}" for ending in SIDE_FILES), KEPT_IN, IN_USE):
        with ignore(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
    os.rmdir(path)


def mark_kept(file: Path) -> None:
    """Have a temporary session kept if its process is killed; nothing if no sessions are kept. Raises no OSError."""
    folder = _find_kept()
    if folder is not None and not is_history_off():
        with ignore(OSError), open(file.parent / KEPT_IN, "x", encoding="utf-8", opener=open_private) as mark:
            mark.write(str(folder))


def _read_mark(file: Path) -> str:
    """The folder in which a temporary session is to be kept; "" if it is not to be."""
    try:
        with open(file.parent / KEPT_IN, encoding="utf-8", opener=open_without_waiting) as mark:
            return mark.read(MAX_PATH)
    except (OSError, ValueError) as error:
        pass_on(error)
        return ""


def unmark_kept(file: Path) -> None:
    """Once it is kept, a killed process leaves nothing to keep."""
    with ignore(OSError):
        (file.parent / KEPT_IN).unlink(missing_ok=True)


def _is_private(found: os.stat_result) -> bool:
    """True for a folder of this user that nobody else can enter."""
    is_own = not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)
    return is_own and stat.S_ISDIR(found.st_mode)


def remove(file: Path) -> None:
    """Remove a session's file and its side files, as far as they exist: SQLite would apply a journal to a new file."""
    for ending in SIDE_FILES:
        Path(f"{file}{ending}").unlink(missing_ok=True)


def remove_temporary(file: Path) -> None:
    """Remove a temporary session and its folder, as far as they exist."""
    with ignore(OSError):
        remove(file)
        for name in (KEPT_IN, IN_USE, f"{IN_USE}.new"):
            (file.parent / name).unlink(missing_ok=True)
        file.parent.rmdir()
    close_all(_held.get(file.parent, []))
    _held.pop(file.parent, None)


# The sessions of the last runs

#: Sessions that are kept, and bytes of all of them. The newest one is kept whatever its size.
MAX_KEPT, MAX_KEPT_BYTES = 20, 2 << 30
#: Seconds after which an incomplete file is of a process that was killed, and a session of one is kept no longer.
ABANDONED_S = 24 * 3600


def _find_kept() -> Path | None:
    """The folder of the kept sessions; None for a user without a home."""
    folder = find_user_folder("XDG_STATE_HOME", ".local/state")
    return None if folder is None else folder / "sessions"


def list_kept() -> list[Path]:
    """The sessions of the last runs, the newest first. CompilediagError if they can't be listed."""
    folder = _find_kept()
    try:
        if folder is None or not folder.parent.is_dir():
            return []
        _check_private(folder)
        return sorted(folder.glob("*.cdiag"), reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        pass_on(error)
        raise CompilediagError(f"{folder} can't be read: {error.strerror or error}") from None


def name_kept(ended: datetime | None = None) -> Path:
    """A new name for a session to keep, which ended then or just now, in a folder that exists. CompilediagError if none
    is to be kept, or can be.
    """
    folder = _find_kept()
    if is_history_off():
        raise CompilediagError(f"{HISTORY} is {os.environ[HISTORY]!r}")
    if folder is None:
        raise CompilediagError("there is no home folder; set XDG_STATE_HOME")
    try:
        for each in (*reversed(folder.parents), folder):
            if not each.is_dir():
                create_folder(each)
        _check_private(folder)
    except OSError as error:
        pass_on(error)
        raise CompilediagError(f"can't write {folder}: {error.strerror or error}") from None
    return folder / f"{ended or datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(4)}.cdiag"


def _check_private(folder: Path) -> None:
    """CompilediagError if the folder is not this user's, or others can enter it; no link is followed."""
    if not _is_private(os.lstat(folder)):
        raise CompilediagError(f"{folder} is not a folder that only you can enter; chmod 700 it, or set XDG_STATE_HOME")


def delete_old() -> None:
    """Delete the oldest of the kept sessions, and what processes left that were killed while they wrote one."""
    kept, size = list_kept(), 0
    for number, file in enumerate(kept):
        with ignore(OSError):
            size += file.stat().st_size
            if number >= MAX_KEPT or (number and size > MAX_KEPT_BYTES):
                remove(file)
    for left in kept[0].parent.glob(".compilediag-*") if kept else ():
        with ignore(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(left)
