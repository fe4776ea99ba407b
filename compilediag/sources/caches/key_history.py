"""Cache keys of earlier sessions, in a small file of the user, to explain cache misses on the first run.

The file is `compilediag/keys-1.sqlite` in the user's cache directory (`XDG_CACHE_HOME`, else `~/.cache`), readable by
the user alone. For each key it contains: function, file and line, when and in which program it was seen, names and
values of the compiler's configuration, shapes of inputs, and the lines of the graph (operators and constants, none of
the user's source). It is bounded, and torch's own cache directory contains the same data.
`COMPILEDIAG_HISTORY=off` switches it off, and the sessions that `compilediag run` keeps with it;
`COMPILEDIAG_HISTORY=PATH` puts it elsewhere. A file that can't be read or written costs the history and nothing else,
and so does one that another user may have written: a link, a file or a folder that others own or can write to, tables
that are not ours, values that unpack to very much.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sqlite3
import stat
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from ...decode.cache_keys import CacheKey, Components, KeyHistory, KeyOwner, read_components
from ...errors import CompilediagError
from ...events import SourceStatus
from ...formatting import format_line
from ...storage.rows import unpack
from ...system import clock
from ...system.files import HISTORY, find_user_folder, is_history_off, make_absolute
from ...system.interrupts import ignore, pass_on
from ...system.own_errors import log_debug
from ...system.program import program_name
from ..compile_context import CompileContext, EventSink
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import Hook, Source, hook
from ..hooks.torch_names import call_argument, call_arguments
from . import torch_api

#: Limits: keys of one owner, keys of all owners, bytes of all keys.
MAX_OF_OWNER, MAX_KEYS, MAX_BYTES = 8, 2_000, 8 * 2**20
#: Seconds to wait for another process that writes, and after such a wait until the file is tried again.
PATIENCE_S, RETRY_S = 0.5, 10.0
#: Errors that do not mean that the file is damaged.
NOT_DAMAGE = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
Found = TypeVar("Found")
SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (digest TEXT PRIMARY KEY, body BLOB);
CREATE TABLE IF NOT EXISTS keys (
    id INTEGER PRIMARY KEY, owner TEXT, key TEXT, seen_ns INTEGER, seen_in TEXT, settings TEXT, own BLOB,
    UNIQUE (owner, key)
);
"""
#: What SQLite stores of the schema.
PLAIN = {
    " ".join(statement.split()).replace("IF NOT EXISTS ", "") for statement in SCHEMA.split(";") if statement.strip()
}
#: A larger file is not ours: its keys have MAX_BYTES, the rest is configuration. A part of a key is not longer.
MAX_FILE, MAX_PART = 64 << 20, 4 << 20
#: CPU seconds that a use of the file may take, and steps of SQLite between two looks at the clock.
MOST_S, STEPS = 1.0, 10_000
PRUNE = (
    "DELETE FROM keys WHERE owner = :owner AND id NOT IN"
    " (SELECT id FROM keys WHERE owner = :owner ORDER BY seen_ns DESC, id DESC LIMIT :of_owner)",
    "DELETE FROM keys WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER newest AS place,"
    " sum(length(own)) OVER newest AS bytes FROM keys WINDOW newest AS (ORDER BY seen_ns DESC, id DESC))"
    " WHERE place > :keys OR bytes > :bytes)",
    "DELETE FROM settings WHERE digest NOT IN (SELECT settings FROM keys)",
)


def default_path() -> Path | None:
    """The path of the history unless the variable is set; None for a user without a home."""
    folder = find_user_folder("XDG_CACHE_HOME", ".cache")
    return None if folder is None else folder / "keys-1.sqlite"


