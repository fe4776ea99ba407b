"""The ranks of one session, compared with each other: `session.ranks()`."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from ...decode.rank_steps import RankStep, Steps, digest_steps, estimate_runtimes, find_graph_runs, find_steps
from ...document import Block, Items, Section, shorten_items, to_text
from ...events import Rows
from ...formatting import format_amount, format_count, format_function, format_seconds
from ..evidence import is_timed, sum_seconds
from .divergence import ASPECTS, Divergence, find_all_divergences, find_divergences

#: Ranks, groups and compiles that the text shows.
SHOWN = 10
DTYPES = {
    **dict.fromkeys(("compile_s", "behind_s", "slowest_s", "median_s", "spread_s", "runtime_ms"), "float64"),
    **dict.fromkeys(("rank", "compiles", "recompiles", "graph_breaks", "order", "line", "slowest_rank"), "Int64"),
    **dict.fromkeys(("ranks", "missing", "differs", "others", "evidence"), "object"),
    "position": "Int64",
    "count": "Int64",
    "time": "datetime64[ns, UTC]",
}


class Ranks:
    """What ranks did alike and where they differ: `first`, `divergences`, `frame`, `groups`, `graphs`, `summary()`.

    Of a job that was read group by group, seconds are those of each rank, and all else is that of its group.
    """

    def __init__(self, data: Rows, is_live: bool = False):
        self._steps = find_steps(data)
        self.divergences = find_all_divergences(data, self._steps, is_live)
        self._ranks = make_rank_rows(self._steps, self.divergences)
        self._groups = make_rank_groups(group_ranks(data, self._steps), self._steps, self._ranks)
        self._graphs = make_graph_rows(self._steps, estimate_runtimes(data))

    @property
    def first(self) -> Divergence | None:
        """Where they first differ; None if they don't, or there are fewer than two ranks."""
        return self.divergences[0] if self.divergences else None

    @property
    def frame(self) -> pd.DataFrame:
        """One row per rank, the one that compiled longest first: rank, compiles, recompiles, graph_breaks, compile_s
        and behind_s (s), lookups (H hit, M miss, G guard miss, B bypass, - off, F failed), first_difference.
        """
        return _make_frame(self._ranks, list_columns(RankRow))

    @property
    def groups(self) -> pd.DataFrame:
        """One row per group of ranks that compiled the same for the same reasons, the largest first: rank (the first of
        them), count, ranks, compiles, recompiles, graph_breaks, lookups, median_s, slowest_rank, slowest_s,
        difference (where that rank first differs from the first of the largest group).
        """
        return _make_frame(self._groups, list_columns(RankGroup))

    @property
    def graphs(self) -> pd.DataFrame:
        """One row per compile over all ranks, that with the slowest straggler first: order, compile_id, function, file,
        line, trigger, ranks, missing (ranks without it), differs, slowest_rank, slowest_s, median_s, spread_s (s),
        runtime_ms (what torch expects one run to take where it takes longest; NA if it did not log that).
        """
        return _make_frame(self._graphs, list_columns(GraphRow))

    @property
    def differences(self) -> pd.DataFrame:
        """One row per divergence, in order: see `compilediag.diagnosis.ranks.divergence.Divergence`."""
        names = ["time" if f.name == "time_ns" else f.name for f in fields(Divergence)]
        return _make_frame(self.divergences, names)

    def __repr__(self) -> str:
        return f"<compilediag ranks: {self._steps.count} ranks, {len(self.divergences)} divergences>"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        printer.text(self.summary())

    def summary(self) -> str:
        """Where they differ, and the stragglers, as plain text."""
        return f"{to_text(self._describe(), width=None)}\n"

    def _describe(self) -> Section:
        if self._steps.count < 2:
            return Section("compilediag: this session has fewer than two ranks.")
        head = (
            f"compilediag: {format_amount(self._steps.count, 'rank')}. {'First difference:' if self.first else _ALIKE}"
        )
        groups = self._groups if len(self._groups) < self._steps.count else []
        return Section(
            Section(head, Items([[one.sentence] for one in self.divergences], "indented")),
            _list_first("Groups of ranks that compiled the same, the largest first:", map(_describe_group, groups)),
            _list_first("Ranks, the one that compiled longest first:", map(_describe_rank, self._ranks)),
            _list_first("Compiles, the slowest straggler first:", map(self._describe_graph, self._graphs)),
        )

    def _describe_graph(self, row: GraphRow) -> list[Block]:
        where = f"{row.compile_id or '?'} of {format_function(row.function, row.file, row.line)}"
        slow = "not timed"
        if row.slowest_s is not None and row.median_s is not None:
            slow = f"rank {row.slowest_rank} {format_seconds(row.slowest_s)}, median {format_seconds(row.median_s)}"
        missing, count = format_count(len(row.missing)), format_amount(self._steps.count, "rank")
        gaps = f"; not on {missing} of {count}" if row.missing else ""
        return [f"{where}: {slow}{gaps}" + (f"; differs: {', '.join(row.differs)}" if row.differs else "")]


