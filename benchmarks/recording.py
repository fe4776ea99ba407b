"""Measure a session with many events: the rate of writing, the memory, and the time to build tables.

This module does not import torch: it passes events to a recorder directly, as sources do.
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
from compilediag.recording.recorder import Recorder
from compilediag.session import Session

#: Kinds of 100 events of a long run, from recompiles of a frame with a few entries.
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
    """A minimal source for the recorder."""

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
    """Results. Rates are events per second, times are seconds, memory is the growth of the process in MiB."""

    events: int
    put_us: float
    written_per_s: float
    tables_s: dict[str, float]
    file_mib: float
    memory_mib: dict[int, float]
    steady_lost: int
    steady_late_s: float


def measure_recording(count: int, counts_for_memory: tuple[int, ...]) -> Recording:
    """Record `count` events at once, then 5,000 per second for 5 s. New processes measure the memory."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "many.cdiag"
        put_s, written_s = _record_events(file, count)
        tables_s = _time_tables(file)
        size = file.stat().st_size / 2**20
        lost, late_s = _record_steadily(Path(folder) / "steady.cdiag")
    memory = {number: _measure_memory(number) for number in counts_for_memory}
    return Recording(count, put_s / count * 1e6, count / written_s, tables_s, size, memory, lost, late_s)


def _make_event(cls: type[events.Event], number: int) -> events.Event:
    """Return an event with a value of realistic length in every column."""
    values: dict[str, Any] = {"string": f"a value {number % 1000}", "Int64": number, "float64": 0.25, "boolean": True}
    filled = {name: values.get(c["dtype"], [f"item {number % 1000}"]) for name, c in events.columns(cls).items()}
    common = {"time_ns": 1_700_000_000_000_000_000 + number, "compile_id": f"{number % 500}/0", "duration_s": 0.001}
    return cls(**{**filled, **common})


def _generate_events() -> Iterator[tuple[type[events.Event], int]]:
    kinds = [cls for cls, share in SHARES.items() for _ in range(share)]
    return zip(itertools.cycle(kinds), itertools.count())


def _make_events(cls: type[events.Event], number: int) -> list[events.Event]:
    return [_make_event(cls, number)]


def _open_recorder(file: Path) -> tuple[Recorder, Counter]:
    counter = Counter()
    recorder = Recorder(file, {"title": "benchmark"}).begin()
    recorder.feeds = [counter]
    return recorder, counter


def _record_events(file: Path, count: int) -> tuple[float, float]:
    """Return the seconds to hand over all events and the seconds until all are written."""
    recorder, counter = _open_recorder(file)
    begin = time.perf_counter()
    for cls, number in itertools.islice(_generate_events(), count):
        recorder.put(counter, _make_events, cls, number)
    put_s = time.perf_counter() - begin
    recorder.flush()
    written_s = time.perf_counter() - begin
    recorder.close()
    if counter.dropped or counter.errors:
        raise SystemExit(f"overhead: {counter.dropped} of {count} events were dropped, {counter.errors[:1]}")
    return put_s, written_s


def _time_tables(file: Path) -> dict[str, float]:
    """Return the seconds to build each table: the best of three, to exclude other load."""
    tables = ["events", *(cls.table for cls in events.KINDS)]
    return {table: min(_time_table(file, table) for _ in range(3)) for table in tables}


def _time_table(file: Path, table: str) -> float:
    session = Session(file)
    begin = time.perf_counter()
    getattr(session, table)
    return time.perf_counter() - begin


def _record_steadily(file: Path) -> tuple[int, float]:
    """Return the number of lost events, and the seconds until the file has all others without a flush."""
    recorder, counter = _open_recorder(file)
    stream, reader = _generate_events(), Session(file)
    begin, handed = time.perf_counter(), 0
    while handed < RATE * RATE_S:
        due = min(RATE * RATE_S, int((time.perf_counter() - begin) * RATE))
        for cls, number in itertools.islice(stream, due - handed):
            recorder.put(counter, _make_events, cls, number)
        handed = due
        time.sleep(0.005)
    ended = time.perf_counter()
    while _count_events(reader) < handed and time.perf_counter() - ended < 5:
        time.sleep(0.01)
    late_s = time.perf_counter() - ended
    recorder.close()
    return handed - _count_events(reader), late_s


def _count_events(session: Session) -> int:
    kinds = ", ".join(f"'{cls.kind}'" for cls in SHARES)
    query = f"SELECT count(*) FROM events WHERE kind IN ({kinds})"
    return session.data.store.connection.execute(query).fetchone()[0]


def _measure_memory(count: int) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_record_and_measure, (count,))


def _record_and_measure(count: int) -> float:
    """Return the MiB by which the peak memory of this new process grows while it records `count` events."""
    with tempfile.TemporaryDirectory() as folder:
        recorder, counter = _open_recorder(Path(folder) / "memory.cdiag")
        before = _read_peak_mib()
        for number, (cls, at) in enumerate(itertools.islice(_generate_events(), count), 1):
            recorder.put(counter, _make_events, cls, at)
            if number % 10_000 == 0:
                recorder.flush()
        recorder.close()
        return _read_peak_mib() - before


def _read_peak_mib() -> float:
    """Return the peak memory of this process. On Linux, a child inherits `ru_maxrss` from its parent, so read /proc."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read_text())[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10
