"""What happened to the file of a recording: it was removed, replaced or overwritten, or its -wal file was cut off.

Closing any descriptor of a file drops all locks that the process has on it, also those of SQLite; another process could
then remove the -wal file. So a file that is recorded to is opened once, and closed after SQLite has closed it.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path

from ..interrupts import ignore, pass_on
from .session_files import RECORDED, close_all, find_file_key, open_into

#: Where the header of a SQLite file has its application id. A session's is random: another session has another one.
APPLICATION_ID = slice(68, 72)
#: The first bytes of a -wal file, and where its header has what SQLite changes each time it begins the file again.
WAL_MAGIC = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
WAL_HEADER, RESTART = 24, slice(12, 24)


class FilePlace:
    """The file of a recording, which SQLite has open, from `open` to `close`, which also cleans up a failed `open`."""

    def __init__(self, path: Path):
        self.path = path
        #: One, while the file is open.
        self._descriptors: list[int] = []
        self._is_known = False
        self.key = (-1, -1)
        self._application_id = b""
        self._wal = Path(f"{path}-wal")
        self._wal_inode: int | None = None
        self._wal_size, self._wal_header = 0, b""

    def open(self) -> None:
        """Open the file; OSError if it can't be opened."""
        open_into(self._descriptors, self.path, os.O_RDONLY)
        found = os.fstat(self._descriptors[0])
        self.key = (found.st_dev, found.st_ino)
        self._application_id = self._read_application_id()
        RECORDED.add(self.key)
        self._is_known = True

    @property
    def identity(self) -> tuple[object, ...]:
        """What the file is, whatever its name is: equal in all processes."""
        return (*self.key, self._application_id)

    def describe_absence(self) -> str | None:
        """Why the file is not at its path any more; None if it is."""
        if not self._is_known:
            return None
        try:
            key = find_file_key(self.path)
        except OSError as error:
            pass_on(error)
            return None  # It can't be looked up now; SQLite's next write shows whether it is there.
        if key is None:
            return f"{self.path} was removed"
        return None if key == self.key else f"{self.path} was replaced"

    @property
    def is_overwritten(self) -> bool:
        """True if the file has the content of another one."""
        return self._is_known and self._read_application_id() != self._application_id

    def is_wal_cut(self, connection: sqlite3.Connection) -> bool:
        """True if the -wal file has lost something since it was noted that is not in the file either."""
        before, begun = self._wal_size, self._wal_header
        self.note_wal()
        size, header = self._wal_size, self._wal_header
        if size and header[:4] not in WAL_MAGIC:
            return True
        if size >= before or header[RESTART] not in (b"", begun[RESTART]):
            return False
        return self._wal.exists() and (size > 0 or not _is_copied(connection))

    def note_wal(self) -> None:
        """Note how much the -wal file has. SQLite has no locks on it."""
        try:
            with open(self._wal, "rb", buffering=0) as wal:
                found = os.fstat(wal.fileno())
                self._wal_inode, self._wal_size, self._wal_header = found.st_ino, found.st_size, wal.read(WAL_HEADER)
        except OSError as error:
            pass_on(error)
            self.forget_wal()  # There is none yet, or it was removed, and SQLite still has it open.

    def forget_wal(self) -> None:
        """The -wal file is removed when the last connection is closed, and the next one begins another."""
        self._wal_inode, self._wal_size, self._wal_header = None, 0, b""

    # How the connection to a file that is lost is closed. By itself, SQLite copies what is in the -wal file then.

    def close_damaged(self, connection: sqlite3.Connection) -> None:
        """Leave the file and its -wal file as they are, for whoever opens them next: while the file has another name,
        SQLite copies nothing into it.
        """
        aside = self.path.with_name(f"{self.path.name}.{secrets.token_hex(4)}")
        is_moved = False
        with ignore(OSError):
            os.rename(self.path, aside)
            is_moved = True
        try:
            connection.close()
        finally:
            if is_moved:
                os.rename(aside, self.path)

    def close_overwritten(self, connection: sqlite3.Connection) -> None:
        """Write nothing to a file that has another one's content now: SQLite copies nothing from an empty -wal file."""
        with ignore(OSError):
            os.truncate(self._wal, 0)
        connection.close()
        self._remove_wal()

    def close_elsewhere(self, connection: sqlite3.Connection) -> None:
        """Complete the file where it is now, if it has a name."""
        with ignore(OSError, sqlite3.Error):
            if self._descriptors and os.fstat(self._descriptors[0]).st_nlink:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        connection.close()
        self._remove_wal()

    def _remove_wal(self) -> None:
        """Remove the side files that were left: SQLite would take them for those of the file that has the path now."""
        with ignore(OSError):
            if os.stat(self._wal).st_ino == self._wal_inode:
                self._wal.unlink()
                Path(f"{self.path}-shm").unlink()

    def close(self) -> None:
        """Close the file, after all connections to it were closed."""
        RECORDED.discard(self.key)
        close_all(self._descriptors)

    def _read_application_id(self) -> bytes:
        try:
            return os.pread(self._descriptors[0], APPLICATION_ID.stop, 0)[APPLICATION_ID]
        except (OSError, IndexError) as error:
            pass_on(error)
            return self._application_id


def _is_copied(connection: sqlite3.Connection) -> bool:
    """True if another process has emptied the -wal file as it ended; then SQLite misses nothing in it."""
    try:
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error:
        return False
    return True
