"""What a session does with many events: how fast they are kept, in how much memory, how soon they are a table.

No torch here: events go straight into a recorder, as sources hand them over.
"""

from __future__ import annotations

import itertools
import multiprocessing
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compilediag import events
from compilediag.recording import Recorder
from compilediag.session import Session

#: Of 100 events of a long run: what a recompile of a frame with a few entries gives.
SHARES = {
    events.Phase: 55,
    events.GuardFailure: 25,
    events.Compile: 7,
    events.Recompile: 5,
    events.CacheLookup: 5,
    events.GraphBreak: 1,
    events.DynamicDecision: 1,
    events.Artifact: 1,
}
RATE, RATE_S = 5_000, 5


@dataclass
class Counter:
    """A source as the recorder sees one."""

    name: str = "benchmark"
    events: int = 0
    dropped: int = 0
    errors: list[str] = field(default_factory=list)

    def note_error(self, error: BaseException) -> None:
        self.errors.append(repr(error))

    def status(self) -> events.SourceStatus:
        return events.SourceStatus(
            time_ns=time.time_ns(), name=self.name, status="active", events=self.events, dropped=self.dropped
        )


@dataclass(frozen=True)
class Recording:
    """Results. Rates in events a second, times in seconds, memory in MiB above what the process had before."""

    events: int
    put_us: float
    written_per_s: float
    tables_s: dict[str, float]
    file_mib: float
    memory_mib: dict[int, float]
    steady_lost: int
    steady_late_s: float


def measure_recording(count: int, counts_for_memory: tuple[int, ...]) -> Recording:
    """`count` events at once, then 5,000 a second for 5 s; memory in processes of their own."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "many.cdiag"
        put_s, written_s = _record(file, count)
        tables_s = _read(file)
        size = file.stat().st_size / 2**20
        lost, late_s = _steady(Path(folder) / "steady.cdiag")
    memory = {number: _in_own_process(number) for number in counts_for_memory}
    return Recording(count, put_s / count * 1e6, count / written_s, tables_s, size, memory, lost, late_s)


def _sample(cls: type[events.Event], number: int) -> events.Event:
    """An event with every column filled, as long as such texts are."""
    values: dict[str, Any] = {"string": f"a value {number % 1000}", "Int64": number, "float64": 0.25, "boolean": True}
    filled = {name: values.get(c["dtype"], [f"item {number % 1000}"]) for name, c in events.columns(cls).items()}
    common = {"time_ns": 1_700_000_000_000_000_000 + number, "compile_id": f"{number % 500}/0", "duration_s": 0.001}
    return cls(**{**filled, **common})


def _stream() -> Iterator[tuple[type[events.Event], int]]:
    kinds = [cls for cls, share in SHARES.items() for _ in range(share)]
    return zip(itertools.cycle(kinds), itertools.count())


def _make(cls: type[events.Event], number: int) -> list[events.Event]:
    return [_sample(cls, number)]


def _recorder(file: Path) -> tuple[Recorder, Counter]:
    counter = Counter()
    recorder = Recorder(file, {"title": "benchmark"})
    recorder.feeds = [counter]
    return recorder, counter


def _record(file: Path, count: int) -> tuple[float, float]:
    """(s to hand over, s until all are written)."""
    recorder, counter = _recorder(file)
    begin = time.perf_counter()
    for cls, number in itertools.islice(_stream(), count):
        recorder.put(counter, _make, cls, number)
    put_s = time.perf_counter() - begin
    recorder.flush()
    written_s = time.perf_counter() - begin
    recorder.close()
    if counter.dropped or counter.errors:
        raise SystemExit(f"overhead: {counter.dropped} of {count} events were dropped, {counter.errors[:1]}")
    return put_s, written_s


def _read(file: Path) -> dict[str, float]:
    """Seconds that each table takes, at best of three: what the machine does beside it is not the table's."""
    tables = ["events", *(cls.table for cls in events.KINDS)]
    return {table: min(_read_once(file, table) for _ in range(3)) for table in tables}


def _read_once(file: Path, table: str) -> float:
    session = Session(file)
    begin = time.perf_counter()
    getattr(session, table)
    return time.perf_counter() - begin


def _steady(file: Path) -> tuple[int, float]:
    """(events lost, s from the last hand-over until the file held them all with nobody asking it to)."""
    recorder, counter = _recorder(file)
    stream, reader = _stream(), Session(file)
    begin, handed = time.perf_counter(), 0
    while handed < RATE * RATE_S:
        due = min(RATE * RATE_S, int((time.perf_counter() - begin) * RATE))
        for cls, number in itertools.islice(stream, due - handed):
            recorder.put(counter, _make, cls, number)
        handed = due
        time.sleep(0.005)
    ended = time.perf_counter()
    while _held(reader) < handed and time.perf_counter() - ended < 5:
        time.sleep(0.01)
    late_s = time.perf_counter() - ended
    recorder.close()
    return handed - _held(reader), late_s


def _held(session: Session) -> int:
    kinds = ", ".join(f"'{cls.kind}'" for cls in SHARES)
    query = f"SELECT count(*) FROM events WHERE kind IN ({kinds})"
    return session.data.store.connection.execute(query).fetchone()[0]


def _in_own_process(count: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_growth, (count,))


def _growth(count: int) -> float:
    """MiB that the peak memory of this fresh process grows by while `count` events are recorded."""
    with tempfile.TemporaryDirectory() as folder:
        recorder, counter = _recorder(Path(folder) / "memory.cdiag")
        before = _peak_mib()
        for number, (cls, at) in enumerate(itertools.islice(_stream(), count), 1):
            recorder.put(counter, _make, cls, at)
            if number % 10_000 == 0:
                recorder.flush()
        recorder.close()
        return _peak_mib() - before


def _peak_mib() -> float:
    """The most memory that this process has had. Linux's `ru_maxrss` is no help: a child begins with its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
