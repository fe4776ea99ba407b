"""What a redacted view leaves out: source code, values and paths. Names of functions and arguments stay.

Each column says in `events/` what it can hold (`user_data`); this module only applies that.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..decode.call_stacks import find_torch_path, is_torch_file
from ..decode.calls.own_code import OwnCode
from ..events import BY_TABLE, Event, UserData, columns
from ..storage.data import SessionData
from ..storage.table_properties import TableProperties

if TYPE_CHECKING:
    import pandas as pd

E = TypeVar("E", bound=Event)
Change = Callable[[Any], Any]

_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")


class Redactor:
    """Changes cells so that they hold no source code, values or paths.

    A path becomes `file1.py`, the same one each time. Names in a source such as `self.table['key'].n` lose their
    quoted parts. Whatever else can hold user data becomes None.
    """

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._own = OwnCode()
        self._changes: dict[type[Event], list[tuple[str, Change]]] = {}

    def get_change(self, kind: type[Event], column: str) -> Change | None:
        """What to do with the cells of a column; None if they may be shown as they are."""
        spec = columns(kind).get(column)
        user_data: UserData | None = spec["user_data"] if spec else None
        if user_data is None:
            return None
        changes: dict[UserData, Change] = {"path": self.replace_file, "source": _remove_literals}
        return changes.get(user_data, _drop)

    def redact(self, event: E) -> E:
        """The event without user data."""
        kind = type(event)
        if kind not in self._changes:
            found = [(name, self.get_change(kind, name)) for name in columns(kind)]
            self._changes[kind] = [(name, change) for name, change in found if change is not None]
        return dataclasses.replace(
            event, **{name: change(getattr(event, name)) for name, change in self._changes[kind]}
        )

    def replace_file(self, path: str | None) -> str | None:
        """The stand-in for a path. Files of torch keep their names below its folder, and files of Python and of
        installed packages are still known as such: who calls whom stays visible.
        """
        if path is None:
            return None
        if is_torch_file(path):
            return f"site-packages/torch/{find_torch_path(path)}"
        folder = "" if self._own.is_own(path) else "site-packages/"
        return self._files.setdefault(path, f"{folder}file{len(self._files) + 1}.py")


class RedactedData(TableProperties):
    """The rows and DataFrames of a session without user data, for rules and panels."""

    def __init__(self, data: SessionData, redactor: Redactor):
        self._data = data
        self._redactor = redactor
        self._rows: dict[type[Event], Sequence[Any]] = {}

    @property
    def state(self) -> str:
        """The state of the session."""
        return self._data.state

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`."""
        if kind not in self._rows:
            self._rows[kind] = [self._redactor.redact(event) for event in self._data.rows(kind)]
        return self._rows[kind]

    def table(self, name: str) -> pd.DataFrame:
        """A table by its name, as a DataFrame of its own."""
        frame = self._data.table(name)
        changes = {column: self._redactor.get_change(BY_TABLE[name], column) for column in frame.columns}
        redacted = {column: _redact_column(frame[column], change) for column, change in changes.items() if change}
        return frame.assign(**redacted)


def _redact_column(column: pd.Series, change: Change) -> pd.Series:
    import pandas as pd

    cells = [change(None if value is pd.NA else value) for value in column]
    return pd.Series(cells, dtype=column.dtype, index=column.index)


def _drop(value: object) -> None:
    return None


def _remove_literals(text: str | None) -> str | None:
    return None if text is None else _LITERAL.sub("'...'", text)