class StoredKeys:
    """The keys of earlier sessions. Never raises: `problem` says why they are not available any more.

    Each call opens and closes the file: nothing is open while a process forks, and several processes may write.
    `replaceable`: the file is ours, and is created anew if it is damaged.
    """

    def __init__(self, path: Path | None, torch_version: str | None = None, replaceable: bool = False):
        self._path = path
        self._replaceable = replaceable
        self._seen_in = ", ".join(filter(None, [program_name(), torch_version and f"torch {torch_version}"]))
        self._began_ns = clock.now_ns()
        self._packed: tuple[Components, str, bytes] | None = None
        self._retry_at = 0.0
        self.problem: str | None = None

    @classmethod
    def of_user(cls, torch_version: str | None) -> StoredKeys:
        """The history of the path in the variable, or the user's own."""
        setting = os.environ.get(HISTORY, "")
        if is_history_off():
            return cls(None)
        if not setting:
            return cls(default_path(), torch_version, True)
        try:
            return cls(make_absolute(setting), torch_version)
        except CompilediagError:  # The working directory was deleted.
            return cls(None)

    def earlier(self, owner: KeyOwner) -> list[tuple[str, Components, str]]:
        """The keys of an owner that earlier sessions saw, the oldest first: name, components, when and where."""
        if self._path is None or not os.path.exists(self._path):
            return []
        return self._run(lambda db: _earlier(db, _text(owner), self._began_ns)) or []

    def remember(self, keys: Sequence[tuple[KeyOwner, CacheKey]]) -> None:
        """Keep keys for later sessions; the oldest are deleted."""
        if self._path is None:
            return
        packed = []
        for owner, key in keys:
            if self._packed is None or self._packed[0] is not key.settings:
                body = _pack(key.settings)
                self._packed = key.settings, f"{zlib.crc32(body):08x}{zlib.adler32(body):08x}{len(body):x}", body
            settings = self._packed[1:]
            row = (_text(owner), key.key, clock.now_ns(), self._seen_in, settings[0], _pack(key.own))
            packed.append((settings, row))
        self._run(lambda db: _remember(db, packed))

    def _run(self, work: Callable[[sqlite3.Connection], Found]) -> Found | None:
        """The result of `work` on the open file, which is created if need be; None if that fails.

        While another process writes for long, answers are lost; any other error ends the history.
        """
        path, db = self._path, None
        if path is None or time.monotonic() < self._retry_at:
            return None
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_file(path)
            db = sqlite3.connect(path, timeout=PATIENCE_S, isolation_level=None)
            # It is on the path of a compile.
            began = time.thread_time()
            db.set_progress_handler(lambda: time.thread_time() - began > MOST_S, STEPS)
            db.execute("PRAGMA trusted_schema=OFF")
            db.execute("PRAGMA synchronous=OFF")
            # SQLite could run code of the author of another table or trigger.
            for kind, sql in db.execute("SELECT type, sql FROM sqlite_master LIMIT 10"):
                if sql is not None and (kind != "table" or " ".join(str(sql).split()) not in PLAIN):
                    raise ValueError(f"it has another {kind} than ours")
            db.executescript(SCHEMA)
            return work(db)
        except Exception as error:
            pass_on(error)
            log_debug("compilediag: the key history %s: %s", path, error)
            self._report_failure(path, error)
            return None
        finally:
            if db is not None:
                db.close()

    def _report_failure(self, path: Path, error: Exception) -> None:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            self._retry_at = time.monotonic() + RETRY_S
            return
        self.problem, self._path = f"{type(error).__name__}: {error}", None
        if self._replaceable and not isinstance(error, OSError) and code not in NOT_DAMAGE:
            with ignore(OSError):
                path.unlink()


def _check_file(path: Path) -> None:
    """Create the file for its owner alone if it does not exist.

    PermissionError if others could have written it; OSError if it is a link, or no regular file.
    """
    folder = os.stat(path.parent)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    handle = os.open(path, flags, 0o600)
    try:
        file = os.fstat(handle)
    finally:
        os.close(handle)
    if not stat.S_ISREG(file.st_mode):
        raise FileExistsError(f"{path} is not a regular file")
    for place in (folder, file):
        if hasattr(os, "geteuid") and place.st_uid != os.geteuid():
            raise PermissionError(f"{path} or its folder belongs to another user")
        if hasattr(os, "geteuid") and place.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"other users can write to {path} or its folder; chmod go-w both")
    if file.st_size > MAX_FILE:
        raise ValueError(f"{path} has more than {MAX_FILE >> 20} MB")


