"""Measure recompiles of a function with many entries, and what a compile leaves in the file and in memory."""

from __future__ import annotations

import contextlib
import gc
import itertools
import statistics
import time
import tracemalloc
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from compiling import ENTRIES, Model, sum_compile_s
from measure import Estimate, alternate, estimate
from variants import VARIANTS

import compilediag
from compilediag.session import Session
from compilediag.views.model import ViewModel
from compilediag.views.patches import Pump

#: Recompiles around each number of entries.
WINDOW = 8
VARIANTS_OF_STORMS = ("lean", "full", "TORCH_TRACE")
#: Values of `step`, which never repeat.
_steps = itertools.count(2)


@dataclass(frozen=True)
class StormRow:
    """One variant at one number of earlier entries. `own`: its own count as a share of the compile time."""

    variant: str
    entries: int
    own: Estimate


@dataclass(frozen=True)
class Footprint:
    """What one compile costs in one level of detail, apart from time. `thread`: the dashboard's, as a share."""

    detail: str
    file_bytes: float
    memory_bytes: float
    events: float
    thread: Estimate


class Storm:
    """A function that is compiled again at every call."""

    def __init__(self) -> None:
        torch._dynamo.reset()
        self._model, self._x = Model(), torch.ones(4, 16)
        self._function = torch.compile(self._model, backend="eager")

    def recompile(self, times: int) -> None:
        for _ in range(times):
            self._model.step = next(_steps)
            self._function(self._x)


def compare_storms(marks: tuple[int, ...], cycles: int) -> list[StormRow]:
    """One row per variant and mark: each variant watches its function from the first compile on, as users do."""
    shares: dict[tuple[str, int], list[float]] = defaultdict(list)
    limits = torch._dynamo.config.patch(recompile_limit=2 * marks[-1], accumulated_recompile_limit=2 * marks[-1])
    with limits:
        for variant in alternate(VARIANTS_OF_STORMS, cycles):
            for entries, share in _measure_storm(variant, marks):
                shares[variant, entries].append(share)
    return [StormRow(variant, entries, estimate(found)) for (variant, entries), found in sorted(shares.items())]


def _measure_storm(variant: str, marks: tuple[int, ...]) -> Iterator[tuple[int, float]]:
    storm, done = Storm(), 0
    with VARIANTS[variant]() as meter:
        for mark in marks:
            begin = mark - WINDOW // 2
            storm.recompile(begin - done)
            meter.settle()
            own, compile_s = meter.own_s(), sum_compile_s()
            storm.recompile(WINDOW)
            meter.settle()
            done = begin + WINDOW
            yield mark, (meter.own_s() - own) / (sum_compile_s() - compile_s)


def measure_footprints(rounds: int) -> list[Footprint]:
    """One row per level of detail, from `rounds` functions of `ENTRIES` compiles each."""
    _compile_functions(1)
    base = _measure_memory(None, rounds)
    found = []
    for detail in ("lean", "full"):
        file_bytes, events = _measure_file(detail, rounds)
        memory = (_measure_memory(detail, rounds) - base) / (rounds * ENTRIES)
        found.append(Footprint(detail, file_bytes, memory, events, _measure_dashboard(detail, rounds)))
    return found


def _compile_functions(rounds: int) -> float:
    """Return the seconds that torch compiled. A new storm clears torch's metrics."""
    compile_s = 0.0
    for _ in range(rounds):
        Storm().recompile(ENTRIES)
        compile_s += sum_compile_s()
    return compile_s


def _measure_file(detail: str, rounds: int) -> tuple[float, float]:
    """Bytes of file and rows per compile, when the file already has its tables."""
    with compilediag.watch(detail=detail) as session:
        _compile_functions(1)
        size, events = _count_bytes(session), len(session.events)
        _compile_functions(rounds)
        compiles = rounds * ENTRIES
        return (_count_bytes(session) - size) / compiles, (len(session.events) - events) / compiles


def _count_bytes(session: Session) -> int:
    session.flush()
    connection = session.data.store.connection
    return connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()[0]


def _measure_memory(detail: str | None, rounds: int) -> float:
    """Bytes that the compiles leave in Python's memory when torch has forgotten them: the mean of two."""
    return statistics.mean(_measure_memory_once(detail, rounds) for _ in range(2))


def _measure_memory_once(detail: str | None, rounds: int) -> int:
    with compilediag.watch(detail=detail) if detail else contextlib.nullcontext() as session:
        _compile_functions(1)
        _forget(session)
        tracemalloc.start(1)
        _compile_functions(rounds)
        _forget(session)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return used


def _forget(session: Session | None) -> None:
    torch._dynamo.reset()
    if session is not None:
        session.flush()
    gc.collect()


def _measure_dashboard(detail: str, rounds: int) -> Estimate:
    """CPU time of the dashboard's thread, as a share of the compile time beside it. Nothing shows what it sends."""
    shares = []
    with compilediag.watch(detail=detail) as session:
        pump = Pump(ViewModel(session.data), lambda message: None)
        pump.start()
        clock = time.pthread_getcpuclockid(pump._thread.ident)
        _compile_functions(1)
        for _ in range(3):
            began = time.clock_gettime(clock)
            compile_s = _compile_functions(rounds)
            shares.append((time.clock_gettime(clock) - began) / compile_s)
        pump.stop()
    return estimate(shares)
