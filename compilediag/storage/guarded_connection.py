"""Connections to session files that other people may have written.

A file can be made so that reading it never ends or fills the memory: pages that refer to each other, rows that share
one long text. Each statement may take as long, and each value be as large, as an honest file of that size can need.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from ..errors import NotASession
from ..interrupts import ignore

#: CPU seconds that a statement may take, and bytes of the file that add another one.
PATIENCE_S, BYTES_PER_S = 20.0, 2 << 20
#: A value, for example a whole table as JSON, has at most this many bytes, or this many times those of the file.
LEAST_LENGTH, LENGTH_RATIO = 64 << 20, 16
#: What SQLite allows itself.
MOST_LENGTH = 1_000_000_000
#: Steps of SQLite between two looks at the clock. A batch of a live session takes fewer: beside a busy compiler a look
#: waits for the interpreter lock.
STEPS = 20_000
#: No row of a session takes less.
ROW_BYTES = 8
#: Seconds that a statement waits for another process's lock. Nobody holds one for long, unless something is wrong.
LOCK_S = 5.0
#: Statements that a connection keeps parsed; Python's own number.
STATEMENTS = 128


class _Clock:
    """Measures the CPU time of a statement in the thread that runs it."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.is_over = False
        self.restart()

    def restart(self) -> None:
        """A statement begins."""
        self._thread, self._began = threading.get_ident(), time.thread_time()

    def look(self) -> bool:
        """True if the statement has to end."""
        if self._thread != threading.get_ident():
            self.restart()
        self.is_over = self.is_over or time.thread_time() - self._began > self.seconds
        return self.is_over


class GuardedConnection(sqlite3.Connection):
    """A connection that ends statements that take too long, once `guard` was called."""

    #: The most rows that a table of the file can have.
    max_rows = 1 << 62
    #: The most bytes of a value, and of the texts that are read from a damaged file at once.
    max_length = MOST_LENGTH
    _clock: _Clock | None = None
    _path: Path | None = None
    _size = -1

    def guard(self, path: Path) -> None:
        """Bound the time of statements and the size of values by the size of the file at `path`."""
        self._path, self._clock = path, _Clock(PATIENCE_S)
        self.set_progress_handler(self._clock.look, STEPS)

    def unguard(self) -> None:
        """End the bounds: the file was recognized, and this process writes to it."""
        self._path = self._clock = None
        self.set_progress_handler(None, 0)
        self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_LENGTH)

    def _begin_statement(self, path: Path, clock: _Clock) -> None:
        """Begin to measure, with the bounds of the file's present size: somebody may be recording to it."""
        clock.restart()
        size = max(measure(path), self._size)  # A file that was removed is as large as it was.
        if size != self._size:
            self._size = size
            clock.seconds = PATIENCE_S + size / BYTES_PER_S
            self.max_rows = 1_000 + size // ROW_BYTES
            self.max_length = min(MOST_LENGTH, max(LEAST_LENGTH, LENGTH_RATIO * size))
            self.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self.max_length)

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """As `sqlite3.Connection.execute`. NotASession if the file takes too long."""
        if self._clock is None or self._path is None:
            return super().execute(*args)
        if not self._clock.is_over:
            self._begin_statement(self._path, self._clock)
        try:
            return super().execute(*args)
        except sqlite3.OperationalError:
            self.raise_if_over()
            raise

    def raise_if_over(self) -> None:
        """NotASession if a statement took too long."""
        if self._clock is not None and self._clock.is_over:
            raise NotASession(
                f"reading {self._path} took more than {self._clock.seconds:.0f} s of CPU time, too long for its size; "
                "the file is damaged or was made to do this, ask for a new copy"
            )


def connect(uri: str, path: Path, is_guarded: bool, statements: int = STATEMENTS) -> GuardedConnection:
    """Connect to a session file; `is_guarded` if somebody else may have written it. `statements` are kept for later.

    sqlite3.DatabaseError if it can't be read.
    """
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=LOCK_S,
        isolation_level=None,
        check_same_thread=False,
        factory=GuardedConnection,
        cached_statements=statements,
    )
    try:
        if is_guarded:
            connection.guard(path)
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA mmap_size=0")
    except BaseException:
        connection.close()
        raise
    return connection


def forbid_schema_changes(connection: sqlite3.Connection) -> None:
    """Switch on SQLite's defensive mode, where Python can (3.12)."""
    defensive = getattr(sqlite3, "SQLITE_DBCONFIG_DEFENSIVE", None)
    if defensive is not None:
        with contextlib.suppress(sqlite3.Error):
            connection.setconfig(defensive, True)  # type: ignore[attr-defined]


def measure(path: Path) -> int:
    """Bytes of a session file and of what is not yet in it."""
    size = 0
    for name in (path, f"{path}-wal"):
        # A -wal is often missing. What is raised and caught keeps its frames alive if an interrupt comes just then.
        if os.path.exists(name):
            with ignore(OSError):
                size += os.stat(name).st_size
    return size
