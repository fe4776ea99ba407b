"""A session as Parquet partitions, one folder per table and one file per log: a cluster writes it, `load` reads it.

    folder/events/00012.parquet  folder/compiles/00012.parquet  ...  folder/payloads/00012.parquet
    folder/logs/00012.json       the mark of that log: what was read. It is written last; without it the log is not done

The folder of a table is a data set of its own for any Parquet reader; `event_id` counts within a file.

The cluster runs one task per log. Its workers need compilediag and pyarrow, and see the logs and the folder under the
same paths. Partitions that exist already are kept, so the same command continues an interrupted one.
"""

from __future__ import annotations

import importlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..storage.data import find_last_id
from ..storage.rows import list_columns
from ..storage.store import Store
from ..system.files import open_private, write_file
from ..version import __version__
from .log_decoder import ReadTally
from .log_files import LogFile, ProgressBar, find_logs, separate_copies
from .log_session import MARKS, LogWriter, describe_tally, finish_session, write_part

#: Rows that are held at once; fewer of texts, which are longer.
ROWS, TEXTS = 20_000, 500
#: Most bytes of a mark and of a partition; compilediag writes no larger ones.
MAX_MARK, MAX_FILE = 1 << 20, 64 << 30


def require_parquet() -> Any:
    """Return pyarrow and its Parquet module. CompilediagError, in one line, if pyarrow is not installed."""
    try:
        return importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise CompilediagError('partitions need the package pyarrow: pip install "compilediag[dask]"') from None


# Writing


def write_partition(part: Store, folder: Path, number: int, log: LogFile, tally: ReadTally) -> None:
    """Write the session of one log as partition `number`, its mark last. OSError if the folder can't be written."""
    arrow, parquet = require_parquet()
    for table, spec in list_columns().items():
        rows = part.connection.execute(f"SELECT {', '.join(_quote_all(spec))} FROM {table}")
        _write_table(arrow, parquet, rows, spec, folder / table / f"{number:05}.parquet")
    mark = {**make_mark(log), "tally": tally.as_json()}
    write_file(folder / MARKS / f"{number:05}.json", json.dumps(mark))


def make_mark(log: LogFile) -> dict[str, Any]:
    """Return the part of a partition's mark that identifies its log."""
    return {"version": __version__, "log": str(log.path.absolute()), "size": log.size, "changed_ns": log.changed_ns}


def read_tally(folder: Path, number: int, log: LogFile) -> ReadTally | None:
    """Return what was read into partition `number`; None if it is missing, or if the log has changed since."""
    try:
        mark = json.loads((folder / MARKS / f"{number:05}.json").read_text())
        return ReadTally.from_json(mark["tally"]) if make_mark(log).items() <= mark.items() else None
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None


