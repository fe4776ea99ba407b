"""One log file as events: separates its processes, makes its times absolute, counts what can't be read."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..decode.records.log_process import Item, LogProcess
from ..decode.records.record_kinds import TIMED
from ..decode.records.trace_log import LogClock, Record, Unread, read_absolute_ns
from .log_files import LogFile

#: Records that are searched for an absolute time.
PEEKED, PEEKED_BYTES = 2_000, 16 << 20
#: Processes whose state is held: in a damaged log each line can name another.
MAX_PROCESSES = 256
#: Larger numbers are ids of threads, which torch before 2.5 wrote.
MAX_PID = 1 << 22

#: Events and artifacts with the pid and the rank of their process.
OwnedItems = tuple[list[Item], int | None, int | None]


@dataclass
class ReadTally:
    """What was read. `unread` and `damaged`: reason -> count; `unknown`: kind of record -> count; `dropped`: texts that
    were not kept.
    """

    records: int = 0
    unread: Counter[str] = field(default_factory=Counter)
    damaged: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    other_ranks: int = 0
    dropped: int = 0
    torch_version: str | None = None
    static_sources: str | None = None

    @property
    def faults(self) -> Counter[str]:
        """Reason -> count of everything that was not read, or only in part."""
        return self.unread + self.damaged

    def add(self, other: ReadTally) -> None:
        """Add what was read of another log."""
        self.records += other.records
        self.unread += other.unread
        self.damaged += other.damaged
        self.unknown += other.unknown
        self.other_ranks += other.other_ranks
        self.dropped += other.dropped
        self.torch_version = self.torch_version or other.torch_version
        self.static_sources = self.static_sources or other.static_sources

    def as_json(self) -> dict[str, Any]:
        """Return the tally as JSON values."""
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in vars(self).items()}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> ReadTally:
        """Make the tally that `as_json` returned."""
        values: dict[str, Any] = {n: Counter(v) if isinstance(v, dict) else v for n, v in stored.items()}
        return cls(**values)


class LogDecoder:
    """Decodes one file. After `decode`, `tally` says what was read, and `find_ranks` returns ranks that came late."""

    def __init__(self, log: LogFile, reading: Iterator[Record | Unread]):
        self.tally = ReadTally()
        self._log = log
        self._rank = log.rank
        self._reading = reading
        self._processes: dict[tuple[int, int | None], LogProcess] = {}
        self._ranks: dict[int, set[int]] = {}
        self._stamp = ""

    def decode(self) -> Iterator[OwnedItems]:
        """Yield what the records of the file give, in its order, with pid and rank."""
        peeked = list(_peek(self._reading))
        first = [found for found in peeked if isinstance(found, Record)]
        self._clock = LogClock(first, self._log.changed_ns)
        self._make_key = make_key_counter(self._log, first)
        for found in itertools.chain(peeked, self._reading):
            if isinstance(found, Unread):
                self.tally.unread[found.why] += 1
                continue
            self.tally.records += 1
            if found.damage:
                self.tally.damaged[found.damage] += 1
            self._stamp = found.stamp
            process = self._find_process(found)
            if len(self._processes) > MAX_PROCESSES:  # The oldest makes room for it.
                yield self._finish(self._processes.pop(next(iter(self._processes))))
            items = self._decode(process, found)
            if items:
                yield items, process.pid, self._rank if process.rank is None else process.rank
        for process in list(self._processes.values()):
            yield self._finish(process)
        self.tally.other_ranks = int(any(ranks - {self._rank} for ranks in self._ranks.values() if self._rank))

    def find_ranks(self) -> dict[int, int]:
        """Return pid -> rank of the processes that have one."""
        return {pid: next(iter(ranks)) for pid, ranks in self._ranks.items() if len(ranks) == 1}

    def _decode(self, process: LogProcess, record: Record) -> list[Item]:
        """Return what a record gives: nothing if it makes no sense, so that it leaves no part of its events."""
        try:
            if record.kind == TIMED and record.digest is not None:
                return process.decode_timed(record)
            return list(process.decode(record, self._clock.convert(record.stamp)))
        except Exception as error:
            self.tally.unread[f"not understood ({type(error).__name__})"] += 1
            return []

    def _find_process(self, record: Record) -> LogProcess:
        """Return the process that wrote a record."""
        number, rank = record.process, read_rank(record)
        found = self._processes.get((number, rank))
        if found is None and rank is None:
            found = next((p for (n, _), p in reversed(self._processes.items()) if n == number), None)
        elif found is None and (found := self._processes.pop((number, None), None)) is not None:
            # A process has no rank until torch.distributed begins.
            self._processes[number, rank] = found
        if found is None:
            pid = number if number <= MAX_PID else None
            found = self._processes[number, rank] = LogProcess(pid, self._make_key)
        if rank is not None:
            found.rank = rank
            if len(self._ranks) < MAX_PROCESSES:
                self._ranks.setdefault(number, set()).add(rank)
        return found

    def _finish(self, process: LogProcess) -> OwnedItems:
        rank = self._rank if process.rank is None else process.rank
        items = list(process.finish(self._clock.convert(self._stamp)))
        self.tally.unknown.update(process.unknown)
        self.tally.torch_version = self.tally.torch_version or process.torch_version
        self.tally.static_sources = self.tally.static_sources or process.static_sources
        return items, process.pid, rank


def read_rank(record: Record) -> int | None:
    """Return the rank that a record names, if it is one."""
    rank = record.metadata.get("rank", record.prefix_rank)
    return rank if type(rank) is int and 0 <= rank < 1 << 31 else None


def make_key_counter(log: LogFile, first: Sequence[Record]) -> Callable[[], str]:
    """Return a function that returns the log's next compile key.

    Keys depend only on the log's name and its first records. So they are the same in every process that reads it.
    """
    digest = hashlib.md5(log.path.name.removesuffix(".gz").removesuffix(".zst").encode(), usedforsecurity=False)
    for record in first[:PEEKED]:
        digest.update(f"{record.stamp} {record.process} {record.metadata}\n".encode("utf-8", "replace"))
    token, numbers = digest.hexdigest()[:8], itertools.count(1)
    return lambda: f"{token}.{next(numbers)}"


def _peek(reading: Iterator[Record | Unread]) -> Iterator[Record | Unread]:
    """Yield the first records, up to one with an absolute time."""
    size = 0
    for number, found in enumerate(reading, 1):
        yield found
        if isinstance(found, Record):
            size += found.size
            if read_absolute_ns(found) is not None:
                return
        if number >= PEEKED or size > PEEKED_BYTES:
            return
