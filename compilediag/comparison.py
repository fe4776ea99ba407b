"""The comparison of two sessions: `cd.diff` and `compilediag diff`."""

from __future__ import annotations

import os
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .diagnosis.diff import Change, find_changes, find_uncompared
from .document import Code, Items, Para, Section, shorten_items, to_html, to_text
from .events import Compile
from .formatting import format_amount, format_seconds
from .session import Session, load_any

if TYPE_CHECKING:
    import pandas as pd

#: Changes of each group that are listed.
SHOWN = 20
DTYPES = {"worse": "boolean", "seconds_more": "float64", "line": "Int64"}
LISTS = ("evidence_before", "evidence_after")


def diff(before: Session | str | os.PathLike[str], after: Session | str | os.PathLike[str]) -> Diff:
    """Compare two sessions: what is new, gone or changed in `after`.

    Args:
        before: a session, a session file, a folder of session files, or TORCH_TRACE logs.
        after: the same, of the run to compare.
    """
    sessions = (one if isinstance(one, Session) else load_any(one) for one in (before, after))
    return Diff(*sessions)


class Diff:
    """The differences of two sessions; `changes` lists them, regressions first."""

    def __init__(self, before: Session, after: Session):
        self.before = before
        self.after = after
        self.changes: list[Change] = find_changes(before.data, after.data)
        self.uncompared = find_uncompared(before.data, after.data)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per change: kind, change, title, before, after, seconds_more, worse, evidence (event ids), place."""
        import pandas as pd

        rows = [asdict(change) for change in self.changes]
        columns = {f.name: [row[f.name] for row in rows] for f in fields(Change)}
        return pd.DataFrame(
            {
                name: pd.Series(
                    [list(v) for v in values] if name in LISTS else values,
                    dtype=object if name in LISTS else DTYPES.get(name, "string"),
                )
                for name, values in columns.items()
            }
        )

    def __repr__(self) -> str:
        worse = sum(change.worse is True for change in self.changes)
        return f"<compilediag diff: {format_amount(len(self.changes), 'change')}, {worse} worse>"

    def _repr_html_(self) -> str:
        return to_html(self._describe())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.summary())

    def summary(self) -> str:
        """The differences as plain text, the most expensive ones first."""
        return f"{to_text(self._describe(), width=None)}\n"

    def totals(self) -> list[str]:
        """The totals of both sessions, one text per line."""
        from .views.totals import compute_totals

        old, new = (compute_totals(session.data) for session in (self.before, self.after))
        parts = [
            f"compiles {old['compiles']} -> {new['compiles']}",
            f"recompiles {old['recompiles']} -> {new['recompiles']}",
            f"graph breaks {old['graph_breaks']} -> {new['graph_breaks']}",
            f"compiling {format_seconds(old['compile_s'])} -> {format_seconds(new['compile_s'])}",
        ]
        lines = [f"compilediag: {', '.join(parts)}"]
        before, after = _count_processes(self.before), _count_processes(self.after)
        if before != after:
            lines.append(f"Processes that compiled: {before} -> {after}; the counts are sums over all of them.")
        return lines

    def _describe(self) -> Section:
        """Totals, then what is worse, better and other, then what was not compared."""
        headline, *others = self.totals()
        groups = []
        for worse, head in ((True, "Worse"), (False, "Better"), (None, "Other")):
            if titles := [[change.title] for change in self.changes if change.worse is worse]:
                shown = shorten_items(Items(titles, "indented", (" in ", Code("diff.frame"))), SHOWN)
                groups.append(Section(f"{head}:", shown))
        nothing = [] if self.changes else [Section("No differences.")]
        return Section(Section(Para(headline, strong=True), *others), *groups, *nothing, Section(*self.gaps()))

    def gaps(self) -> list[str]:
        """What could not be compared and why, one text per line."""
        return [f"Not compared: {table.replace('_', ' ')}: {why}" for table, why in self.uncompared.items()]

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write the differences as one offline HTML file.

        Args:
            path: the file to write.

        Raises:
            CompilediagError: it can't be written.
        """
        from .views.report import write_comparison

        before, after = (str(session.meta.get("title") or session.path.name) for session in (self.before, self.after))
        return write_comparison(path, (before, after), self.totals(), self.changes, self.gaps(), self.summary())


def _count_processes(session: Session) -> int:
    return len({(row.rank, row.pid) for row in session.data.rows(Compile)})
