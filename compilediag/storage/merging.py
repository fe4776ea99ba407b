"""Several session files as one: rows of one file after the other, each with the ids that come next.

SQLite copies the rows itself. Nothing in a file is executed, and of an older file the columns that it lacks are NA.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..events import KINDS
from .store import COMMON, Store, own_fields


def add_part(store: Store, part: Path, after: Callable[[int], dict[str, Any]] | None = None) -> None:
    """Append all events and texts of the session file `part`: all of it or nothing.

    `after` is given the last id then, and what it gives goes into the session's meta with them. CompilediagError, in
    one line, if the part can't be read.
    """
    db = store.connection
    try:
        db.execute("ATTACH ? AS part", (f"{part.absolute().as_uri()}?mode=ro",))
    except sqlite3.DatabaseError as error:
        raise CompilediagError(f"{part} can't be read: {error}") from None
    try:
        with db:
            db.execute("BEGIN IMMEDIATE")
            last = _copy(db)
            meta = after(last) if after else {}
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in meta.items()])
    except sqlite3.DatabaseError as error:
        raise CompilediagError(f"{part} can't be added to {store.path}: {error}") from None
    finally:
        db.execute("DETACH part")


def _copy(db: sqlite3.Connection) -> int:
    """Copy the rows of all tables; the last event's id."""
    last = db.execute("SELECT coalesce(max(id), 0) FROM main.events").fetchone()[0]
    common = [name for _, name, *_ in db.execute("PRAGMA part.table_info(events)") if name in COMMON]
    names = ", ".join(common)
    db.execute(f"INSERT INTO main.events (id, {names}) SELECT id + ?, {names} FROM part.events ORDER BY id", (last,))
    for cls in KINDS:
        stored = {name for _, name, *_ in db.execute(f"PRAGMA part.table_info({cls.table})")}
        own = "".join(f', "{f.name}"' for f in own_fields(cls) if f.name in stored)
        if stored:
            copied = f"SELECT event_id + ?{own} FROM part.{cls.table} ORDER BY event_id"
            db.execute(f"INSERT INTO main.{cls.table} (event_id{own}) {copied}", (last,))
    db.execute("INSERT OR IGNORE INTO main.payloads SELECT digest, size, body FROM part.payloads")
    return db.execute("SELECT coalesce(max(id), 0) FROM main.events").fetchone()[0]
