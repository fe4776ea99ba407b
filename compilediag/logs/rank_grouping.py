"""The logs of a job, grouped by what their ranks compiled: one rank of each group is read, the others are counted.

What a rank compiled is a digest, found without a session: only the records that decide what was compiled are parsed
(`is_deciding`), by the decoder that reads logs into sessions, and the steps are those that ranks are compared by. So
ranks with equal digests have no divergence. Per rank, the scan keeps the seconds of each compile.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..decode.rank_steps import EXECUTION, digest_guard_failures, digest_steps, find_steps, read_graph_names
from ..decode.records.cache_records import AFTER_A_LOOKUP
from ..decode.records.compilation_metrics import KINDS as METRICS
from ..decode.records.record_kinds import CONTEXT, KNOWN
from ..decode.records.trace_log import read_records
from ..errors import CompilediagError
from ..events import CacheLookup, Collective, Compile, Event, GraphBreak, GuardFailure, RankMember, Recompile, RowList
from .log_decoder import LogDecoder
from .log_files import LogFile, ProgressBar, open_log
from .workers import start_workers

#: More logs than this are grouped unless the caller decides: the page shows 64 ranks.
GROUPED_FROM = 256
#: The events that steps are made from.
_OF_STEPS = (Compile, Recompile, CacheLookup, GraphBreak, Collective, GuardFailure)


@dataclass(frozen=True)
class ScannedLog:
    """What one log has of one rank. `ranks` are all that it names: a log of none or of several is not grouped.

    `step_s` are the seconds of each compile in order, the first of which began at `began_ns` and the last at `last_ns`.
    """

    ranks: tuple[int, ...]
    digest: str = ""
    began_ns: int = 0
    last_ns: int = 0
    step_s: tuple[float | None, ...] = ()

    @property
    def rank(self) -> int | None:
        """The rank whose log this is; None if there is none, or several."""
        return self.ranks[0] if len(self.ranks) == 1 else None


#: A log with what was found in it.
FoundLog = tuple[LogFile, ScannedLog]


@dataclass(frozen=True)
class GroupedLogs:
    """The logs to read, and one row per rank of the groups that they stand for."""

    logs: list[LogFile]
    members: list[RankMember]


def group_logs(logs: Sequence[LogFile], processes: int) -> GroupedLogs:
    """Scan all logs, and return those of the first rank of each group.

    A log of no rank or of several is not grouped, and neither are the ranks in it, nor a rank with logs that overlap in
    time: they are read.
    """
    found = list(zip(logs, scan_logs(logs, processes), strict=True))
    by_rank, alone = _sort_by_rank(found)
    groups: dict[object, list[int]] = defaultdict(list)
    for rank, own in sorted(by_rank.items()):
        groups[rank if rank in alone else tuple(scan.digest for _, scan in own)].append(rank)
    like = {rank: ranks[0] for ranks in groups.values() for rank in ranks}
    read = {log.path for log, scan in found if scan.rank is None or like[scan.rank] == scan.rank}
    members = [_make_member(rank, like[rank], by_rank[rank]) for rank in sorted(by_rank)]
    return GroupedLogs([log for log in logs if log.path in read], members if len(read) < len(logs) else [])


def _sort_by_rank(found: Sequence[FoundLog]) -> tuple[dict[int, list[FoundLog]], set[int]]:
    """Return rank -> its logs in order of time, and the ranks that cannot be grouped."""
    by_rank: dict[int, list[FoundLog]] = defaultdict(list)
    alone = {rank for _, scan in found if scan.rank is None for rank in scan.ranks}
    for log, scan in sorted(found, key=lambda one: one[1].began_ns):
        if scan.rank is not None:
            by_rank[scan.rank].append((log, scan))
    for rank, own in by_rank.items():
        if any(second.began_ns <= first.last_ns for (_, first), (_, second) in pairwise(own)):
            alone.add(rank)
    return by_rank, alone


def _make_member(rank: int, like: int, own: Sequence[FoundLog]) -> RankMember:
    step_s = [seconds for _, scan in own for seconds in scan.step_s]
    return RankMember(
        time_ns=own[0][1].began_ns or own[0][0].changed_ns,
        rank=rank,
        like=like,
        digest="+".join(scan.digest for _, scan in own),
        compiles=len(step_s),
        compile_s=sum(seconds for seconds in step_s if seconds is not None),
        step_s=step_s,
        logs=[str(log.path) for log, _ in own],
    )


# Scanning


def scan_logs(logs: Sequence[LogFile], processes: int) -> list[ScannedLog]:
    """Scan all logs in `processes` processes; return what was found, in the order of the logs."""
    if processes == 1:
        return [scan_log(log) for log in logs]
    progress, done = ProgressBar(sum(log.size for log in logs)), 0
    scanned: list[ScannedLog] = []
    shares = [logs[own::processes] for own in range(min(processes, len(logs)))]
    try:
        with start_workers(scan_share, [[[log.as_json() for log in share]] for share in shares]) as workers:
            for number, log in enumerate(logs):
                scanned.append(ScannedLog(*workers[number % len(workers)].take(log.path)))
                done += log.size
                progress.show(done, "comparing ranks")
    finally:
        progress.end()
    return scanned


def scan_share(logs: list[list[Any]]) -> Iterator[tuple[Any, ...]]:
    """In another process: scan some logs, and yield the fields of what was found in each."""
    for log in logs:
        yield dataclasses.astuple(scan_log(LogFile.from_json(log)))


def scan_log(log: LogFile) -> ScannedLog:
    """Scan one log. One that can't be read has no rank: it is not grouped, and reading it reports why."""
    events: list[Event] = []
    graphs: list[str] = []
    ranks: set[int] = set()
    try:
        with open_log(log.path) as stream:
            decoder = LogDecoder(log, read_records(stream, keep=is_deciding))
            for items, _, rank in decoder.decode():
                if rank is not None:
                    ranks.add(rank)
                for item in items:
                    if isinstance(item, _OF_STEPS):
                        events.append(item)
                    elif isinstance(item, tuple) and item[0].name == EXECUTION and isinstance(item[1], bytes):
                        graphs += read_graph_names(item[1])
            ranks.update(decoder.find_ranks().values())
    except (CompilediagError, OSError):
        return ScannedLog(())
    if log.rank is not None and not ranks:
        ranks.add(log.rank)
    if len(ranks) != 1:
        return ScannedLog(tuple(sorted(ranks)))
    rank = ranks.pop()
    data = RowList(dataclasses.replace(event, rank=rank) for event in events)
    steps = find_steps(data).get(rank, [])
    digest = digest_steps(steps, graphs) + digest_guard_failures(data)
    times = [step.event.time_ns for step in steps] or [0]
    return ScannedLog((rank,), digest, times[0], times[-1], tuple(step.duration_s for step in steps))


