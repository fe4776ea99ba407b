"""A session as Parquet partitions: a folder a table, in it a file a log; what a cluster writes and `load` reads.

    folder/events/00012.parquet  folder/compiles/00012.parquet  ...  folder/payloads/00012.parquet
    folder/logs/00012.json       what was read of that log, written last: a log without it is not done

A table's folder is a data set of its own for whatever reads Parquet; `event_id` counts within a file.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import CompilediagError
from ..events import KINDS
from ..storage.store import COMMON, SQL_TYPES, Store, own_fields
from .ending import finish, told
from .log_decoder import ReadTally
from .log_files import LogFile
from .reading import last_id

MARKS = "logs"
#: Rows that are held at once; of texts, which are longer, fewer.
ROWS, TEXTS = 20_000, 500


def columns() -> dict[str, dict[str, str]]:
    """Table -> column -> SQL type, of every table that has partitions."""
    shared = {"time_ns": "INTEGER", "rank": "INTEGER", "pid": "INTEGER", "duration_s": "REAL"}
    tables = {"events": {"id": "INTEGER", **{name: shared.get(name, "TEXT") for name in COMMON}}}
    for cls in KINDS:
        own = {f.name: SQL_TYPES[f.metadata["dtype"]] for f in own_fields(cls)}
        tables[cls.table] = {"event_id": "INTEGER", **own}
    return {**tables, "payloads": {"digest": "TEXT", "size": "INTEGER", "body": "BLOB"}}


def require_parquet() -> Any:
    """pyarrow and its Parquet; CompilediagError in one line where it is not installed."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise CompilediagError("partitions are Parquet, which needs pyarrow: pip install pyarrow") from None


# Writing


def write_partition(part: Store, folder: Path, number: int, log: LogFile, tally: ReadTally, dropped: int) -> None:
    """Write the session of one log as partition `number`, its mark last. OSError if the folder can't be written."""
    arrow, parquet = require_parquet()
    for table, spec in columns().items():
        rows = part.connection.execute(f"SELECT {', '.join(_quoted(spec))} FROM {table}")
        _write_table(arrow, parquet, rows, spec, folder / table / f"{number:05}.parquet")
    mark = {**mark_of(log), "tally": tally.as_json(), "dropped": dropped}
    _put(folder / MARKS / f"{number:05}.json", json.dumps(mark))


def mark_of(log: LogFile) -> dict[str, Any]:
    """What says of a partition which log it is of."""
    return {"version": __version__, "log": str(log.path.absolute()), "size": log.size, "changed_ns": log.changed_ns}


def tally_of(folder: Path, number: int, log: LogFile) -> ReadTally | None:
    """What was read into partition `number`; None if it is not there, or not of this log as it is now."""
    try:
        mark = json.loads((folder / MARKS / f"{number:05}.json").read_text())
        return ReadTally.from_json(mark["tally"]) if mark_of(log).items() <= mark.items() else None
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def prepare(folder: Path, logs: Sequence[LogFile]) -> dict[int, ReadTally]:
    """Make the folder, or take the marks of other logs out of the one that is there; what is done already, by number.

    CompilediagError if it can't be made, or holds something else.
    """
    try:
        folder.mkdir(exist_ok=True)
        if any(folder.iterdir()) and not (folder / MARKS).is_dir():
            raise CompilediagError(f"{folder} is there and holds no partitions: give another folder")
        (folder / MARKS).mkdir(exist_ok=True)
        done = {number: tally_of(folder, number, log) for number, log in enumerate(logs)}
        for mark in (folder / MARKS).glob("[0-9]*.json"):
            if done.get(int(mark.stem)) is None:
                mark.unlink()
    except OSError as error:
        raise CompilediagError(f"{folder} can't be written: {error.strerror}") from None
    return {number: tally for number, tally in done.items() if tally is not None}


def _write_table(arrow: Any, parquet: Any, rows: Any, spec: dict[str, str], target: Path) -> None:
    """Write a table in steps, whole or not at all; no file of an empty one."""
    types = {"INTEGER": arrow.int64(), "REAL": arrow.float64(), "TEXT": arrow.string(), "BLOB": arrow.binary()}
    schema = arrow.schema([(name, types[kind]) for name, kind in spec.items()])
    step = TEXTS if "BLOB" in spec.values() else ROWS
    batch = rows.fetchmany(step)
    if not batch:
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    with parquet.ParquetWriter(temporary, schema, compression="zstd") as writer:
        while batch:
            values = zip(zip(*batch, strict=True), schema.types, strict=True)
            arrays = [arrow.array(cells, kind) for cells, kind in values]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            batch = rows.fetchmany(step)
    os.replace(temporary, target)


def _put(target: Path, text: str) -> None:
    target.parent.mkdir(exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(text)
    os.replace(temporary, target)


# Reading


def has_partitions(folder: Path) -> bool:
    return next((folder / MARKS).glob("[0-9]*.json"), None) is not None and (folder / "events").is_dir()


def add_partitions(store: Store, folder: Path) -> None:
    """Append all partitions of a folder to a session, in the order of their numbers, and say what was read.

    CompilediagError, in one line, if one can't be read.
    """
    _, parquet = require_parquet()
    tally, dropped, files = ReadTally(), 0, 0
    for mark in sorted((folder / MARKS).glob("[0-9]*.json")):
        try:
            stored = json.loads(mark.read_text())
            tally.add(ReadTally.from_json(stored["tally"]))
            dropped += int(stored["dropped"])
            _add(store, parquet, folder, mark.stem)
        except CompilediagError:
            raise
        except Exception as error:
            raise CompilediagError(f"partition {mark.stem} of {folder} can't be read: {error}") from None
        files += 1
    finish(store, tally, dropped, told(files, 0, tally))


def _add(store: Store, parquet: Any, folder: Path, number: str) -> None:
    last = last_id(store)
    with store.connection as db:
        db.execute("BEGIN IMMEDIATE")
        for table, spec in columns().items():
            file = folder / table / f"{number}.parquet"
            if file.is_file():
                head = f"INSERT {'OR IGNORE ' if table == 'payloads' else ''}INTO {table} "
                for names, rows in _batches(parquet, file, spec, last):
                    marks = ", ".join("?" * len(names))
                    db.executemany(f"{head}({', '.join(_quoted(names))}) VALUES ({marks})", rows)


def _batches(parquet: Any, file: Path, spec: dict[str, str], last: int) -> Iterator[tuple[list[str], list[Any]]]:
    """(columns, rows) of a file, ids moved on by `last`. Columns that are not of the table are left out."""
    with parquet.ParquetFile(file) as opened:
        names = [name for name in spec if name in opened.schema_arrow.names]
        key = next(iter(spec))
        if key not in names:
            raise CompilediagError(f"{file} has no column {key}")
        step = TEXTS if "BLOB" in spec.values() else ROWS
        for batch in opened.iter_batches(step, columns=names):
            values = batch.to_pydict()
            if key != "digest":
                values[key] = [number + last for number in values[key]]
            yield names, list(zip(*(values[name] for name in names), strict=True))


def _quoted(names: Any) -> list[str]:
    return [f'"{name}"' for name in names]