_ALIKE = "All ranks compiled the same functions for the same reasons in the same order."


def _format_counts(row: RankRow | RankGroup) -> str:
    counts = {"compile": row.compiles, "recompile": row.recompiles, "graph break": row.graph_breaks}
    return ", ".join(format_amount(count, name) for name, count in counts.items())


def _describe_group(row: RankGroup) -> list[Block]:
    seconds = f"median {format_seconds(row.median_s)}, slowest {format_seconds(row.slowest_s)}"
    slowest = f" on rank {row.slowest_rank}" if row.count > 1 else ""
    line = f"{name_group(row)}: {_format_counts(row)}, {seconds}{slowest}"
    return [line, row.difference] if row.difference else [line]


def _describe_rank(row: RankRow) -> list[Block]:
    caches = f", caches {row.lookups[:40]}" if row.lookups else ""
    return [f"rank {row.rank}: {format_seconds(row.compile_s)}, {_format_counts(row)}{caches}"]


def _list_first(title: str, items: Iterable[Sequence[Block]]) -> Section:
    """The first items below a title; nothing without items."""
    found = [*items]
    return Section(title, shorten_items(Items(found, "indented"), SHOWN)) if found else Section()


def _make_frame(rows: Sequence[Any], names: list[str]) -> pd.DataFrame:
    import pandas as pd

    def make_column(name: str) -> pd.Series:
        values = [getattr(row, name) for row in rows]
        return pd.Series([list(v) if isinstance(v, tuple) else v for v in values], dtype=DTYPES.get(name, "string"))

    return pd.DataFrame({name: make_column(name) for name in names})


# Rows: one per rank, and one per compile over all ranks

#: Letters of a rank's lookups that are shown; a long run has thousands.
MOST_LETTERS = 200
_NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class RankRow:
    """One rank. `behind_s`: seconds that it compiled longer than the median rank."""

    rank: int
    compiles: int
    recompiles: int
    graph_breaks: int
    compile_s: float
    behind_s: float
    lookups: str
    first_difference: str | None


@dataclass(frozen=True)
class GraphRow:
    """One compile over all ranks: the same id, function and trigger, the n-th time that the id is used.

    `ranks` have it, `missing` do not; `differs` names what is not the same on all that have it. `order` is its place in
    the order of most ranks. `spread_s`: seconds that the median rank is done before the slowest one; a rank that did
    not compile it is done at once. `runtime_ms`: what torch expects the graph to take on the rank where it takes
    longest, where it logged that. `steps` are those of the ranks that the session has rows of, `seconds` those of all
    ranks that have it.
    """

    order: int
    compile_id: str | None
    function: str | None
    file: str | None
    line: int | None
    trigger: str | None
    ranks: list[int]
    missing: list[int]
    differs: list[str]
    slowest_rank: int | None
    slowest_s: float | None
    median_s: float | None
    spread_s: float | None
    runtime_ms: float | None
    steps: dict[int, RankStep]
    seconds: dict[int, float]