def _earlier(db: sqlite3.Connection, owner: str, before_ns: int) -> list[tuple[str, Components, str]]:
    query = (
        "SELECT k.key, k.own, s.body, k.seen_ns, k.seen_in FROM keys k JOIN settings s ON s.digest = k.settings"
        " WHERE k.owner = ? AND k.seen_ns < ? ORDER BY k.seen_ns DESC, k.id DESC LIMIT ?"
    )
    rows = db.execute(query, (owner, before_ns, MAX_OF_OWNER)).fetchall()[::-1]
    found = [(key, {**_unpack(own), **_unpack(body)}, _format_seen(ns, where)) for key, own, body, ns, where in rows]
    return [(str(key), components, seen) for key, components, seen in found]


def _remember(db: sqlite3.Connection, keys: Sequence[tuple[tuple[str, bytes], tuple[Any, ...]]]) -> None:
    db.execute("BEGIN IMMEDIATE")
    for settings, row in keys:
        db.execute("INSERT OR IGNORE INTO settings VALUES (?, ?)", settings)
        db.execute(
            "INSERT OR REPLACE INTO keys (owner, key, seen_ns, seen_in, settings, own) VALUES (?, ?, ?, ?, ?, ?)", row
        )
    limits = {"of_owner": MAX_OF_OWNER, "keys": MAX_KEYS, "bytes": MAX_BYTES}
    for owner in {row[0] for _, row in keys}:
        db.execute(PRUNE[0], {"owner": owner, **limits})
    for statement in PRUNE[1:]:
        db.execute(statement, limits)
    db.execute("COMMIT")


def _text(owner: KeyOwner) -> str:
    return json.dumps([owner.cache, owner.function, owner.file, owner.line, owner.backward])


def _pack(components: Components) -> bytes:
    return zlib.compress(json.dumps(components).encode(), 1)


def _unpack(body: bytes) -> Components:
    return read_components(json.loads(unpack(body, MAX_PART)))


def _format_seen(ns: int, where: str) -> str:
    if ns < 0:
        raise ValueError(f"{ns} is before 1970")
    at = datetime.fromtimestamp(ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return ", ".join(filter(None, [at, format_line(where or "", 200)]))


def shared_history(context: CompileContext) -> KeyHistory:
    """The key history of a recording, which all of its sources share."""
    if context.key_history is None:
        version = str(sys.modules["torch"].__version__)
        context.key_history = KeyHistory(StoredKeys.of_user(version), version)
    return context.key_history


class CacheKeys(Source):
    """The components of cache keys, in `full`, to compare a miss with the nearest earlier key.

    The components of FxGraphCache's keys come with its announcements, and those of AOTAutogradCache on torch 2.11; on
    2.13 the latter are only written where their logger is at DEBUG, so they are read here, from the object that is
    hashed. What torch's texts leave out, the values of a graph's constants and of AOTAutograd's configuration, is read
    here too.
    """

    name = "keys"
    needs = (torch_api.AOT_KEY_HASHED, torch_api.TENSOR_METADATA, torch_api.SAVE_CONFIG)
    details = ("full",)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._history = shared_history(self.context)
        self._settings = torch_api.SettingTexts()

    def close(self) -> None:
        """The last that is handed over: all look-ups are compared before."""
        self.emit(self._history.save)

    @classmethod
    def list_hooks(cls) -> list[Hook]:
        if torch_api.AOT_KEY_LINES.exists():
            autograd = Hook(torch_api.AOT_KEY_LINES, cls._autograd_details)
        else:
            autograd = Hook(torch_api.AOT_KEY_HASHED, cls._autograd_key)
        return [*super().list_hooks(), autograd]

    @hook(torch_api.FX_KEY_HASHED)
    def _graph_key(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._note(result[0], torch_api.graph_constants(call_argument(args, kwargs, 0, "gm")), {})

    def _autograd_key(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is None:
            self._note(result[0], {}, self._settings.read(torch_api.autograd_config()))

    def _autograd_details(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        pickler, details, key = call_arguments(args, kwargs, pickler=0, details=1, key=2)
        settings = self._settings.read(torch_api.autograd_settings(details))
        self._note(key, torch_api.autograd_components(pickler, details), settings)

    def _note(self, key: str, texts: dict[str, str], settings: dict[str, str]) -> None:
        if texts or settings:
            self.emit(self._history.note, key, texts, settings)

    def status(self) -> SourceStatus:
        status, problem = super().status(), self._history.problem
        if status.status == "active" and status.reason is None and problem is not None:
            return dataclasses.replace(status, reason=f"keys of earlier sessions are not known: {problem}")
        return status
