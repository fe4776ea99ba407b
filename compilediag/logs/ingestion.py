"""Logs into a session file, in this process, in several, or on a Dask cluster.

Several processes write each log as a part, a session file, and the parts are added in the logs' order. So the session
is the same, event by event, for any number of processes.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..events import RankMember
from ..formatting import format_amount
from ..storage.data import find_last_id
from ..storage.merging import add_part
from ..storage.session_files import temporary_file
from ..storage.store import SESSION_FILE, Store, remove
from ..system.files import check_output, make_absolute
from ..system.program import BOOT, identify_process
from ..version import __version__
from .log_decoder import ReadTally
from .log_files import LogFile, ProgressBar, find_logs, separate_copies
from .log_session import MAX_TEXTS, LogWriter, describe_tally, finish_session, format_counts, read_log, write_part
from .rank_grouping import GROUPED_FROM, GroupedLogs, group_logs
from .workers import collect_rarely, start_workers

#: Most processes that are started by default: one process adds all parts.
MOST = 8
#: Bytes of logs per process; reading less takes less time than starting another one.
WORTH_BYTES = 4 << 20
#: The same of one log, whose records come together in one process.
WORTH_SPLITTING = 24 << 20

PathLike = str | os.PathLike[str]
#: Logs as users give them: one path, or several.
Paths = PathLike | Iterable[PathLike]


class UnreadRecords(CompilediagError):
    """Something in the logs could not be read, and `strict` was given."""

    exit_code = 1


def read_logs(
    paths: Paths,
    out: PathLike | None = None,
    strict: bool = False,
    processes: int | None = None,
    group_ranks: bool | None = None,
) -> tuple[Path, str]:
    """Read logs into a session file; return the file and a description of what was read. See `compilediag.ingest`."""
    given = _list_paths(paths)
    target = None if out is None else make_absolute(out)
    if target is not None:
        check_output(target, SESSION_FILE)
    logs, copies = separate_copies(find_logs(given))
    # Of many ranks, those of one rank of each group, unless the caller decides otherwise.
    is_grouped = len(logs) > GROUPED_FROM if group_ranks is None else group_ranks
    grouped = group_logs(logs, choose_processes(logs, processes)) if is_grouped else GroupedLogs(logs, [])
    job = IngestJob(grouped.logs, len(copies), given, grouped.members)
    file = temporary_file() if target is None else target
    store = Store.create(file, job.make_meta()) if target is None else _open_target(target, job)
    try:
        store.begin_bulk()
        with collect_rarely():
            tally = job.run(store, choose_processes(grouped.logs, processes))
    finally:
        store.close()
    if strict and tally.faults:
        rest = "" if target is None else f"; the rest is in {target}"
        raise UnreadRecords(f"could not read everything: {format_counts(tally.faults)}{rest}")
    return file, job.describe(tally)


def choose_processes(logs: Sequence[LogFile], asked: int | None) -> int:
    """Return how many processes read `logs`: by default as many as there are cores and work."""
    if asked is not None and asked < 1:
        raise CompilediagError(f"{asked} is not a number of processes; give 1 or more")
    if asked is not None:
        return asked
    size, largest = sum(log.size for log in logs), max((log.size for log in logs), default=0)
    worth = max(min(len(logs), 1 + size // WORTH_BYTES), 1 + largest // WORTH_SPLITTING)
    return min(_count_cores(), MOST, worth)


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_logs_with_dask(paths: Paths, out: PathLike | None, strict: bool, address: str) -> tuple[Path, str]:
    """Read logs on a Dask cluster; return the folder of the partitions and a description of what was read."""
    from .dask import read_on_cluster

    if out is None:
        raise CompilediagError("a Dask cluster needs a folder that its workers can write to; pass it as out (-o)")
    folder = make_absolute(out)
    tally, description = read_on_cluster(_list_paths(paths), folder, address)
    if strict and tally.faults:
        raise UnreadRecords(f"could not read everything: {format_counts(tally.faults)}; the rest is in {folder}")
    return folder, description


def _list_paths(paths: Paths) -> list[PathLike]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


class IngestJob:
    """The logs of one call, and how far its session file has come with them."""

    def __init__(self, logs: list[LogFile], copies: int, given: Sequence[PathLike], members: Sequence[RankMember] = ()):
        self.logs = logs
        self._members = members
        self._copies = copies
        self._begins = list(accumulate((log.size for log in logs), initial=0))
        more = f" and {len(given) - 1} more" if given[1:] else ""
        self._title = " ".join(Path(given[0]).name.split()) + more

    def make_meta(self) -> dict[str, Any]:
        """Return what a session file stores when the job begins."""
        return {
            "compilediag_version": __version__,
            "torch_version": None,
            "title": self._title,
            "detail": "full",
            **identify_process(),
            "created_ns": time.time_ns(),
            "stopped_ns": None,
            "ingest": self.make_state(),
            "ingested": _make_progress(0, 0, ReadTally()),
        }

    def make_state(self) -> dict[str, Any]:
        """Return what identifies the job: which logs, the version that reads them, and the boot.

        A machine that loses power can leave a file that is not complete.
        """
        logs = [log.as_json() for log in self.logs]
        return {"version": __version__, "logs": logs, BOOT: identify_process()[BOOT]}

    def run(self, store: Store, processes: int) -> ReadTally:
        """Read the logs that are left, and finish the session. What an interrupted run has read of a log in part is
        read again.
        """
        state = store.meta()["ingested"]
        done, tally = state["done"], ReadTally.from_json(state["tally"])
        store.delete_events(state["events"])
        progress = ProgressBar(self._begins[-1])
        try:
            if processes == 1 or len(self.logs) - done <= 1:
                writer = LogWriter(store)
                for number, log in enumerate(self.logs[done:], done):
                    tally.add(read_log(log, store, writer, progress, self._begins[number], processes))
                    store.set_meta(ingested=_make_progress(number + 1, find_last_id(store, "events"), tally))
            else:
                self._read_in_parallel(store, processes, done, tally, progress)
        finally:
            progress.end()
        store.append(self._members)
        finish_session(store, tally, self.describe(tally))
        return tally

    def _read_in_parallel(
        self, store: Store, processes: int, done: int, tally: ReadTally, progress: ProgressBar
    ) -> None:
        """Let other processes read the logs. Each is added as a whole, with the new state of the job."""
        logs = self.logs[done:]
        progress.show(self._begins[done], logs[0].path.name)
        for number, (log, part, own) in enumerate(read_parts(logs, processes, store.path), done + 1):
            tally.add(own)

            def make_meta(last: int, done: int = number) -> dict[str, Any]:
                return {"ingested": _make_progress(done, last, tally)}

            add_part(store, part, after=make_meta)
            progress.show(self._begins[number], log.path.name)

    def describe(self, tally: ReadTally) -> str:
        """Return what was read, as one sentence."""
        described = describe_tally(len(self.logs), self._copies, tally)
        if self._members:
            groups = format_amount(len({row.like for row in self._members}), "group")
            described += f"; {len(self._members)} ranks in {groups} that compiled the same"
        return described


def _make_progress(done: int, events: int, tally: ReadTally) -> dict[str, Any]:
    """Return how far a session file has come: logs done, events written by then, what was read."""
    return {"done": done, "events": events, "tally": tally.as_json()}


def _open_target(file: Path, job: IngestJob) -> Store:
    """Return the session of an interrupted run of this job, or a new one."""
    try:
        store = Store.open(file, writable=True)
    except CompilediagError:
        store = None
    if store is not None:
        meta = store.meta()
        if store.is_recorded_elsewhere():
            store.connection.close()
            raise CompilediagError(f"process {meta['pid']} is writing {file}; choose another path")
        if meta.get("ingest") == job.make_state():  # The same logs, unchanged since.
            store.set_meta(**identify_process())
            return store
        store.connection.close()
    remove(file)
    try:
        return Store.create(file, job.make_meta())
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CompilediagError(f"{file} can't be written: {reason}") from None


# Several processes


def read_parts(logs: Sequence[LogFile], processes: int, beside: Path) -> Iterator[tuple[LogFile, Path, ReadTally]]:
    """Yield each log, in order, with its session file, which is deleted when the next one is asked for, and what was
    read.

    The files are in a temporary folder beside the file `beside`. CompilediagError for a log that can't be read.
    """
    workers = min(processes, len(logs))
    sizes = [0] * workers
    owners: list[int] = []
    shares: list[list[Any]] = [[] for _ in range(workers)]
    with tempfile.TemporaryDirectory(dir=beside.parent, prefix=".compilediag-") as folder:
        parts = [Path(folder, f"{number}.cdiag") for number in range(len(logs))]
        for log, part in zip(logs, parts, strict=True):
            owner = sizes.index(min(sizes))  # The process that has the fewest bytes so far.
            sizes[owner] += log.size + 1
            owners.append(owner)
            shares[owner].append([log.as_json(), str(part)])
        arguments = [[share, MAX_TEXTS // workers, processes // workers] for share in shares]
        with start_workers(write_parts, arguments) as started:
            for log, part, owner in zip(logs, parts, owners, strict=True):
                yield log, part, ReadTally.from_json(started[owner].take(log.path))
                part.unlink()


def write_parts(logs: list[list[Any]], max_texts: int, processes: int) -> Iterator[dict[str, Any]]:
    """In another process: write each log to its session file, and yield what was read.

    `max_texts`: bytes of text that are kept. `processes`: how many read one log.
    """
    writer = LogWriter(None, max_texts)
    for log, part in logs:
        yield write_part(LogFile.from_json(log), Path(part), writer, processes).as_json()
