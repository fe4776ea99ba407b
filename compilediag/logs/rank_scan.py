"""What the rank of a log compiled, as a digest, without a session: ranks are grouped before their logs are read.

Only the records that decide what was compiled are parsed (`decode/records/deciding_records.py`), by the decoder that
reads logs into sessions, and the steps are those that ranks are compared by. So ranks with equal digests have no
divergence. Per rank, the scan keeps the seconds of each compile.
"""

from __future__ import annotations

import dataclasses
import marshal
from collections.abc import Sequence
from dataclasses import dataclass

from ..decode.records.deciding_records import is_deciding
from ..decode.records.trace_log import read_records
from ..errors import CompilediagError
from ..events import CacheLookup, Collective, Compile, Event, GraphBreak, GuardFailure, Recompile, RowList
from .crew import Question
from .log_decoder import LogDecoder
from .log_files import LogFile, open_log

#: The events that steps are made from.
_OF_STEPS = (Compile, Recompile, CacheLookup, GraphBreak, Collective, GuardFailure)
SCAN_LOGS = "scan"


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


def scan_log(log: LogFile) -> ScannedLog:
    """Scan one log. One that can't be read has no rank: it is not grouped, and reading it reports why."""
    from ..diagnosis.ranks.rank_steps import EXECUTION, read_graph_names  # Slow to import, and few jobs need it.

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
    return _digest_rank(ranks.pop(), events, graphs) if len(ranks) == 1 else ScannedLog(tuple(sorted(ranks)))


def _digest_rank(rank: int, events: Sequence[Event], graphs: Sequence[str]) -> ScannedLog:
    from ..diagnosis.ranks.rank_groups import digest_guard_failures, digest_steps
    from ..diagnosis.ranks.rank_steps import find_steps

    data = RowList(dataclasses.replace(event, rank=rank) for event in events)
    steps = find_steps(data).get(rank, [])
    digest = digest_steps(steps, graphs) + digest_guard_failures(data)
    times = [step.event.time_ns for step in steps] or [0]
    return ScannedLog((rank,), digest, times[0], times[-1], tuple(step.duration_s for step in steps))


def answer_scan(question: Question) -> bytes:
    """Scan the logs that a question of another process lists; return the fields of what was found."""
    logs = map(LogFile.from_json, question[2])
    return marshal.dumps([dataclasses.astuple(scan_log(log)) for log in logs])
