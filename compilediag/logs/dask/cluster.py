"""Ingestion on a running Dask cluster: one task per log, and each writes its partition into a shared folder.

The workers need compilediag and pyarrow, and see the logs and the folder under the same paths. Partitions that exist
already are kept, so the same command continues an interrupted one.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ...errors import CompilediagError
from ...storage.store import Store
from ..log_decoder import ReadTally
from ..log_files import LogFile, find_logs, separate_copies
from ..log_session import LogWriter, describe_tally, write_part
from ..progress_bar import ProgressBar
from .partitions import prepare_folder, require_parquet, write_partition

#: How long to wait for the scheduler.
PATIENCE = "30s"


def read_on_cluster(given: Sequence[Any], folder: Path, address: str) -> tuple[ReadTally, str]:
    """Read logs into `folder` on the cluster at `address`; return the tally and a description of it.

    CompilediagError, in one line, if the cluster can't be reached, if a worker can't do it, or if a log can't be read.
    """
    require_parquet()
    distributed = _require_distributed()
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
        return {"error": f"{folder} can't be written: {error}"}
    return {"tally": tally.as_json()}


def _require_distributed() -> Any:
    try:
        return importlib.import_module("distributed")
    except ImportError:
        raise CompilediagError(
            'a Dask cluster needs the package distributed: pip install "compilediag[dask]"'
        ) from None


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
