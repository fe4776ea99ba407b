"""The same ingestion on a Dask cluster that is there: a task a log, each writes its partition into a shared folder.

Workers need compilediag and pyarrow, and see the logs and the folder under the same paths. What is done already is left
as it is, so that the same command goes on after whatever ended the first.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..storage.store import Store
from .ending import told
from .log_decoder import ReadTally
from .log_files import LogFile, find_logs, without_copies
from .partitions import prepare, require_parquet, write_partition
from .progress import Progress
from .worker import LogWorker
from .writing import MAX_TEXTS

#: How long to wait for the scheduler.
PATIENCE = "30s"


def read_on_cluster(given: list[Any], folder: Path, address: str) -> tuple[ReadTally, str]:
    """Let the cluster at `address` read logs into `folder`; what was read, and that in a sentence.

    CompilediagError, in one line, if the cluster can't be reached, a worker can't do it, or a log can't be read.
    """
    distributed = _distributed()
    require_parquet()
    logs, copies = without_copies(find_logs(given))
    done = prepare(folder, logs)
    whole = ReadTally()
    for tally in done.values():
        whole.add(tally)
    left = {number: log for number, log in enumerate(logs) if number not in done}
    if left:
        try:
            client = distributed.Client(address, timeout=PATIENCE)
        except (OSError, TimeoutError, ValueError) as error:
            raise CompilediagError(f"no Dask scheduler answers at {address}: {error or 'it took too long'}") from None
        with client:
            for tally in _results(distributed, client, left, folder.absolute()):
                whole.add(tally)
    return whole, told(len(logs), len(copies), whole)


def read_partition(path: str, size: int, changed_ns: int, number: int, folder: str) -> dict[str, Any]:
    """A task: read one log, write its partition. {"tally"}, or {"error"} in one line."""
    log = LogFile(Path(path), size, changed_ns)
    try:
        require_parquet()
        with tempfile.TemporaryDirectory(prefix="compilediag-") as own:
            part = Path(own, "part.cdiag")
            answer = LogWorker(MAX_TEXTS).read(log, part)
            if "error" in answer:
                return answer
            store = Store.open(part)
            try:
                tally = ReadTally.from_json(answer["tally"])
                write_partition(store, Path(folder), number, log, tally, answer["dropped"])
            finally:
                store.connection.close()
    except CompilediagError as error:
        return {"error": str(error)}
    except OSError as error:
        return {"error": f"{folder} can't be written: {error}"}
    return {"tally": answer["tally"]}


def _distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise CompilediagError("a Dask cluster needs the package distributed: pip install distributed") from None


def _results(distributed: Any, client: Any, left: dict[int, LogFile], folder: Path) -> Iterator[ReadTally]:
    """What was read of each log, as they are done."""
    tasks = [
        client.submit(
            read_partition, str(log.path.absolute()), log.size, log.changed_ns, number, str(folder), pure=False
        )
        for number, log in left.items()
    ]
    sizes = dict(zip((task.key for task in tasks), (log.size for log in left.values()), strict=True))
    progress, before = Progress(sum(sizes.values())), 0
    try:
        for task in distributed.as_completed(tasks):
            yield _answer(task)
            before += sizes[task.key]
            progress.at(before, "on the cluster")
    finally:
        progress.end()
        client.cancel(tasks)


def _answer(task: Any) -> ReadTally:
    try:
        answer = task.result()
    except Exception as error:
        why = str(error).strip().splitlines() or [type(error).__name__]
        raise CompilediagError(f"the cluster could not read a log: {type(error).__name__}: {why[0]}") from None
    if "error" in answer:
        raise CompilediagError(answer["error"])
    return ReadTally.from_json(answer["tally"])
