"""The ranks of one session, told against each other: `session.ranks()`."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..wording import place, spent
from .divergence import Divergence, all_divergences, sequences
from .rank_runs import estimates
from .rank_tables import GraphRow, RankRow, columns, graph_rows, rank_rows

if TYPE_CHECKING:
    import pandas as pd

    from ...session import Session

SHOWN = 10
DTYPES = {
    **dict.fromkeys(("compile_s", "behind_s", "slowest_s", "median_s", "spread_s", "runtime_ms"), "float64"),
    **dict.fromkeys(("rank", "compiles", "recompiles", "graph_breaks", "order", "line", "slowest_rank"), "Int64"),
    **dict.fromkeys(("ranks", "missing", "differs", "others", "evidence"), "object"),
    "position": "Int64",
    "time": "datetime64[ns, UTC]",
}


class Ranks:
    """What ranks did alike and where they parted: `first`, `divergences`, `frame`, `graphs`, `summary()`."""

    def __init__(self, session: Session):
        with session.settled():
            self._steps = sequences(session)
            self.divergences = all_divergences(session, self._steps, live=session.state == "watching")
            runtimes = estimates(session)
        self._ranks = rank_rows(self._steps, self.divergences)
        self._graphs = graph_rows(self._steps, runtimes)

    @property
    def first(self) -> Divergence | None:
        """Where they first differ; None if they don't, or there are fewer than two ranks."""
        return self.divergences[0] if self.divergences else None

    @property
    def frame(self) -> pd.DataFrame:
        """One row a rank, the one that compiled longest first: rank, compiles, recompiles, graph_breaks, compile_s and
        behind_s (s), lookups (H hit, M miss, G guard miss, B bypass, - off, F failed), first_difference.
        """
        return _frame(self._ranks, columns(RankRow))

    @property
    def graphs(self) -> pd.DataFrame:
        """One row a compile over all ranks, that with the slowest straggler first: order, compile_id, function, file,
        line, trigger, ranks, missing (ranks without it), differs, slowest_rank, slowest_s, median_s, spread_s (s),
        runtime_ms (what torch expects one run to take where it takes longest; NA if it did not log that).
        """
        return _frame(self._graphs, columns(GraphRow))

    @property
    def differences(self) -> pd.DataFrame:
        """One row a divergence, in order: see `compilediag.diagnosis.ranks.divergence.Divergence`."""
        return _frame(self.divergences, [f.name for f in fields(Divergence)])

    def __repr__(self) -> str:
        return f"<compilediag ranks: {len(self._steps)} ranks, {len(self.divergences)} divergences>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    def summary(self) -> str:
        """Where they parted, and the stragglers, as plain text."""
        if len(self._steps) < 2:
            return "compilediag: there are not two ranks in this session.\n"
        lines = [f"compilediag: {len(self._steps)} ranks. " + ("First difference:" if self.first else _ALIKE)]
        lines += [f"  {one.sentence}" for one in self.divergences]
        return "\n".join([*lines, "", *self._rank_lines(), "", *self._graph_lines()]) + "\n"

    def _rank_lines(self) -> list[str]:
        lines = ["Ranks, the one that compiled longest first:"]
        for row in self._ranks[:SHOWN]:
            caches = f", caches {row.lookups[:40]}" if row.lookups else ""
            counts = f"{row.compiles} compiles, {row.recompiles} recompiles, {row.graph_breaks} graph breaks"
            lines.append(f"  rank {row.rank}: {spent(row.compile_s)}, {counts}{caches}")
        return [*lines, *_more(self._ranks)]

    def _graph_lines(self) -> list[str]:
        lines = ["Compiles, the slowest straggler first:"]
        for row in self._graphs[:SHOWN]:
            where = f"{row.compile_id or '?'} of {place(row.function, row.file, row.line)}"
            slow = "not timed"
            if row.slowest_s is not None:
                slow = f"rank {row.slowest_rank} {spent(row.slowest_s)}, median {spent(row.median_s)}"
            gaps = f"; not on {len(row.missing)} of {len(self._steps)} ranks" if row.missing else ""
            lines.append(f"  {where}: {slow}{gaps}" + (f"; differs: {', '.join(row.differs)}" if row.differs else ""))
        return [*lines, *_more(self._graphs)]


_ALIKE = "All compiled the same, for the same reasons, in the same order."


def _more(rows: list[Any]) -> list[str]:
    return [f"  ... and {len(rows) - SHOWN} more"] if len(rows) > SHOWN else []


def _frame(rows: list[Any], names: list[str]) -> pd.DataFrame:
    import pandas as pd

    def column(name: str) -> pd.Series:
        values = [getattr(row, name) for row in rows]
        return pd.Series([list(v) if isinstance(v, tuple) else v for v in values], dtype=DTYPES.get(name, "string"))

    return pd.DataFrame({name: column(name) for name in names})
