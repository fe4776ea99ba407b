"""Logs into a session: `compilediag ingest` and `cd.ingest`."""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..errors import CompilediagError
from ..output_paths import check_output
from ..storage.merging import add_part
from ..storage.store import Store, is_replaceable, is_session, remove, temporary_file
from .ending import finish, times, told
from .log_decoder import ReadTally
from .log_files import LogFile, find_logs, without_copies
from .parallel import processes_for, read_parts
from .progress import Progress
from .reading import last_id, read_log
from .writing import MAX_TEXTS, LogWriter

if TYPE_CHECKING:
    from ..session import Session

#: What logs are given as: one path, or several.
Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


class UnreadRecords(CompilediagError):
    """`strict`: something in the logs could not be read."""

    exit_code = 1


def ingest(
    paths: Paths,
    out: str | os.PathLike[str] | None = None,
    strict: bool = False,
    processes: int | None = None,
    dask: str | None = None,
) -> Session:
    """Logs that TORCH_TRACE wrote (torch 2.4 and later; files or directories; plain, gzip or zstd) as a session.

    `out`: the session's file, replaced if it is there; a temporary one if None. If reading them into `out` was cut off
    before, it goes on from there. A log that is given twice, or is the beginning of another, is read once. Nothing
    that a log names is opened. What can't be read is counted: `session.sources` says it in the row "logs".
    `processes`: how many read, each whole logs; None for as many as there are cores, at most eight, and one if there is
    little to read. The session is the same whatever their number.
    `dask`: the address of a Dask cluster's scheduler, which then reads, a task a log, each into a Parquet partition;
    `out` is a folder that its workers see as well, and `load(out)` gives the session again.
    UnreadRecords, at the end, if there is any and `strict`; CompilediagError if there are no logs.
    """
    from ..session import Session, load

    if dask is not None:
        folder, _ = read_on_dask(paths, out, strict, dask)
        return load(folder)
    file, _ = read_logs(paths, out, strict, processes)
    session = Session(file)
    if out is None:
        weakref.finalize(session, remove, file)
    return session


def read_logs(
    paths: Paths, out: str | os.PathLike[str] | None, strict: bool, processes: int | None = None
) -> tuple[Path, str]:
    """As `ingest`: the session's file, and what was read in a sentence."""
    given = _given(paths)
    target = None if out is None else _target(Path(out).absolute())
    logs, copies = without_copies(find_logs(given))
    job = _Job(logs, copies, given)
    file, store = _temporary(job) if target is None else (target, _opened(target, job))
    try:
        tally = job.run(store, processes_for(logs, processes))
    finally:
        store.close()
    if strict and tally.faults:
        kept = "" if target is None else f" (the rest is in {target})"
        raise UnreadRecords(f"not everything could be read: {times(tally.faults)}{kept}")
    return file, job.told(tally)


def read_on_dask(paths: Paths, out: str | os.PathLike[str] | None, strict: bool, address: str) -> tuple[Path, str]:
    """As `ingest` on a cluster: the folder of the partitions, and what was read in a sentence."""
    from .cluster import read_on_cluster

    if out is None:
        raise CompilediagError("a cluster writes into a folder that its workers see too: say which (out, or -o)")
    tally, said = read_on_cluster(_given(paths), Path(out).absolute(), address)
    if strict and tally.faults:
        raise UnreadRecords(f"not everything could be read: {times(tally.faults)} (the rest is in {out})")
    return Path(out).absolute(), said


def _given(paths: Paths) -> list[str | os.PathLike[str]]:
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def opened(path: str | os.PathLike[str]) -> Session:
    """The session of a path: a session's file, a folder of them, or logs, which are ingested into a temporary one."""
    from ..session import load
    from .folders import is_of_sessions

    file = Path(path)
    return load(file) if is_session(file) or is_of_sessions(file) else ingest(file)


