"""Where sessions lie: temporary ones, those of the last runs, and how they are removed.

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

import errno
import functools
import os
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from ..errors import CompilediagError
from ..system.files import (
    HISTORY,
    close_all,
    create_folder,
    create_private,
    find_user_folder,
    is_history_off,
    open_into,
    open_private,
)
from ..system.interrupts import finish, ignore, pass_on
from ..system.source_files import open_without_waiting
from .store import FOLDER_PREFIX, HELD, IN_USE, SESSION, SIDE_FILES, TEMPORARY, remove, share_lock

try:
    import fcntl
except ImportError:  # On Windows. A session that is left there stays.
    fcntl = None  # type: ignore[assignment]

#: Beside a temporary session: the folder in which it is to be kept if its process is killed.
KEPT_IN = "kept-in"
#: Names in the temporary folder, and sessions among them, that a process looks at when it begins a watch.
MAX_NAMES, MAX_SESSIONS = 20_000, 1_000
#: Characters that are read of a path in a file.
MAX_PATH = 4_096
#: Errors of the path, not of the disk: this user can't make a file with that name.
OF_THE_PATH = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}


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
            share_lock(folder / f"{IN_USE}.new", HELD.setdefault(folder, []))
            os.rename(folder / f"{IN_USE}.new", folder / IN_USE)
    except BaseException:
        finish(functools.partial(remove_temporary, file))
        raise


def remove_abandoned(descriptors: list[int], keep: Callable[[Path], object] | None = None) -> None:
    """Remove the temporary sessions of this user's processes that were killed. Follows no link; raises no OSError.

    One that is to be kept stays for ABANDONED_S; with `keep`, it is called for those that are to be kept in the folder
    of this process, which are then removed, unless it raises CompilediagError. `descriptors`: those that are still open
    if an interrupt ends this.
    """
    if fcntl is None:
        return
    with ignore(OSError), os.scandir(tempfile.gettempdir()) as entries:
        found = [each.path for each in islice(entries, MAX_NAMES) if TEMPORARY.fullmatch(each.name)]
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


def remove_temporary(file: Path) -> None:
    """Remove a temporary session and its folder, as far as they exist."""
    with ignore(OSError):
        remove(file)
        for name in (KEPT_IN, IN_USE, f"{IN_USE}.new"):
            (file.parent / name).unlink(missing_ok=True)
        file.parent.rmdir()
    close_all(HELD.get(file.parent, []))
    HELD.pop(file.parent, None)


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
