"""The ranks of one session, compared with each other: `session.ranks()`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol

from ...decode.rank_steps import estimate_runtimes, find_steps
from ...document import Block, Items, Section, shorten_items, to_text
from ...events import Rows
from ...formatting import format_amount, format_count, format_function, format_seconds
from .divergence import Divergence, find_all_divergences
from .rank_groups import RankGroup, group_ranks, make_rank_groups, name_group
from .rank_rows import GraphRow, RankRow, list_columns, make_graph_rows, make_rank_rows

if TYPE_CHECKING:
    import pandas as pd

    class _Printer(Protocol):
        def text(self, text: str) -> None: ...


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
