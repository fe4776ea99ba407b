"""What each rank of a distributed job compiled, and what it ran where torch logged that.

What a rank compiled is its sequence of steps, in order of time. Clocks of ranks need not agree: only the order within a
rank counts.

Two texts of torch hold what a rank ran. `graph_execution`: {"graph_execution_order": [{"compile_id": "0/0"}, ...]}, of
what ran within `torch._inductor.debug.record_and_log_graph_execution_order()`. `inductor_runtime_and_tensor_meta`:
{"ops": [{"name", "type", "estimated_runtime_ns"}, ...]}, of a graph.

Ranks with equal digests have no divergence: the digests are made of all that is compared between ranks.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from ..events import (
    COMPILE_CACHES,
    Artifact,
    CacheLookup,
    Collective,
    Compile,
    Event,
    GraphBreak,
    GuardFailure,
    RankMember,
    Recompile,
    Rows,
    list_ranks,
)
from ..formatting import format_first_line, format_function, get_basename
from .records.shape_records import TENSOR_META

E = TypeVar("E", bound=Event)

EXECUTION = "graph_execution"
#: Characters of a text that is parsed.
MAX_JSON = 16 << 20
#: Outcome of a lookup -> its letter in a rank's sequence.
LETTERS = {"hit": "H", "miss": "M", "guard_miss": "G", "bypass": "B", "disabled": "-", "failed": "F"}
#: Differences between processes that mean nothing: addresses, and which of the same devices a rank has.
_OWN = (re.compile(r"\b0x[0-9a-fA-F]+"), re.compile(r"\b(cuda|xpu|hpu|mps|npu):\d+"))
#: What is around the name of a collective: `torch.ops._c10d_functional.all_reduce_.default`.
_OPERATOR = re.compile(r"^torch\.ops\.\w+\.|\.default$")

#: Cache, tier and outcome of a lookup.
CacheAnswer = tuple[str, str, str]


@dataclass(frozen=True)
class RankStep:
    """One compile of one rank, with all that is compared between ranks.

    `event` is the compile, or the recompile whose compile has not ended.
    """

    rank: int
    event: Compile | Recompile
    recompile: Recompile | None
    caches: tuple[CacheAnswer, ...] = ()
    breaks: tuple[str, ...] = ()
    collectives: tuple[str, ...] = ()

    @property
    def compile(self) -> Compile | None:
        """The compile; None if it has not ended."""
        return self.event if isinstance(self.event, Compile) else None

    @property
    def compile_id(self) -> str | None:
        """torch's id of the compile."""
        return self.event.compile_id

    @property
    def trigger(self) -> str | None:
        """What asked for the compile."""
        return self.event.trigger if isinstance(self.event, Compile) else "dynamo"

    @property
    def duration_s(self) -> float | None:
        """s of the compile; None if it has not ended, or was not timed."""
        return self.event.duration_s if isinstance(self.event, Compile) else None

    @property
    def place(self) -> str:
        """The compiled function in words."""
        return format_function(self.event.function, self.event.file, self.event.line)

    @property
    def target(self) -> tuple[str | None, str | None, str | None, int | None, str | None]:
        """What is compiled: the same on every rank that runs the same program."""
        file = get_basename(self.event.file) if self.event.file else None
        return self.compile_id, self.event.function, file, self.event.line, self.trigger

    @property
    def guard(self) -> tuple[str | None, ...]:
        """The guard that failed, the value that was compiled for and the new one."""
        found = self.recompile
        if found is None:
            return (None, None, None, None)
        return tuple(map(without_own, (found.guard_source, found.guard_kind, found.expected, found.actual)))

    @property
    def outcome(self) -> tuple[str | None, str | None, str | None]:
        """Outcome, class of the exception, and limit that was hit."""
        row = self.compile
        return (row.outcome, row.fail_type, row.limit) if row else (None, None, None)

    @property
    def graph(self) -> tuple[int | None, int | None, int | None]:
        """Calls, nodes and inputs of the graph."""
        row = self.compile
        return (row.graph_ops, row.graph_nodes, row.graph_inputs) if row else (None, None, None)

    @property
    def letters(self) -> str:
        """One letter per lookup in the caches of compiled graphs."""
        return "".join(LETTERS.get(outcome, "?") for _, _, outcome in self.caches)

    @property
    def evidence(self) -> tuple[int, ...]:
        """The event numbers of its recompile, if it is one, and its compile."""
        events = (self.recompile, self.event)
        return tuple(dict.fromkeys(row.event_id for row in events if row is not None and row.event_id is not None))


