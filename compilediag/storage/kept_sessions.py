"""The sessions of the last runs, which `compilediag run` keeps in the user's state folder.

The folder can be entered by its owner alone (mode 0700), and so can the files in it be read (0600). A file gets its
name when it is complete. Names begin with the time, so several processes can keep and delete sessions at once: each
deletes all but the newest, and a file that another one has deleted is no error.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ..errors import CompilediagError
from ..system.files import create_folder
from ..system.interrupts import ignore, pass_on
from ..system.user_folders import HISTORY, find_user_folder, is_history_off
from .session_files import remove

#: Sessions that are kept, and bytes of all of them. The newest one is kept whatever its size.
MOST, MAX_BYTES = 20, 2 << 30
#: Seconds after which an incomplete file is of a process that was killed.
ABANDONED_S = 24 * 3600


def list_kept() -> list[Path]:
    """The sessions of the last runs, the newest first. CompilediagError if they can't be listed."""
    folder = find_user_folder("XDG_STATE_HOME", ".local/state")
    try:
        if folder is None or not folder.is_dir():
            return []
        _check_private(folder / "sessions")
        return sorted((folder / "sessions").glob("*.cdiag"), reverse=True)
    except FileNotFoundError:
        return []
    except OSError as error:
        pass_on(error)
        raise CompilediagError(f"{folder} can't be read: {error.strerror or error}") from None


def name_kept() -> Path:
    """A new name for a session to keep, in a folder that exists. CompilediagError if none is to be kept, or can be."""
    folder = find_user_folder("XDG_STATE_HOME", ".local/state")
    if is_history_off():
        raise CompilediagError(f"{HISTORY} is {os.environ[HISTORY]!r}")
    if folder is None:
        raise CompilediagError("there is no home folder; set XDG_STATE_HOME")
    folder /= "sessions"
    try:
        for each in (*reversed(folder.parents), folder):
            if not each.is_dir():
                create_folder(each)
        _check_private(folder)
    except OSError as error:
        pass_on(error)
        raise CompilediagError(f"can't write {folder}: {error.strerror or error}") from None
    return folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-{secrets.token_hex(4)}.cdiag"


def _check_private(folder: Path) -> None:
    """CompilediagError if the folder is not this user's, or others can enter it; no link is followed."""
    found = os.lstat(folder)
    is_own = not hasattr(os, "geteuid") or (found.st_uid == os.geteuid() and not found.st_mode & 0o077)
    if not (is_own and stat.S_ISDIR(found.st_mode)):
        raise CompilediagError(f"{folder} is not a folder that only you can enter; chmod 700 it, or set XDG_STATE_HOME")


def delete_old() -> None:
    """Delete the oldest of the kept sessions, and what processes left that were killed while they wrote one."""
    kept = list_kept()
    for file in _find_old(kept):
        with ignore(OSError):
            remove(file)
    for left in kept[0].parent.glob(".compilediag-*") if kept else ():
        with ignore(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(left)


def _find_old(kept: list[Path]) -> Iterator[Path]:
    size = 0
    for number, file in enumerate(kept):
        with ignore(OSError):
            size += file.stat().st_size
            if number >= MOST or (number and size > MAX_BYTES):
                yield file
