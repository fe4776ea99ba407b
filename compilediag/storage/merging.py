"""Several session files as one: rows of one file after the other, each with the ids that come next.

SQLite copies the rows itself, and nothing in a file is executed. Files of an older schema are upgraded first. Compile
keys stay as they are; where two files use the same ones, those of the later file are renamed.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..events import KINDS
from .store import COMMON, Store, own_fields
from .upgrade import open_current

#: The part of a compile key that all keys of one process begin with.
TOKEN = "substr({column}, 1, instr({column}, '.') - 1)"


def add_part(store: Store, part: Path, after: Callable[[int], dict[str, Any]] | None = None) -> None:
    """Append all events and texts of the session file `part`: all of it or nothing.

    `after` is called with the id of the last event then; what it returns goes into the session's meta with them.
    CompilediagError, in one line, if the part can't be read.
    """
    db = store.connection
    current = open_current(part)
    current.connection.close()
    try:
        db.execute("ATTACH ? AS part", (f"{current.path.absolute().as_uri()}?mode=ro",))
    except sqlite3.DatabaseError as error:
        raise CompilediagError(f"{part} can't be read: {error}") from None
    try:
        with db:
            db.execute("BEGIN IMMEDIATE")
            known = _find_tokens(db, "main") if store.key_tokens is None else store.key_tokens
            tokens = _find_tokens(db, "part")
            last = _copy(db, {token: secrets.token_hex(4) for token in tokens & known})
            meta = after(last) if after else {}
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in meta.items()])
        store.key_tokens = known | tokens
    except sqlite3.DatabaseError as error:
        raise CompilediagError(f"{part} can't be added to {store.path}: {error}") from None
    finally:
        db.execute("DETACH part")


def _find_tokens(db: sqlite3.Connection, schema: str) -> set[str]:
    token = TOKEN.format(column="compile_key")
    query = f"SELECT DISTINCT {token} FROM {schema}.events WHERE compile_key IS NOT NULL"
    return {found for (found,) in db.execute(query)}


def _copy(db: sqlite3.Connection, renamed: dict[str, str]) -> int:
    """Copy the rows of all tables, with other tokens in their compile keys where these are renamed; the last id."""
    last = db.execute("SELECT coalesce(max(id), 0) FROM main.events").fetchone()[0]
    _copy_table(db, "events", "id", COMMON, last, renamed)
    for kind in KINDS:
        _copy_table(db, kind.table, "event_id", [f.name for f in own_fields(kind)], last, renamed)
    db.execute("INSERT OR IGNORE INTO main.payloads SELECT digest, size, body FROM part.payloads")
    return int(db.execute("SELECT coalesce(max(id), 0) FROM main.events").fetchone()[0])


def _copy_table(
    db: sqlite3.Connection, table: str, number: str, columns: Sequence[str], last: int, renamed: dict[str, str]
) -> None:
    names = ", ".join([number, *(f'"{name}"' for name in columns)])
    values = ", ".join([f"{number} + {last}", *(_value_of(name, renamed) for name in columns)])
    db.execute(f"INSERT INTO main.{table} ({names}) SELECT {values} FROM part.{table} ORDER BY {number}")


def _value_of(column: str, renamed: dict[str, str]) -> str:
    """The SQL of a copied column: a compile key whose token is used by another file gets a new one."""
    if not renamed or not column.endswith("compile_key"):
        return f'"{column}"'
    number = f"substr({column}, instr({column}, '.'))"
    cases = " ".join(f"WHEN {_quote(old)} THEN '{new}' || {number}" for old, new in renamed.items())
    return f"CASE {TOKEN.format(column=column)} {cases} ELSE {column} END"


def _quote(text: str) -> str:
    """A text from a file as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