def without_own(value: str | None) -> str | None:
    if value is None:
        return None
    value = _OWN[0].sub("0x*", value)
    return _OWN[1].sub(r"\1:*", value)


class Steps(dict[int, list[RankStep]]):
    """Rank -> its steps in order of time, for the ranks that the session has rows of.

    Of a job that was read group by group, each of these ranks is the first of a group that compiled the same: `members`
    maps it to all ranks of its group, in order, and `like` maps each of those back to it. What all of a group have in
    common is in the steps, what each rank has of its own are its seconds.
    """

    def __init__(self, ranks: Iterable[int], members: Iterable[RankMember] = ()):
        super().__init__((rank, []) for rank in ranks)
        self.members: dict[int, list[int]] = {rank: [rank] for rank in self}
        self._seconds: dict[int, list[float | None]] = {}
        self.like: dict[int, int] = {rank: rank for rank in self}
        for row in members:
            if row.rank is not None and row.like in self.members and row.rank not in self:
                self.members[row.like].append(row.rank)
                self._seconds[row.rank] = row.step_s or []
                self.like[row.rank] = row.like
        for ranks_alike in self.members.values():
            ranks_alike.sort()

    @property
    def count(self) -> int:
        """Number of ranks of the job."""
        return len(self.like)

    @property
    def is_grouped(self) -> bool:
        """True if the session has no rows of some ranks, because others compiled the same."""
        return len(self.like) > len(self)

    def select(self, ranks: Sequence[int]) -> Steps:
        """The steps of some ranks that the session has rows of, without the ranks like them."""
        chosen = Steps(ranks)
        chosen.update((rank, self[rank]) for rank in ranks)
        return chosen

    def expand(self, ranks: Iterable[int]) -> list[int]:
        """All ranks of the groups of some ranks, in order."""
        return sorted(chain.from_iterable(self.members[rank] for rank in ranks))

    def get_seconds(self, rank: int) -> list[float | None]:
        """The seconds of each step of a rank, its own also if the session has no rows of it."""
        own = self._seconds.get(rank)
        return [step.duration_s for step in self[rank]] if own is None else own

    def get_member_seconds(self, rank: int, position: int) -> float | None:
        """The seconds of the step at a position of a rank that the session has no rows of."""
        own = self._seconds[rank]
        return own[position] if position < len(own) else None


def find_steps(data: Rows) -> Steps:
    """The steps of each rank that recorded anything; none if nothing has a rank."""
    steps = Steps(list_ranks(data), data.rows(RankMember))
    details = _Details(data)
    for event, recompile in _pair_recompiles(data):
        if event.rank is not None:
            steps[event.rank].append(details.add_to(event.rank, event, recompile))
    for own in steps.values():
        own.sort(key=lambda step: (step.event.time_ns, step.event.event_id or 0))
    return steps


def _pair_recompiles(data: Rows) -> Iterator[tuple[Compile | Recompile, Recompile | None]]:
    """Each compile with the recompile that caused it; last the recompiles whose compile has not ended."""
    causes = {row.compile_key: row for row in data.rows(Recompile) if row.compile_key is not None}
    for compile in data.rows(Compile):
        # A backward has the key of its forward, which is the one that was recompiled.
        key = compile.compile_key if compile.trigger != "lazy_backward" else None
        yield compile, None if key is None else causes.pop(key, None)
    yield from ((recompile, recompile) for recompile in causes.values())


class _Details:
    """Lookups, graph breaks and collectives by the compile that they belong to."""

    def __init__(self, data: Rows):
        self._starts = {
            key: sorted(row.time_ns for row in rows) for key, rows in _group_by_key(data.rows(Compile)).items()
        }
        lookups = (row for row in data.rows(CacheLookup) if row.action in (None, "look_up"))
        self._lookups = _group_by_key(row for row in lookups if row.cache in COMPILE_CACHES)
        self._breaks = _group_by_key(data.rows(GraphBreak))
        self._collectives = _group_by_key(data.rows(Collective))

    def add_to(self, rank: int, event: Compile | Recompile, recompile: Recompile | None) -> RankStep:
        """The step of an event with its details."""
        lookups, breaks, collectives = (
            self._select(event, self._lookups),
            self._select(event, self._breaks),
            self._select(event, self._collectives),
        )
        return RankStep(
            rank,
            event,
            recompile,
            caches=tuple((row.cache or "", row.tier or "", row.outcome or "?") for row in lookups),
            breaks=tuple(
                f"{without_own(format_first_line(row.reason or '?')) or '?'} (line {row.user_line})" for row in breaks
            ),
            collectives=tuple(_OPERATOR.sub("", row.op or "?") for row in collectives),
        )

    def _select(self, event: Compile | Recompile, rows: dict[str, list[E]]) -> list[E]:
        """The rows of an event. A forward and its backward have one key: a row belongs to the one that began last."""
        found = rows.get(event.compile_key or "", [])
        starts = self._starts.get(event.compile_key or "", [])
        begin = event.time_ns if starts and starts[0] < event.time_ns else -math.inf
        end = next((start for start in starts if start > event.time_ns), math.inf)
        return [row for row in found if begin <= row.time_ns < end]


