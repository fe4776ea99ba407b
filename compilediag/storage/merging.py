"""Several session files as one: rows of one file after the other, each with the ids that come next.

SQLite copies the rows itself, and nothing in a file is executed. Compile keys stay as they are;
where two files use the same ones, those of the later file are renamed.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from .rows import list_columns
from .store import Store, insert_facts, measure

#: Pages that a session's file may grow by with a part: so many, and so many times the size of the part.
LEAST_PAGES, GROWTH = 1_000, 16
#: SQLite's own limit.
MOST_PAGES = 0xFFFFFFFE
#: The part of a compile key that all keys of one process begin with.
TOKEN = "substr({column}, 1, instr({column}, '.') - 1)"


@dataclass(frozen=True)
class CopiedPart:
    """How far a session file is copied: up to the event with the id `last`; `tokens` are its keys' new first parts."""

    last: int = 0
    tokens: Mapping[str, str] = field(default_factory=dict)


def add_part(
    store: Store,
    part: Path,
    copied: CopiedPart = CopiedPart(),
    after: Callable[[int], dict[str, Any]] | None = None,
) -> CopiedPart:
    """Append what the session file `part` has beyond `copied`, all of it or nothing, and return how far it is copied.

    Another process may be writing to the part. `after` is called with the id of the last event then; what it returns
    goes into the session's meta with them. CompilediagError, in one line, if the part can't be read.
    """
    db = store.connection
    current = Store.open(part)
    current.connection.close()
    try:
        # As it could be opened: a process that is killed while it ends can leave a file that only reads as immutable.
        db.execute("ATTACH ? AS part", (current.uri,))
    except sqlite3.DatabaseError as error:
        raise CompilediagError(f"{part} can't be read: {error}") from None
    try:
        with db, _bound_part(store, current.path):
            db.execute("BEGIN IMMEDIATE")
            known = _find_tokens(db, "main") if store.key_tokens is None else store.key_tokens
            fresh = _find_tokens(db, "part", copied.last) - copied.tokens.keys()
            tokens = {**copied.tokens, **{t: secrets.token_hex(4) if t in known else t for t in fresh}}
            last = _copy(db, {old: new for old, new in tokens.items() if old != new}, copied.last)
            copied = CopiedPart(_find_last_id(db, "part"), tokens)
            insert_facts(db, after(last) if after else {})
        store.key_tokens = known | set(tokens.values())
    except sqlite3.DatabaseError as error:
        raise CompilediagError(f"{part} can't be added to {store.path}: {error}") from None
    finally:
        db.execute("DETACH part")
    return copied


@contextlib.contextmanager
def _bound_part(store: Store, part: Path) -> Iterator[None]:
    """In the block, statements take no longer, and the session's file grows no more, than a part of that size can need:
    somebody else may have written it.
    """
    db = store.connection
    pages, size = (int(db.execute(f"PRAGMA main.{name}").fetchone()[0]) for name in ("page_count", "page_size"))
    db.guard(part)
    db.execute(f"PRAGMA main.max_page_count = {pages + LEAST_PAGES + GROWTH * measure(part) // size}")
    try:
        yield
    finally:
        db.unguard()
        db.execute(f"PRAGMA main.max_page_count = {MOST_PAGES}")


def _find_last_id(db: sqlite3.Connection, schema: str) -> int:
    return int(db.execute(f"SELECT coalesce(max(id), 0) FROM {schema}.events").fetchone()[0])


def _find_tokens(db: sqlite3.Connection, schema: str, after: int = 0) -> set[str]:
    token = TOKEN.format(column="compile_key")
    query = f"SELECT DISTINCT {token} FROM {schema}.events WHERE compile_key IS NOT NULL AND id > {int(after)}"
    return {found for (found,) in db.execute(query)}


def _copy(db: sqlite3.Connection, renamed: dict[str, str], after: int) -> int:
    """Copy the rows with ids above `after`, with other tokens in their compile keys where these are renamed; the last
    id.
    """
    shift = _find_last_id(db, "main") - after
    for table, columns in list_columns().items():
        if table != "payloads":
            number, *others = columns
            names = ", ".join([number, *(f'"{name}"' for name in others)])
            values = ", ".join([f"{number} + {shift}", *(_value_of(name, renamed) for name in others)])
            rows = f"part.{table} WHERE {number} > {int(after)} ORDER BY {number}"
            db.execute(f"INSERT INTO main.{table} ({names}) SELECT {values} FROM {rows}")
    wanted = f"WHERE digest IN (SELECT digest FROM part.artifacts WHERE event_id > {int(after)})" if after else ""
    db.execute(f"INSERT OR IGNORE INTO main.payloads SELECT digest, size, body FROM part.payloads {wanted}")
    return _find_last_id(db, "main")


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
