"""Session files on the disk: which files are sessions, private new ones, temporary ones, and how to remove them.

A file is created for its owner alone (mode 0600), at once and with `O_EXCL`, so that nobody can put a link in its
place. SQLite gives the side files `-wal` and `-shm` the mode of their session. A temporary session has a folder of its
own, which only its owner can enter (mode 0700).
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import tempfile
from pathlib import Path

#: The first bytes of every SQLite file.
SQLITE = b"SQLite format 3\0"
#: What the folders of temporary sessions begin with.
FOLDER_PREFIX = "compilediag-"
PRIVATE = 0o600
#: Errors of the path, not of the disk: this user can't make a file with that name.
OF_THE_PATH = {
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST),
    *(errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL),
}
#: Device and inode of a file: what it is, whatever its name is.
FileKey = tuple[int, int]
#: The files that this process records to. They are not opened again: closing them would drop SQLite's locks.
RECORDED: set[FileKey] = set()


def is_session(file: Path) -> bool:
    """True if a file begins like a session, even if it is damaged. OSError if it can't be read."""
    return file.is_file() and _read_head(file) == SQLITE


def is_replaceable(file: Path) -> bool:
    """True for an earlier session and for an empty file; any other file is not overwritten."""
    return file.is_file() and _read_head(file) in (b"", SQLITE)


def _read_head(file: Path) -> bytes:
    if find_file_key(file) in RECORDED:
        return SQLITE
    with file.open("rb") as opened:
        return opened.read(len(SQLITE))


def find_file_key(file: Path) -> FileKey | None:
    """Device and inode of the file that has this path now; None if there is none. OSError if it can't be looked up."""
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    return found.st_dev, found.st_ino


def create_private(file: Path) -> None:
    """Create an empty file that only its owner can read. FileExistsError if the path exists, also as a link."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE))


def temporary_file() -> Path:
    """An unused path for a temporary session, in a new folder that only its owner can enter. OSError if it can't be
    made. `remove_temporary` removes both.
    """
    folder = Path(tempfile.gettempdir()).absolute() / f"{FOLDER_PREFIX}{secrets.token_hex(8)}"
    try:
        folder.mkdir(mode=0o700)
        return folder / "session.cdiag"
    except OSError:
        raise
    except BaseException:
        with contextlib.suppress(OSError):
            folder.rmdir()
        raise


def remove(file: Path) -> None:
    """Remove a session's file and its side files, as far as they exist: SQLite would apply a journal to a new file."""
    for name in (file, f"{file}-wal", f"{file}-shm", f"{file}-journal"):
        Path(name).unlink(missing_ok=True)


def remove_temporary(file: Path) -> None:
    """Remove a temporary session and its folder, as far as they exist."""
    with contextlib.suppress(OSError):
        remove(file)
        file.parent.rmdir()
