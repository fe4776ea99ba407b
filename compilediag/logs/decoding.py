"""One log file as events: its processes told apart, its times made absolute, what can't be read counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ..decode.records.log_clock import Clock, read_absolute_ns
from ..decode.records.log_process import Item, LogProcess
from ..decode.records.trace_log import Record, Unread, read_records
from .extra_records import plugged
from .files import LogFile, LogStream

#: Records that are looked through for one with a time of the world in it.
PEEKED, PEEKED_BYTES = 2_000, 16 << 20
#: Processes whose state is held; of a damaged log each line can name another.
MAX_PROCESSES = 256
#: Larger numbers are the ids of threads, which torch wrote before 2.5.
MAX_PID = 1 << 22


@dataclass
class Tally:
    """What was read. `unread` and `damaged`: why -> how often; `unknown`: kind -> how often."""

    records: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    damaged: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    other_ranks: int = 0
    torch_version: str | None = None

    @property
    def faults(self) -> Counter[str]:
        """Everything that was not read, or only in part."""
        return self.unread + self.damaged

    def add(self, other: Tally) -> None:
        self.records += other.records
        self.unread += other.unread
        self.damaged += other.damaged
        self.unknown += other.unknown
        self.other_ranks += other.other_ranks
        self.torch_version = self.torch_version or other.torch_version

    def as_json(self) -> dict[str, Any]:
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Tally:
        return cls(**{name: Counter(value) if isinstance(value, dict) else value for name, value in told.items()})


class LogDecoder:
    """Gives (item, pid, rank) of a file's records; afterwards `tally` says what was read and `ranks` of which process
    the rank was told only later.
    """

    def __init__(self, log: LogFile, stream: LogStream):
        self.tally = Tally()
        self._log = log
        self._stream = stream
        self._processes: dict[tuple[int, int | None], LogProcess] = {}
        self._ranks: dict[int, set[int]] = {}
        self._last_ns = log.changed_ns

    def items(self) -> Iterator[tuple[Item, int | None, int | None]]:
        reading = read_records(self._stream)
        peeked = list(_peek(reading))
        clock = Clock([found for found in peeked if isinstance(found, Record)], self._log.changed_ns)
        for found in chain(peeked, reading):
            if isinstance(found, Unread):
                self.tally.unread[found.why] += 1
                continue
            self.tally.records += 1
            if found.damage:
                self.tally.damaged[found.damage] += 1
            self._last_ns = clock.ns(found.stamp)
            yield from self._decoded(found)
        for process in list(self._processes.values()):
            yield from self._rest(process)
        if self._stream.stopped:
            self.tally.unread[self._stream.stopped] += 1
        self.tally.other_ranks = int(any(ranks - {self._log.rank} for ranks in self._ranks.values() if self._log.rank))

    def ranks(self) -> dict[int, int]:
        """pid -> rank, of processes that have one."""
        return {pid: next(iter(ranks)) for pid, ranks in self._ranks.items() if len(ranks) == 1}

    def _decoded(self, record: Record) -> Iterator[tuple[Item, int | None, int | None]]:
        process, others = self._process_of(record)
        yield from others
        pid, rank = process.pid, self._log.rank if process.rank is None else process.rank
        try:
            # Whole or not at all: a record that makes no sense gives no events.
            made = list(process.decode(record, self._last_ns))
        except Exception as error:
            self.tally.unread[f"not understood ({type(error).__name__})"] += 1
            return
        for item in made:
            yield item, pid, rank

    def _process_of(self, record: Record) -> tuple[LogProcess, list[tuple[Item, int | None, int | None]]]:
        """The process that wrote a record, and what is left of another that had to go for it."""
        number, rank = record.process, record.metadata.get("rank", record.prefix_rank)
        if type(rank) is not int or not 0 <= rank < 1 << 31:
            rank = None
        found = self._processes.get((number, rank))
        if found is None and rank is None:
            found = next((p for (n, _), p in reversed(self._processes.items()) if n == number), None)
        elif found is None and (found := self._processes.pop((number, None), None)) is not None:
            # A process has no rank until torch.distributed begins.
            self._processes[number, rank] = found
        left: list[tuple[Item, int | None, int | None]] = []
        if found is None:
            if len(self._processes) >= MAX_PROCESSES:
                left = list(self._rest(self._processes.pop(next(iter(self._processes)))))
            found = self._processes[number, rank] = LogProcess(number if number <= MAX_PID else None, plugged)
        if rank is not None:
            found.rank = rank
            if len(self._ranks) < MAX_PROCESSES:
                self._ranks.setdefault(number, set()).add(rank)
        return found, left

    def _rest(self, process: LogProcess) -> Iterator[tuple[Item, int | None, int | None]]:
        rank = self._log.rank if process.rank is None else process.rank
        for item in process.rest(self._last_ns):
            yield item, process.pid, rank
        self.tally.unknown.update(process.unknown)
        self.tally.torch_version = self.tally.torch_version or process.torch_version


def _peek(reading: Iterator[Record | Unread]) -> Iterator[Record | Unread]:
    """The first records, up to one with a time of the world."""
    size = 0
    for number, found in enumerate(reading, 1):
        yield found
        size += len(found.payload or b"") if isinstance(found, Record) else 0
        if (
            number >= PEEKED
            or size > PEEKED_BYTES
            or (isinstance(found, Record) and read_absolute_ns(found) is not None)
        ):
            return
