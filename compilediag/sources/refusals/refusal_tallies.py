"""How often calls were refused, by the function and the guards that failed: one row at first, then counts."""

from __future__ import annotations

import dataclasses
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ...decode.guards.failed_guards import FailedEntry, make_recompile_events
from ...events import GuardFailure, Recompile, RefusedCall
from ..hooks.sink import Made

#: Different failures of one function that get rows of their own; further calls count towards its first one.
MAX_FAILURES = 32
#: Functions that get rows.
MAX_FUNCTIONS = 1_000
#: Columns that a recompile has too.
_SHARED = (
    *("function", "file", "line", "guard_source", "guard_kind", "expected", "actual", "reason", "entries_checked"),
    *("closest_compile_id", "closest_compile_key", "user_file", "user_line", "user_code"),
)


class UserLine(NamedTuple):
    """A line of the user's code."""

    file: str | None = None
    line: int | None = None


class Refusal(NamedTuple):
    """What refused calls of one kind have in common; `first` are the guards that failed first in each entry."""

    refused_by: str
    ran: str
    code: types.CodeType | None
    set_at: UserLine
    first: tuple[str, ...] = ()

    @property
    def function(self) -> tuple[str, int]:
        """What bounds the number of rows: the function and what refused its calls."""
        return self.refused_by, id(self.code)


@dataclasses.dataclass
class Tally:
    """The calls of one kind: their compile key, their first row, and the calls that no row counts yet."""

    refusal: Refusal
    key: str
    #: The writer's thread adds the call stack.
    known: dict[str, Any] = dataclasses.field(default_factory=lambda: {"stack": None})
    row: RefusedCall | None = None
    pending: int = 0


class RefusalTallies:
    """All refused calls of a recording."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tallies: dict[Refusal, Tally] = {}
        self._first: dict[tuple[str, int], Refusal] = {}
        self._sizes: Counter[tuple[str, int]] = Counter()

    def add(self, refusal: Refusal, make_key: Callable[[], str]) -> Tally | None:
        """Count a call; its tally if it is the first of its kind, else None."""
        with self._lock:
            known = self._tallies.get(refusal)
            if known is None and self._is_full(refusal):
                known = self._tallies.get(self._first.get(refusal.function, refusal))
                if known is None:
                    return None
            if known is not None:
                known.pending += 1
                return None
            self._first.setdefault(refusal.function, refusal)
            self._sizes[refusal.function] += 1
            tally = self._tallies[refusal] = Tally(refusal, make_key())
            return tally

    def _is_full(self, refusal: Refusal) -> bool:
        is_known = refusal.function in self._sizes
        return self._sizes[refusal.function] >= MAX_FAILURES if is_known else len(self._sizes) >= MAX_FUNCTIONS

    def take(self) -> list[tuple[Tally, int]]:
        """The calls that no row counts yet."""
        with self._lock:
            found = [(tally, tally.pending) for tally in self._tallies.values() if tally.pending]
            for tally, _ in found:
                tally.pending = 0
            return found


def make_first_rows(
    tally: Tally, time_ns: int, found: list[FailedEntry], is_torchs: Callable[[str], bool]
) -> Iterator[RefusedCall | GuardFailure]:
    """Yield the first row of a kind of calls, and one row per guard that failed."""
    refusal, code = tally.refusal, tally.refusal.code
    place = (None, None, None) if code is None else (code.co_name, code.co_filename, code.co_firstlineno)
    columns: dict[str, Any] = dict(zip(("function", "file", "line"), place, strict=True))
    for row in _compare(tally, time_ns, place, found, is_torchs):
        if isinstance(row, Recompile):
            columns = {name: getattr(row, name) for name in _SHARED}
        else:
            yield row
    tally.row = RefusedCall(
        time_ns=time_ns,
        compile_key=tally.key,
        refused_by=refusal.refused_by,
        ran=refusal.ran,
        count=None if refusal.ran == "unchecked" else 1,
        set_file=refusal.set_at.file,
        set_line=refusal.set_at.line,
        stack=tally.known["stack"],
        **columns,
    )
    yield tally.row


def _compare(
    tally: Tally,
    time_ns: int,
    place: tuple[str | None, str | None, int | None],
    found: list[FailedEntry],
    is_torchs: Callable[[str], bool],
) -> Iterator[Recompile | GuardFailure]:
    """The rows that a recompile would have."""
    if found:
        closest = min(found, key=lambda entry: entry.distance)
        yield from make_recompile_events(time_ns, None, place, found, closest, is_torchs, tally.key)


def make_count(tally: Tally, count: int, time_ns: int) -> Made:
    """The row that counts further calls."""
    if tally.row is None or tally.row.count is None:
        return ()
    return (dataclasses.replace(tally.row, time_ns=time_ns, count=count),)