def prepare_folder(folder: Path, logs: Sequence[LogFile]) -> dict[int, ReadTally]:
    """Create the folder, or delete the marks of other logs in it; return number -> tally of what is done already.

    CompilediagError if it can't be created, or if it contains something else.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if any(folder.iterdir()) and not (folder / MARKS).is_dir():
            raise CompilediagError(f"{folder} already exists and contains no partitions; choose another folder")
        (folder / MARKS).mkdir(mode=0o700, exist_ok=True)
        done = {number: read_tally(folder, number, log) for number, log in enumerate(logs)}
        for mark in (folder / MARKS).glob("[0-9]*.json"):
            if done.get(int(mark.stem)) is None:
                mark.unlink()
    except OSError as error:
        raise CompilediagError(f"{folder} can't be written: {error.strerror}") from None
    return {number: tally for number, tally in done.items() if tally is not None}


def _write_table(arrow: Any, parquet: Any, rows: Any, spec: dict[str, str], target: Path) -> None:
    """Write a table in steps, as a whole or not at all. An empty table has no file."""
    types = {"INTEGER": arrow.int64(), "REAL": arrow.float64(), "TEXT": arrow.string(), "BLOB": arrow.binary()}
    schema = arrow.schema([(name, types[kind]) for name, kind in spec.items()])
    step = TEXTS if "BLOB" in spec.values() else ROWS
    batch = rows.fetchmany(step)
    if not batch:
        target.unlink(missing_ok=True)
        return
    target.parent.mkdir(mode=0o700, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    with (
        open(temporary, "wb", opener=open_private) as file,
        parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        while batch:
            values = zip(zip(*batch, strict=True), schema.types, strict=True)
            arrays = [arrow.array(cells, kind) for cells, kind in values]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            batch = rows.fetchmany(step)
    os.replace(temporary, target)


# Reading


def add_partitions(store: Store, folder: Path) -> None:
    """Append all partitions of a folder to a session, in the order of their numbers, and finish it.

    CompilediagError, in one line, if one can't be read.
    """
    _, parquet = require_parquet()
    tally, files = ReadTally(), 0
    for mark in sorted((folder / MARKS).glob("[0-9]*.json")):
        try:
            stored = json.loads(_check_part(mark, MAX_MARK).read_text())
            tally.add(ReadTally.from_json(stored["tally"]))
            _add_partition(store, parquet, folder, mark.stem)
        except CompilediagError:
            raise
        except Exception as error:
            raise CompilediagError(f"partition {mark.stem} of {folder} can't be read: {error}") from None
        files += 1
    finish_session(store, tally, describe_tally(files, 0, tally))


def _check_part(file: Path, most: int) -> Path:
    """The file. CompilediagError for a link, anything but a regular file, or one of more than `most` bytes."""
    status = file.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        raise CompilediagError(f"{file} is not a regular file, or has more than {most >> 20} MB")
    return file


def _add_partition(store: Store, parquet: Any, folder: Path, number: str) -> None:
    last = find_last_id(store, "events")
    with store.connection as db:
        db.execute("BEGIN IMMEDIATE")
        for table, spec in list_columns().items():
            file = folder / table / f"{number}.parquet"
            if os.path.lexists(file):
                _check_part(file, MAX_FILE)
                head = f"INSERT {'OR IGNORE ' if table == 'payloads' else ''}INTO {table} "
                for names, rows in _read_batches(parquet, file, spec, last):
                    marks = ", ".join("?" * len(names))
                    db.executemany(f"{head}({', '.join(_quote_all(names))}) VALUES ({marks})", rows)


def _read_batches(
    parquet: Any, file: Path, spec: dict[str, str], last: int
) -> Iterator[tuple[list[str], list[tuple[Any, ...]]]]:
    """Yield (columns, rows) of a file, with `last` added to the ids. Columns that the table lacks are left out."""
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


def _quote_all(names: Iterable[str]) -> list[str]:
    return [f'"{name}"' for name in names]


# On the cluster

#: How long to wait for the scheduler.
PATIENCE = "30s"


def read_on_cluster(given: Sequence[Any], folder: Path, address: str) -> tuple[ReadTally, str]:
    """Read logs into `folder` on the cluster at `address`; return the tally and a description of it.

    CompilediagError, in one line, if the cluster can't be reached, if a worker can't do it, or if a log can't be read.
    """
    require_parquet()
    try:
        distributed = importlib.import_module("distributed")
    except ImportError:
        raise CompilediagError(
            'a Dask cluster needs the package distributed: pip install "compilediag[dask]"'
        ) from None
    logs, copies = separate_copies(find_logs(given))
    done = prepare_folder(folder, logs)
    whole = ReadTally()
    for tally in done.values():
        whole.add(tally)
    left = {number: log for number, log in enumerate(logs) if number not in done}
    if left:
        try:
            client = distributed.Client(address, timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError) as error:
            raise CompilediagError(f"no Dask scheduler answers at {address}: {error or 'timed out'}") from None
        with client:
            for tally in _collect_tallies(distributed, client, left, folder.absolute()):
                whole.add(tally)
    return whole, describe_tally(len(logs), len(copies), whole)


def read_partition(path: str, size: int, changed_ns: int, number: int, folder: str) -> dict[str, Any]:
    """Run one task: read one log, write its partition, and return its tally as JSON values, or a line as `error`."""
    log = LogFile(Path(path), size, changed_ns)
    try:
        require_parquet()
        with tempfile.TemporaryDirectory(prefix="compilediag-") as own:
            part = Path(own, "part.cdiag")
            tally = write_part(log, part, LogWriter(None))
            store = Store.open(part)
            try:
                write_partition(store, Path(folder), number, log, tally)
            finally:
                store.connection.close()
    except CompilediagError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"{folder} can't be written: {error.strerror}"}
    return {"tally": tally.as_json()}


def _collect_tallies(distributed: Any, client: Any, left: dict[int, LogFile], folder: Path) -> Iterator[ReadTally]:
    """Yield what was read of each log, in the order in which the tasks end."""
    tasks = [
        client.submit(
            read_partition, str(log.path.absolute()), log.size, log.changed_ns, number, str(folder), pure=False
        )
        for number, log in left.items()
    ]
    sizes = dict(zip((task.key for task in tasks), (log.size for log in left.values()), strict=True))
    progress, before = ProgressBar(sum(sizes.values())), 0
    try:
        for task in distributed.as_completed(tasks):
            yield _read_answer(task)
            before += sizes[task.key]
            progress.show(before, "on the cluster")
    finally:
        progress.end()
        client.cancel(tasks)


def _read_answer(task: Any) -> ReadTally:
    try:
        answer = task.result()
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise CompilediagError(f"the cluster could not read a log: {type(error).__name__}: {lines[0]}") from None
    if "error" in answer:
        raise CompilediagError(answer["error"])
    return ReadTally.from_json(answer["tally"])