def _group_by_key(rows: Iterable[E]) -> dict[str, list[E]]:
    found: dict[str, list[E]] = defaultdict(list)
    for row in rows:
        if row.compile_key is not None:
            found[row.compile_key].append(row)
    return found


# Digests


def digest_steps(steps: Sequence[RankStep], graphs: Iterable[str] = ()) -> str:
    """Return a digest of all that is compared between ranks: equal digests mean that no divergence is found.

    `graphs` are the compile ids of the graphs that ran, in order.
    """
    digest = hashlib.md5(usedforsecurity=False)
    for step in steps:
        aspects = (step.target, step.guard, step.outcome, step.breaks, step.collectives, step.graph, step.caches)
        digest.update(repr(aspects).encode("utf-8", "replace"))
    digest.update(repr(list(graphs)).encode("utf-8", "replace"))
    return digest.hexdigest()


def digest_guard_failures(data: Rows) -> str:
    """Return a digest of all guards that failed, also of those that no step names."""
    digest = hashlib.md5(usedforsecurity=False)
    for row in data.rows(GuardFailure):
        parts = (row.guard_source, row.guard_kind, without_own(row.expected), without_own(row.actual))
        digest.update(repr((row.compile_id, row.entry_compile_id, *parts)).encode("utf-8", "replace"))
    return digest.hexdigest()


# What ranks ran, where torch logged it


@dataclass(frozen=True)
class GraphRun:
    """One run of a compiled graph: its compile id, and the text that names it."""

    compile_id: str
    artifact: Artifact


def find_graph_runs(data: Rows) -> dict[int, list[GraphRun]]:
    """rank -> the graphs that it ran, in order."""
    runs: dict[int, list[GraphRun]] = defaultdict(list)
    for rank, row, content in _read_texts(data, EXECUTION):
        runs[rank] += [GraphRun(name, row) for name in _list_graph_names(content)]
    return dict(runs)


def read_graph_names(text: bytes) -> list[str]:
    """Return the compile ids of the graphs that ran, in order, given torch's text `graph_execution`."""
    return _list_graph_names(_parse_dict(text) or {})


def _list_graph_names(content: dict[str, Any]) -> list[str]:
    return [str(graph.get("compile_id")) for graph in _list_dicts(content.get("graph_execution_order"))]


def estimate_runtimes(data: Rows) -> dict[str, float]:
    """Compile key -> ms that torch expects the graph to run."""
    runtimes: dict[str, float] = {}
    for _, row, content in _read_texts(data, TENSOR_META):
        times: list[Any] = [op.get("estimated_runtime_ns") for op in _list_dicts(content.get("ops"))]
        known = [time for time in times if type(time) in (int, float) and math.isfinite(time)]
        if (key := row.compile_key) is not None:
            runtimes[key] = sum(known) / 1e6
    return runtimes


def _read_texts(data: Rows, name: str) -> Iterator[tuple[int, Artifact, dict[str, Any]]]:
    """The texts of a name with their ranks, as JSON; others are passed over. Only a session's file keeps texts."""
    read: Any = getattr(data, "artifact", None)
    rows: Sequence[Artifact] = data.rows(Artifact) if read else ()
    refused: set[str | None] = set()  # Any number of artifacts can have the same text.
    for row in rows:
        if row.name == name and row.rank is not None and row.digest not in refused:
            try:
                content = _parse_dict(read(row.event_id))
            except (KeyError, ValueError):
                content = None
            if content is None:
                refused.add(row.digest)
            else:
                yield row.rank, row, content


def _parse_dict(text: str | bytes) -> dict[str, Any] | None:
    """A text as JSON; None if it is something else, or longer than torch writes it."""
    try:
        content = json.loads(text) if len(text) < MAX_JSON else None
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _list_dicts(content: Any) -> list[dict[str, Any]]:
    return [item for item in content if isinstance(item, dict)] if isinstance(content, list) else []
