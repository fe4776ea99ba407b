"""The logs of a job, grouped by what their ranks compiled: one rank of each group is read, the others are counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..events import RankMember
from ..formatting import format_amount
from .crew import Crew
from .log_files import LogFile
from .progress_bar import ProgressBar
from .rank_scan import SCAN_LOGS, ScannedLog, scan_log

#: Logs that one process scans before it answers.
CHUNK = 32
#: More logs than this are grouped unless the caller decides: the page shows 64 ranks.
GROUPED_FROM = 256

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


def describe_members(members: Sequence[RankMember]) -> str:
    """Return what the groups are, to be added to what was read; "" if ranks were not grouped."""
    if not members:
        return ""
    groups = {row.like for row in members}
    return f"; {len(members)} ranks in {format_amount(len(groups), 'group')} that compiled the same"


# Scanning in several processes


def scan_logs(logs: Sequence[LogFile], processes: int) -> list[ScannedLog]:
    """Scan all logs in `processes` processes; return what was found, in the order of the logs."""
    if processes == 1:
        return [scan_log(log) for log in logs]
    chunks = [logs[start : start + CHUNK] for start in range(0, len(logs), CHUNK)]
    questions = ([SCAN_LOGS, str(chunk[0].path), [log.as_json() for log in chunk]] for chunk in chunks)
    progress, done = ProgressBar(sum(log.size for log in logs)), 0
    scanned: list[ScannedLog] = []
    try:
        with Crew(questions, min(processes, len(chunks)), len(chunks)) as crew:
            for chunk, answer in zip(chunks, crew.take_answers(), strict=True):
                scanned += [ScannedLog(*fields) for fields in answer]
                done += sum(log.size for log in chunk)
                progress.show(done, "comparing ranks")
    finally:
        progress.end()
    return scanned
