"""The ranks of one session, compared with each other: `session.ranks()`."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from ...events import Rows
from ...formatting import format_amount, format_function, format_seconds
from ..evidence import is_timed, sum_seconds
from .divergence import ASPECTS, Divergence, find_all_divergences
from .rank_steps import RankStep, Steps, estimate_runtimes, find_steps

if TYPE_CHECKING:
    import pandas as pd

    class _Printer(Protocol):
        def text(self, text: str) -> None: ...


#: Letters of a rank's lookups that are shown; a long run has thousands.
MOST_LETTERS = 200
#: Ranks and compiles that the text shows.
SHOWN = 10
DTYPES = {
    **dict.fromkeys(("compile_s", "behind_s", "slowest_s", "median_s", "spread_s", "runtime_ms"), "float64"),
    **dict.fromkeys(("rank", "compiles", "recompiles", "graph_breaks", "order", "line", "slowest_rank"), "Int64"),
    **dict.fromkeys(("ranks", "missing", "differs", "others", "evidence"), "object"),
    "position": "Int64",
    "time": "datetime64[ns, UTC]",
}
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
    longest, where it logged that.
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


def make_rank_rows(steps: Steps, divergences: Sequence[Divergence]) -> list[RankRow]:
    """One row per rank, the one that compiled longest first."""
    spent = {rank: sum_seconds(step.duration_s for step in own) for rank, own in steps.items()}
    median = statistics.median(spent.values()) if spent else 0.0
    rows = [
        RankRow(
            rank=rank,
            compiles=len(own),
            recompiles=sum(step.recompile is not None for step in own),
            graph_breaks=sum(len(step.breaks) for step in own),
            compile_s=spent[rank],
            behind_s=spent[rank] - median,
            lookups="".join(step.letters for step in own)[:MOST_LETTERS],
            first_difference=next((_name_divergence(one) for one in divergences if rank in one.ranks), None),
        )
        for rank, own in steps.items()
    ]
    return sorted(rows, key=lambda row: (-row.compile_s, row.rank))


def _name_divergence(one: Divergence) -> str:
    kind = "diverged" if one.kind == "way" else one.kind.replace("_", " ")
    return f"{kind} at {one.compile_id}" if one.compile_id else kind


def make_graph_rows(steps: Steps, runtimes: Mapping[str, float] = _NOTHING) -> list[GraphRow]:
    """One row per compile, the one with the slowest straggler first; `runtimes` is what `estimate_runtimes` gives."""
    alike: dict[tuple[object, ...], dict[int, RankStep]] = defaultdict(dict)
    places: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, own in steps.items():
        times: dict[tuple[object, ...], int] = defaultdict(int)
        for position, step in enumerate(own):
            key = (*step.target, times[step.target])
            times[step.target] += 1
            alike[key][rank] = step
            places[key].append(position)
    ordered = sorted(alike, key=lambda key: (statistics.median(places[key]), -len(alike[key]), str(key)))
    rows = [_make_graph_row(order, alike[key], list(steps), runtimes) for order, key in enumerate(ordered)]
    return sorted(rows, key=lambda row: (-(row.spread_s or 0.0), row.order))


def _make_graph_row(order: int, own: dict[int, RankStep], ranks: list[int], runtimes: Mapping[str, float]) -> GraphRow:
    first = next(iter(own.values()))
    timed = {rank: step.duration_s for rank, step in own.items() if is_timed(step.duration_s)}
    slowest = max(timed, key=lambda rank: timed[rank], default=None)
    slowest_s = None if slowest is None else timed[slowest]
    expected = [runtimes[key] for step in own.values() if (key := step.event.compile_key or "") in runtimes]
    everywhere = [*timed.values(), *(0.0 for rank in ranks if rank not in own)]
    return GraphRow(
        order=order,
        compile_id=first.compile_id,
        function=first.event.function,
        file=first.event.file,
        line=first.event.line,
        trigger=first.trigger,
        ranks=sorted(own),
        missing=[rank for rank in ranks if rank not in own],
        differs=[kind for kind, aspect in ASPECTS.items() if len({aspect(step) for step in own.values()}) > 1],
        slowest_rank=slowest,
        slowest_s=slowest_s,
        median_s=statistics.median(timed.values()) if timed else None,
        spread_s=None if slowest_s is None else slowest_s - statistics.median(everywhere),
        runtime_ms=max(expected, default=None),
        steps=own,
    )


def list_columns(cls: type[RankRow] | type[GraphRow]) -> list[str]:
    """The columns of rows of a kind: the fields that are cells."""
    return [f.name for f in fields(cls) if f.name != "steps"]


class Ranks:
    """What ranks did alike and where they differ: `first`, `divergences`, `frame`, `graphs`, `summary()`."""

    def __init__(self, data: Rows, is_live: bool = False):
        self._steps = find_steps(data)
        self.divergences = find_all_divergences(data, self._steps, is_live)
        self._ranks = make_rank_rows(self._steps, self.divergences)
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
        return f"<compilediag ranks: {len(self._steps)} ranks, {len(self.divergences)} divergences>"

    def _repr_pretty_(self, printer: _Printer, cycle: bool) -> None:
        printer.text(self.summary())

    def summary(self) -> str:
        """Where they differ, and the stragglers, as plain text."""
        if len(self._steps) < 2:
            return "compilediag: this session has fewer than two ranks.\n"
        lines = [f"compilediag: {len(self._steps)} ranks. " + ("First difference:" if self.first else _ALIKE)]
        lines += [f"  {one.sentence}" for one in self.divergences]
        return "\n".join([*lines, "", *self._list_ranks(), "", *self._list_graphs()]) + "\n"

    def _list_ranks(self) -> list[str]:
        lines = ["Ranks, the one that compiled longest first:"]
        for row in self._ranks[:SHOWN]:
            caches = f", caches {row.lookups[:40]}" if row.lookups else ""
            counts = (
                format_amount(row.compiles, "compile"),
                format_amount(row.recompiles, "recompile"),
                format_amount(row.graph_breaks, "graph break"),
            )
            lines.append(f"  rank {row.rank}: {format_seconds(row.compile_s)}, {', '.join(counts)}{caches}")
        return [*lines, *_count_hidden(self._ranks)]

    def _list_graphs(self) -> list[str]:
        lines = ["Compiles, the slowest straggler first:"]
        lines += [f"  {self._describe_graph(row)}" for row in self._graphs[:SHOWN]]
        return [*lines, *_count_hidden(self._graphs)]

    def _describe_graph(self, row: GraphRow) -> str:
        where = f"{row.compile_id or '?'} of {format_function(row.function, row.file, row.line)}"
        slow = "not timed"
        if row.slowest_s is not None and row.median_s is not None:
            slow = f"rank {row.slowest_rank} {format_seconds(row.slowest_s)}, median {format_seconds(row.median_s)}"
        gaps = f"; not on {len(row.missing)} of {len(self._steps)} ranks" if row.missing else ""
        return f"{where}: {slow}{gaps}" + (f"; differs: {', '.join(row.differs)}" if row.differs else "")


_ALIKE = "All ranks compiled the same functions for the same reasons in the same order."


def _count_hidden(rows: Sequence[object]) -> list[str]:
    return [f"  ... and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []


def _make_frame(rows: Sequence[Any], names: list[str]) -> pd.DataFrame:
    import pandas as pd

    def make_column(name: str) -> pd.Series:
        values = [getattr(row, name) for row in rows]
        return pd.Series([list(v) if isinstance(v, tuple) else v for v in values], dtype=DTYPES.get(name, "string"))

    return pd.DataFrame({name: make_column(name) for name in names})
