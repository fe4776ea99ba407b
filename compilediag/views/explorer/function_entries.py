"""The cache entries of one function: those compiled during the watch, and older ones that failed or were called."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict, TypeVar

from ...diagnosis.rules.break_even import CallTally, EntryWorth
from ...events import Calls, Compile
from ..page_columns import to_ms
from ..page_types import CalledOnce, EagerCalls, EntryDocument, GuardCount, RecompileDocument

#: A document holds so many of the latest entries and recompiles; torch stops at 256 entries of one code object.
MAX_ITEMS = 256
#: Of more items so many are left out at once: their positions are in all other items, which a page gets again then.
LEFT_OUT = 64

T = TypeVar("T")


class CompileCosts(Protocol):
    """What is known of all compiles of a session."""

    def get_seconds(self, compile: Compile) -> float | None:
        """The s of a compile, with its backward."""

    def get_tree(self, compile: Compile) -> int | None:
        """The event id of the guard tree of the entry that it made."""


def keep_latest(items: Sequence[T]) -> Sequence[T]:
    """The latest items of a function, at most `MAX_ITEMS`."""
    begin = -(-max(0, len(items) - MAX_ITEMS) // LEFT_OUT) * LEFT_OUT
    return items[begin:]


def _has_entry(compile: Compile) -> bool:
    """True if a compile made an entry: also one that only has guards, because its graph is empty."""
    return compile.outcome in ("ok", None) or (compile.outcome == "empty" and bool(compile.guard_count))


class FunctionEntries:
    """Numbers the entries of a function, the compiled ones first, in order of time."""

    def __init__(self, compiles: Iterable[Compile]):
        made = [compile for compile in compiles if _has_entry(compile)]
        made.sort(key=lambda compile: (compile.time_ns, compile.event_id or 0))
        self._compiles: list[Compile | None] = list(keep_latest(made))
        self._compile_ids = [compile.compile_id for compile in keep_latest(made)]
        self._by_key = {c.compile_key: at for at, c in enumerate(self._compiles) if c and c.compile_key is not None}
        self._older: dict[tuple[str | None, str | None], int] = {}

    def find(self, compile_key: str | None, compile_id: str | None) -> int:
        """The number of an entry. One that was not compiled here is older than the watch, and is added."""
        number = self._by_key.get(compile_key) if compile_key is not None else None
        if number is not None:
            return number
        number = self._older.setdefault((compile_key, compile_id), len(self._compiles))
        if number == len(self._compiles):
            self._compiles.append(None)
            self._compile_ids.append(compile_id)
        return number

    def find_made(self, compile_key: str | None) -> int | None:
        """The number of the entry that a compile made; None if it made none, or is not done."""
        return None if compile_key is None else self._by_key.get(compile_key)

    def make_documents(
        self, rows: Sequence[RecompileDocument], costs: CompileCosts, calls: FunctionCalls
    ) -> list[EntryDocument]:
        """The documents of all entries; `rows` are the function's recompiles in order of time."""
        made_at = {row["made"]: at for at, row in enumerate(rows) if row["made"] is not None}
        order, failed = _find_lookup_order(rows, len(self._compiles)), _count_failures(rows)
        documents: list[EntryDocument] = []
        for number, compile in enumerate(self._compiles):
            seconds = costs.get_seconds(compile) if compile else None
            documents.append(
                {
                    "event": compile.event_id if compile else None,
                    "compile_id": self._compile_ids[number],
                    "made_at": made_at.get(number),
                    "seconds": seconds,
                    "tree": costs.get_tree(compile) if compile else None,
                    "order": order.get(number),
                    "failed": failed.get(number, []),
                    **calls.describe(number, seconds),
                    "time": to_ms(compile.time_ns) if compile else None,
                    "guard_count": compile.guard_count if compile else None,
                    "guard_latency_us": compile.guard_latency_us if compile else None,
                }
            )
        return documents


class _CallColumns(TypedDict):
    """Calls of an entry, the s of one, the s that they took less than eager ones, and when the compile pays off."""

    calls: int | None
    mean_s: float | None
    won_s: float | None
    break_even: int | None


class FunctionCalls:
    """The calls of a function's entries, and those that ran eagerly; all None if calls were not counted."""

    def __init__(self, events: Iterable[Calls], entries: FunctionEntries, are_counted: bool):
        self._are_counted = are_counted
        self._eager = CallTally()
        self._compiled: dict[int, CallTally] = defaultdict(CallTally)
        for event in events:
            is_eager = event.ran == "eager"
            tally = self._eager if is_eager else self._compiled[entries.find(event.compile_key, event.compile_id)]
            tally.add(event)

    def describe(self, entry: int, paid_s: float | None) -> _CallColumns:
        """The columns of an entry that cost `paid_s`, see `EntryWorth`."""
        if not self._are_counted:
            return {"calls": None, "mean_s": None, "won_s": None, "break_even": None}
        tally = self._compiled.get(entry, CallTally())
        worth = EntryWorth(paid_s, tally.calls, tally.mean_s, self._eager.mean_s)
        return {
            "calls": worth.calls,
            "mean_s": worth.mean_s,
            "won_s": worth.won_s,
            "break_even": worth.break_even,
        }

    def describe_eager(self) -> EagerCalls | None:
        """The calls that ran eagerly."""
        if not self._are_counted:
            return None
        return {"calls": self._eager.calls, "total_s": self._eager.total_s, "mean_s": self._eager.mean_s}

    def find_called_once(self, entries: Iterable[EntryDocument]) -> CalledOnce | None:
        """The entries that were called once."""
        if not self._are_counted:
            return None
        once = [entry for entry in entries if entry["calls"] == 1]
        return {"count": len(once), "seconds": sum(entry["seconds"] or 0.0 for entry in once)}


def _find_lookup_order(rows: Sequence[RecompileDocument], count: int) -> Mapping[int, int]:
    """Entry -> its turn (from 1) at a lookup: the order at the last recompile, after the entry that it made."""
    if any(row["others"] for row in rows[-1:]):
        return {}  # Entries that were not analyzed have unknown positions between the others.
    order = [entry for row in rows[-1:] for entry, _ in row["cells"]]
    newest = [row["made"] for row in rows[-1:] if row["made"] is not None]
    if not rows and count == 1:
        newest = [0]
    return {entry: turn for turn, entry in enumerate(dict.fromkeys([*newest, *order]), 1)}


@dataclass
class _FailureCount:
    expected: str | None
    recompiles: int = 0
    fail_count: int | None = None


def _count_failures(rows: Iterable[RecompileDocument]) -> Mapping[int, list[GuardCount]]:
    """Entry -> the guards that failed in it."""
    counts: dict[int, dict[int, _FailureCount]] = defaultdict(dict)
    for row in rows:
        for entry, failures in row["cells"]:
            for failure in failures:
                count = counts[entry].setdefault(failure.guard, _FailureCount(failure.expected))
                count.recompiles += 1
                count.fail_count = failure.fail_count if failure.fail_count is not None else count.fail_count
    return {
        entry: [GuardCount(guard, c.recompiles, c.fail_count, c.expected) for guard, c in by_guard.items()]
        for entry, by_guard in counts.items()
    }