class _Job:
    """The logs of one call, and how far a session has come with them."""

    def __init__(self, logs: list[LogFile], copies: list[LogFile], given: list[Any]):
        self.logs = logs
        self.copies = copies
        self._begins = list(accumulate((log.size for log in logs), initial=0))
        self.title = " ".join(Path(given[0]).name.split()) + (f" and {len(given) - 1} more" if given[1:] else "")

    def state(self) -> dict[str, Any]:
        """What a session's file remembers of its job: which logs, and by which version they are read."""
        logs = [[str(log.path.absolute()), log.size, log.changed_ns] for log in self.logs]
        return {"version": __version__, "logs": logs}

    def is_of(self, state: Any) -> bool:
        """True if `state` is of these logs, unchanged since, and of this version."""
        return state == self.state()

    def run(self, store: Store, processes: int) -> ReadTally:
        state = store.meta()["ingested"]
        done, tally = state["done"], ReadTally.from_json(state["tally"])
        written = last_id(store) - state["events"]
        progress = Progress(self._begins[-1])
        writer = LogWriter(store, skip=written)
        try:
            # A log that is in the file in part is gone on with here, whatever reads the others.
            alone = len(self.logs) if processes == 1 else done + bool(written)
            for log in self.logs[done:alone]:
                tally.add(read_log(log, store, writer, progress, self._begins[done]))
                done += 1
                store.set_meta(ingested=_so_far(done, last_id(store), tally))
            self._run_beside(store, processes, done, tally, progress, writer)
        finally:
            progress.end()
        finish(store, tally, writer.dropped, self.told(tally))
        return tally

    def _run_beside(
        self, store: Store, processes: int, done: int, tally: ReadTally, progress: Progress, writer: LogWriter
    ) -> None:
        """Let processes read the logs that are left; each is added whole, with the state that it leaves."""
        left = self.logs[done:]
        if not left:
            return
        progress.at(self._begins[done], left[0].path.name)
        for log, part, read, dropped in read_parts(left, min(processes, len(left)), MAX_TEXTS, store.path):
            tally.add(read)
            writer.dropped += dropped
            done += 1
            add_part(store, part, after=lambda last, done=done: {"ingested": _so_far(done, last, tally)})
            progress.at(self._begins[done], log.path.name)

    def told(self, tally: ReadTally) -> str:
        """What was read, in a sentence."""
        return told(len(self.logs), len(self.copies), tally)


def _so_far(done: int, events: int, tally: ReadTally) -> dict[str, Any]:
    """How far a session has come: logs that are done, the events in it then, what was read."""
    return {"done": done, "events": events, "tally": tally.as_json()}


def _meta(job: _Job) -> dict[str, Any]:
    return {
        "compilediag_version": __version__,
        "torch_version": None,
        "title": job.title,
        "detail": "full",
        "pid": os.getpid(),
        "created_ns": time.time_ns(),
        "stopped_ns": None,
        "ingest": job.state(),
        "ingested": _so_far(0, 0, ReadTally()),
    }


def _target(file: Path) -> Path:
    """`file` if a session may be written there. CompilediagError if not."""
    check_output(file)
    if file.exists() and not is_replaceable(file):
        raise CompilediagError(f"{file} is there and is no session, so it is not replaced: give another path")
    return file


def _opened(file: Path, job: _Job) -> Store:
    """The session that was cut off if there is one of these logs, else a new one."""
    try:
        store = Store.open(file, writable=True)
    except CompilediagError:
        store = None
    if store is not None:
        meta = store.meta()
        if store.is_recorded_elsewhere():
            store.connection.close()
            raise CompilediagError(f"{file} is being written by process {meta['pid']}: give another path")
        if job.is_of(meta.get("ingest")):
            store.set_meta(pid=os.getpid())
            return store
        store.connection.close()
    remove(file)
    try:
        return Store.create(file, _meta(job))
    except (OSError, sqlite3.Error) as error:
        raise CompilediagError(f"{file} can't be written: {error}") from None


def _temporary(job: _Job) -> tuple[Path, Store]:
    file = temporary_file()
    return file, Store.create(file, _meta(job))