#: A step, and its position among the steps of its rank.
PlacedStep = tuple[int, RankStep]


def make_rank_rows(steps: Steps, divergences: Sequence[Divergence]) -> list[RankRow]:
    """One row per rank, the one that compiled longest first."""
    spent = {rank: sum_seconds(steps.get_seconds(rank)) for rank in steps.like}
    median = statistics.median(spent.values()) if spent else 0.0
    differing = [(_name_divergence(one), frozenset(one.ranks)) for one in divergences]
    shared = {rank: _summarize_steps(own) for rank, own in steps.items()}
    rows = [
        RankRow(
            rank=rank,
            compile_s=spent[rank],
            behind_s=spent[rank] - median,
            first_difference=next((name for name, ranks in differing if rank in ranks), None),
            **shared[like],
        )
        for rank, like in steps.like.items()
    ]
    return sorted(rows, key=lambda row: (-row.compile_s, row.rank))


class _StepCounts(TypedDict):
    """What ranks that compiled the same have in common."""

    compiles: int
    recompiles: int
    graph_breaks: int
    lookups: str


def _summarize_steps(own: Sequence[RankStep]) -> _StepCounts:
    return {
        "compiles": len(own),
        "recompiles": sum(step.recompile is not None for step in own),
        "graph_breaks": sum(len(step.breaks) for step in own),
        "lookups": "".join(step.letters for step in own)[:MOST_LETTERS],
    }


def _name_divergence(one: Divergence) -> str:
    kind = "diverged" if one.kind == "way" else one.kind.replace("_", " ")
    return f"{kind} at {one.compile_id}" if one.compile_id else kind


def make_graph_rows(steps: Steps, runtimes: Mapping[str, float] = _NOTHING) -> list[GraphRow]:
    """One row per compile, the one with the slowest straggler first; `runtimes` is what `estimate_runtimes` gives."""
    alike: dict[tuple[object, ...], dict[int, PlacedStep]] = defaultdict(dict)
    places: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, own in steps.items():
        times: dict[tuple[object, ...], int] = defaultdict(int)
        for position, step in enumerate(own):
            key = (*step.target, times[step.target])
            times[step.target] += 1
            alike[key][rank] = position, step
            places[key] += [position] * len(steps.members[rank])
    ordered = sorted(alike, key=lambda key: (statistics.median(places[key]), -len(places[key]), str(key)))
    rows = [_make_graph_row(order, alike[key], steps, runtimes) for order, key in enumerate(ordered)]
    return sorted(rows, key=lambda row: (-(row.spread_s or 0.0), row.order))


def _make_graph_row(order: int, placed: dict[int, PlacedStep], steps: Steps, runtimes: Mapping[str, float]) -> GraphRow:
    own = {rank: step for rank, (_, step) in placed.items()}
    first = next(iter(own.values()))
    timed = _time_ranks(placed, steps)
    slowest = max(timed, key=lambda rank: timed[rank], default=None)
    slowest_s = None if slowest is None else timed[slowest]
    expected = [runtimes[key] for step in own.values() if (key := step.event.compile_key or "") in runtimes]
    missing = steps.expand(rank for rank in steps if rank not in own)
    everywhere = [*timed.values(), *(0.0 for _ in missing)]
    return GraphRow(
        order=order,
        compile_id=first.compile_id,
        function=first.event.function,
        file=first.event.file,
        line=first.event.line,
        trigger=first.trigger,
        ranks=steps.expand(own),
        missing=missing,
        differs=[kind for kind, aspect in ASPECTS.items() if len({aspect(step) for step in own.values()}) > 1],
        slowest_rank=slowest,
        slowest_s=slowest_s,
        median_s=statistics.median(timed.values()) if timed else None,
        spread_s=None if slowest_s is None else slowest_s - statistics.median(everywhere),
        runtime_ms=max(expected, default=None),
        steps=own,
        seconds=timed,
    )


