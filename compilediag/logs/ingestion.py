"""Logs into a session file, in this process, in several, or on a Dask cluster."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..events import RankMember
from ..files import check_output, make_absolute
from ..storage.merging import add_part
from ..storage.run_identity import BOOT, identify_process
from ..storage.session_files import SESSION_FILE, remove, temporary_file
from ..storage.store import Store
from ..version import __version__
from .log_decoder import ReadTally
from .log_files import LogFile, find_logs, separate_copies
from .log_session import MAX_TEXTS, LogWriter, describe_tally, find_last_id, finish_session, format_counts, read_log
from .log_workers import choose_processes, collect_rarely, read_parts
from .progress_bar import ProgressBar
from .rank_grouping import GROUPED_FROM, GroupedLogs, describe_members, group_logs

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
    target = None if out is None else _check_target(make_absolute(out))
    logs, copies = separate_copies(find_logs(given))
    grouped = _group(logs, processes, group_ranks)
    job = IngestJob(grouped.logs, len(copies), given, grouped.members)
    file, store = _make_temporary(job) if target is None else (target, _open_target(target, job))
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


def _group(logs: list[LogFile], processes: int | None, group_ranks: bool | None) -> GroupedLogs:
    """Return the logs to read: of many ranks, those of one rank of each group, unless the caller decides otherwise."""
    if group_ranks or (group_ranks is None and len(logs) > GROUPED_FROM):
        return group_logs(logs, choose_processes(logs, processes))
    return GroupedLogs(logs, [])


def read_logs_with_dask(paths: Paths, out: PathLike | None, strict: bool, address: str) -> tuple[Path, str]:
    """Read logs on a Dask cluster; return the folder of the partitions and a description of what was read."""
    from .dask.cluster import read_on_cluster

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
        self.title = " ".join(Path(given[0]).name.split()) + more

    def make_state(self) -> dict[str, Any]:
        """Return what a session file stores of its job: which logs, the version that reads them, and the boot.

        A machine that loses power can leave a file that is not complete.
        """
        logs = [log.as_json() for log in self.logs]
        return {"version": __version__, "logs": logs, BOOT: identify_process()[BOOT]}

    def is_same(self, state: object) -> bool:
        """Return True if `state` is of the same logs, unchanged since, of this version and this boot."""
        return state == self.make_state()

    def run(self, store: Store, processes: int) -> ReadTally:
        """Read the logs that are left, and finish the session."""
        state = store.meta()["ingested"]
        done, tally = state["done"], ReadTally.from_json(state["tally"])
        written = find_last_id(store) - state["events"]
        progress = ProgressBar(self._begins[-1])
        writer = LogWriter(store, skip=written)
        try:
            left = self.logs[done:]
            # This process goes on with a log that is partly in the file, even if others read the rest.
            alone = len(left) if processes == 1 or len(left) == 1 else int(bool(written))
            for log in left[:alone]:
                tally.add(read_log(log, store, writer, progress, self._begins[done], processes))
                done += 1
                store.set_meta(ingested=_make_progress(done, find_last_id(store), tally))
            self._read_in_parallel(store, processes, done, tally, progress, writer)
        finally:
            progress.end()
        if self._members and not store.connection.execute("SELECT 1 FROM rank_members LIMIT 1").fetchone():
            store.append(self._members)
        finish_session(store, tally, writer.dropped, self.describe(tally))
        return tally

    def _read_in_parallel(
        self, store: Store, processes: int, done: int, tally: ReadTally, progress: ProgressBar, writer: LogWriter
    ) -> None:
        """Let worker processes read the logs that are left. Each is added as a whole, with the new state of the job."""
        left = self.logs[done:]
        if not left:
            return
        progress.show(self._begins[done], left[0].path.name)
        for number, part in enumerate(read_parts(left, processes, MAX_TEXTS, store.path), done + 1):
            tally.add(part.tally)
            writer.dropped += part.dropped

            def make_meta(last: int, done: int = number) -> dict[str, Any]:
                return {"ingested": _make_progress(done, last, tally)}

            add_part(store, part.file, after=make_meta)
            progress.show(self._begins[number], part.log.path.name)

    def describe(self, tally: ReadTally) -> str:
        """Return what was read, as one sentence."""
        return describe_tally(len(self.logs), self._copies, tally) + describe_members(self._members)


def _make_progress(done: int, events: int, tally: ReadTally) -> dict[str, Any]:
    """Return how far a session file has come: logs done, events written by then, what was read."""
    return {"done": done, "events": events, "tally": tally.as_json()}


def _make_meta(job: IngestJob) -> dict[str, Any]:
    return {
        "compilediag_version": __version__,
        "torch_version": None,
        "title": job.title,
        "detail": "full",
        **identify_process(),
        "created_ns": time.time_ns(),
        "stopped_ns": None,
        "ingest": job.make_state(),
        "ingested": _make_progress(0, 0, ReadTally()),
    }


def _check_target(file: Path) -> Path:
    """Return `file` if a session can be written there; CompilediagError if not."""
    check_output(file, SESSION_FILE)
    return file


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
        if job.is_same(meta.get("ingest")):
            store.set_meta(**identify_process())
            return store
        store.connection.close()
    remove(file)
    try:
        return Store.create(file, _make_meta(job))
    except (OSError, sqlite3.Error) as error:
        raise CompilediagError(f"{file} can't be written: {error}") from None


def _make_temporary(job: IngestJob) -> tuple[Path, Store]:
    file = temporary_file()
    return file, Store.create(file, _make_meta(job))