# Records

#: The first field of a record, which is its kind, and the name of an artifact.
_KIND = re.compile(rb'\] \{"(\w+)": (?:\{"name": "([^"\n]{0,200})")?')
#: Bytes in which the kind has to be.
_HEAD = 2_000
#: Known kinds that decide: files and functions, outcomes, and guards, which have the values of a new entry.
_DECIDING = frozenset(
    kind.encode() for kind in ("str", "dynamo_start", "create_symbol", "artifact", *AFTER_A_LOOKUP, *METRICS)
)
_KNOWN = frozenset(kind.encode() for kind in (KNOWN | CONTEXT))
_CONTEXT = frozenset(kind.encode() for kind in CONTEXT)
#: Artifacts that decide: reasons, graph breaks, lookups, collectives, and the order in which graphs ran.
_ARTIFACTS = re.compile(
    rb"recompile_reasons|dynamo_graph_break_reason|torch_version|graph_execution|inductor_collective_schedule"
    rb"|inductor_runtime_and_tensor_meta|(?:fx_graph|aotautograd|autograd)_(?:bundled_)?cache_\w+"
)
#: Timed events that decide: the begin of a compile or of its attempt, and lookups.
_TIMED = re.compile(rb'"name": "(?:dynamo|compile_attempt_\d+|(?:fx_graph|aotautograd|autograd)_cache_\w+)"')
_END = b'"ph": "E"'


def is_deciding(piece: bytes) -> bool:
    """Return whether a record, given as its bytes, decides what was compiled. One of an unknown kind does."""
    found = _KIND.search(piece, 0, _HEAD)
    if found is None:
        return True
    kind, name = found.groups()
    if kind == b"chromium_event":
        return _TIMED.search(piece) is not None and _END not in piece
    if kind == b"artifact":
        return name is None or _ARTIFACTS.fullmatch(name) is not None
    return kind in _DECIDING or kind in _CONTEXT or kind not in _KNOWN