def _time_ranks(placed: dict[int, PlacedStep], steps: Steps) -> dict[int, float]:
    """Rank -> the seconds of a compile on that rank, for all ranks that timed it."""
    timed: dict[int, float] = {}
    for loaded, (position, step) in placed.items():
        for rank in steps.members[loaded]:
            own = step.duration_s if rank == loaded else steps.get_member_seconds(rank, position)
            if is_timed(own):
                timed[rank] = own
    return dict(sorted(timed.items()))


def list_columns(cls: type[Any]) -> list[str]:
    """The columns of rows of a kind: the fields that are cells."""
    return [f.name for f in fields(cls) if f.name not in ("steps", "seconds")]


if TYPE_CHECKING:
    import pandas as pd

    class _Printer(Protocol):
        def text(self, text: str) -> None: ...


# Groups of ranks that compiled the same, for the same reasons, in the same order

#: Groups that are compared with the largest one.
MOST_COMPARED = 64


@dataclass(frozen=True)
class RankGroup:
    """Ranks that compiled the same. `rank` is the first of them, whose rows the session has; all numbers of seconds
    are computed from all ranks of the group. `difference` is where that rank first differs from the first of the
    largest group.
    """

    rank: int
    count: int
    ranks: list[int]
    compiles: int
    recompiles: int
    graph_breaks: int
    lookups: str
    median_s: float
    slowest_rank: int
    slowest_s: float
    difference: str | None


def group_ranks(data: Rows, steps: Steps) -> list[list[int]]:
    """Return the groups of ranks that the session has rows of and that compiled the same, the largest group first."""
    runs = find_graph_runs(data)
    alike: dict[str, list[int]] = defaultdict(list)
    for rank, own in steps.items():
        alike[digest_steps(own, (run.compile_id for run in runs.get(rank, ())))].append(rank)
    return sorted(alike.values(), key=lambda loaded: (-len(steps.expand(loaded)), loaded))


def make_rank_groups(groups: Sequence[list[int]], steps: Steps, rows: Sequence[RankRow]) -> list[RankGroup]:
    """One row per group that `group_ranks` gives. `rows` are those of all ranks."""
    by_rank = {row.rank: row for row in rows}
    return [
        _make_group([by_rank[rank] for rank in steps.expand(loaded)], _compare(loaded, groups[0], steps, number))
        for number, loaded in enumerate(groups)
    ]


def _compare(loaded: Sequence[int], largest: Sequence[int], steps: Steps, number: int) -> str | None:
    """Return where the first rank of a group differs from the first of the largest one; None for too many groups."""
    if not 0 < number < MOST_COMPARED:
        return None
    found = find_divergences(steps.select((largest[0], loaded[0])))
    return found[0].sentence if found else None


def name_group(group: RankGroup) -> str:
    """`2,000 ranks like rank 0`, or `rank 3` if it is alone."""
    return f"{format_amount(group.count, 'rank')} like rank {group.rank}" if group.count > 1 else f"rank {group.rank}"


def _make_group(rows: Sequence[RankRow], difference: str | None) -> RankGroup:
    first, slowest = rows[0], max(rows, key=lambda row: row.compile_s)
    return RankGroup(
        rank=first.rank,
        count=len(rows),
        ranks=[row.rank for row in rows],
        compiles=first.compiles,
        recompiles=first.recompiles,
        graph_breaks=first.graph_breaks,
        lookups=first.lookups,
        median_s=statistics.median(row.compile_s for row in rows),
        slowest_rank=slowest.rank,
        slowest_s=slowest.compile_s,
        difference=difference,
    )
