"""What a redacted report leaves out: source code, values and paths. Names of functions and arguments stay."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pandas as pd

from ..events import BY_TABLE, Event, columns

#: Columns that hold source code, values, or texts in which torch quotes either.
DROPPED = frozenset(
    {
        "expected",
        "actual",
        "guard",
        "user_code",
        "explanation",
        "hints",
        "fail_reason",
        "restart_reasons",
        "key_diff",
        "nearest_session",
        "sizes",
        "inputs",
        "cached",
        "new",
        "code",
        "expression",
        "value",
        "range",
        "result",
        "symbols",
        "values",
        "derivation",
        "outputs",
    }
)
#: Texts of torch's of which the part before the first quoted or called thing says enough.
SHORTENED = frozenset({"reason"})
PATHS = frozenset({"file", "user_file"})
SOURCES = frozenset({"guard_source", "source"})
LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")
#: Tables whose reasons are of ours or of torch's caches, and quote nothing of the user's.
PLAIN_REASONS = frozenset({"sources"})


class Redactor:
    """Cells without source code, values and paths. A path becomes `file1.py`, the same one each time."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}

    def cell(self, table: str, column: str) -> Callable[[Any], Any] | None:
        """What to do with the cells of a column; None if they may be shown as they are."""
        if column in DROPPED:
            return _nothing
        if column in PATHS:
            return self.file
        if column in SOURCES:
            return _without_literals
        if column in SHORTENED and table not in PLAIN_REASONS:
            return _nothing
        return None

    def file(self, path: Any) -> Any:
        if path is None or path is pd.NA:
            return None
        return self._files.setdefault(path, f"file{len(self._files) + 1}.py")

    def tables(self, session: Any) -> SimpleNamespace:
        """The session's tables with redacted cells, for the rules to work on."""
        frames = {name: self._frame(name, getattr(session, name)) for name in BY_TABLE}

        def rows(kind: type[Event]) -> list[Event]:
            return [self._redact(event) for event in session.rows(kind)]

        return SimpleNamespace(state=session.state, rows=rows, **frames)

    def _redact(self, event: Event) -> Event:
        changes = {name: self.cell(event.table, name) for name in columns(type(event))}
        cells = {name: change(getattr(event, name)) for name, change in changes.items() if change is not None}
        return dataclasses.replace(event, **cells)

    def _frame(self, table: str, frame: pd.DataFrame) -> pd.DataFrame:
        changed = {c: self.cell(table, c) for c in frame.columns}
        return frame.assign(
            **{
                c: pd.Series([None if v is pd.NA else f(v) for v in frame[c]], dtype=frame[c].dtype, index=frame.index)
                for c, f in changed.items()
                if f is not None
            }
        )


def _nothing(value: Any) -> None:
    return None


def _without_literals(text: Any) -> Any:
    return None if text is None else LITERAL.sub("'...'", text)
