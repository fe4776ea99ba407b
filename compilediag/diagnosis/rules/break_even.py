"""What became of compiled entries: what each cost, how often it was called since, and whether that has paid."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import wording
from ..costs import cost_of
from ..finding import Finding, severity_of
from ..rows import Place, Row, compile_key, ids, is_timed, place_in, rows_of

if TYPE_CHECKING:
    import pandas as pd

CALLS = ("function", "file", "line", "ran", "count", "timed", "total_s", "min_s", "first_s")
COMPILES = ("function", "file", "line", "trigger", "outcome", "duration_s")
#: Compiles that made an entry.
MADE = ("ok", "empty", None)
#: Entries of a function that were called once and cost less than this, in s, are no finding.
WORTH_TELLING_S = 1.0


@dataclass
class CallTally:
    """The calls of one entry or function, summed up over the rows of table `calls`."""

    calls: int = 0
    timed: int = 0
    total_s: float = 0.0
    min_s: float | None = None
    first_s: float | None = None

    def add(self, row: Row) -> None:
        self.calls += row["count"] or 0
        self.timed += row["timed"] or 0
        self.total_s += row["total_s"] or 0.0
        known = [s for s in (self.min_s, row["min_s"]) if s is not None]
        self.min_s = min(known, default=None)
        self.first_s = row["first_s"] if self.first_s is None else self.first_s

    @property
    def mean_s(self) -> float | None:
        """s of a call, without the first one if there are others: that one sets up what the others find."""
        if self.timed > 1 and self.first_s is not None:
            return max(0.0, self.total_s - self.first_s) / (self.timed - 1)
        return self.total_s / self.timed if self.timed else None


@dataclass(frozen=True)
class EntryWorth:
    """Whether an entry has paid. s throughout; `won_s` is what its calls took less than eager ones would have."""

    paid_s: float | None
    calls: int
    mean_s: float | None
    eager_s: float | None

    @property
    def won_s(self) -> float | None:
        """Negative where the eager call is the faster one."""
        if self.mean_s is None or self.eager_s is None:
            return None
        return self.calls * (self.eager_s - self.mean_s)

    @property
    def break_even(self) -> int | None:
        """Calls after which it has paid for its compile; None if it never will, or not all of it is known."""
        if self.paid_s is None or self.mean_s is None or self.eager_s is None or self.eager_s <= self.mean_s:
            return None
        return math.ceil(round(self.paid_s / (self.eager_s - self.mean_s), 6))

    @property
    def once(self) -> bool:
        return self.calls == 1


@dataclass
class CompiledEntry:
    """A compiled entry: its compile, and its calls (None if nobody counted)."""

    row: Row
    paid_s: float | None = None
    tally: CallTally | None = None
    worth: EntryWorth | None = None
    #: True if its function had another entry, or ran eagerly, after it was made.
    was_left: bool = False

    @property
    def place(self) -> tuple[Any, ...]:
        return tuple(self.row[name] for name in ("rank", "pid", "file", "line", "function"))


@dataclass
class _Places:
    """What is known of calls: those of entries as rows, those of functions that ran eagerly summed up."""

    eager: dict[tuple[Any, ...], CallTally] = field(default_factory=lambda: defaultdict(CallTally))
    compiled: dict[tuple[Any, ...], list[Row]] = field(default_factory=lambda: defaultdict(list))


def were_counted(tables: Any) -> bool:
    """True if calls were counted in this session."""
    states = rows_of(tables, "sources", ("name", "status"))
    return any((state["name"], state["status"]) == ("calls", "active") for state in states)


def entries_of(tables: Any) -> list[CompiledEntry]:
    """The entries that were compiled, in order of time. Their calls are known from when calls were counted."""
    counted = were_counted(tables)
    places = _Places()
    for row in rows_of(tables, "calls", CALLS):
        if row["ran"] == "eager":
            places.eager[_place(row)].add(row)
        else:
            places.compiled[compile_key(row)].append(row)
    compiles = rows_of(tables, "compiles", COMPILES)
    by_id: dict[tuple[Any, ...], list[CompiledEntry]] = defaultdict(list)
    for row in compiles:
        if row["trigger"] != "lazy_backward" and row["outcome"] in MADE:
            by_id[compile_key(row)].append(CompiledEntry(row, tally=CallTally() if counted else None))
    for row in compiles:
        _pay(by_id.get(compile_key(row), ()), row)
    for key, rows in places.compiled.items():
        for row in rows:
            entry = _before(by_id.get(key, ()), row)
            if entry is not None and entry.tally is not None:
                entry.tally.add(row)
    found = sorted((entry for entries in by_id.values() for entry in entries), key=lambda entry: entry.row["event_id"])
    _judge(found, places.eager)
    return found


def _place(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("rank", "pid", "file", "line", "function"))


def _before(entries: Iterable[CompiledEntry], row: Row) -> CompiledEntry | None:
    """The last entry that was begun when this happened: ids begin again after torch._dynamo.reset()."""
    begun = [entry for entry in entries if entry.row["time"] <= row["time"]]
    return begun[-1] if begun else None


def _pay(entries: Iterable[CompiledEntry], row: Row) -> None:
    """A compile, forward or backward, is paid for the entry that it was for."""
    entry = _before(entries, row)
    if entry is not None and is_timed(row["duration_s"]):
        entry.paid_s = (entry.paid_s or 0.0) + row["duration_s"]


def _judge(entries: list[CompiledEntry], eager: dict[tuple[Any, ...], CallTally]) -> None:
    last: dict[tuple[Any, ...], CompiledEntry] = {entry.place: entry for entry in entries}
    for entry in entries:
        beside = eager.get(entry.place)
        entry.was_left = last[entry.place] is not entry or beside is not None
        if entry.tally is not None:
            mean_s = beside.mean_s if beside else None
            entry.worth = EntryWorth(entry.paid_s, entry.tally.calls, entry.tally.mean_s, mean_s)


def break_even(tables: Any) -> pd.DataFrame:
    """One row an entry, with the columns of `COLUMNS`. What was not counted is NA."""
    import pandas as pd

    rows = []
    for entry in entries_of(tables):
        worth, tally = entry.worth, entry.tally
        told = {name: entry.row[name] for name in ("event_id", "rank", "pid", "compile_id", "function", "file", "line")}
        numbers = {name: getattr(worth, name, None) for name in ("calls", "mean_s", "eager_s", "won_s", "break_even")}
        more = {"paid_s": entry.paid_s, "first_s": tally.first_s if tally else None}
        rows.append({**told, **more, **numbers, "once": None if worth is None else worth.once})
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({name: column["dtype"] for name, column in COLUMNS.items()})


def _column(dtype: str, doc: str) -> dict[str, str]:
    return {"dtype": dtype, "doc": doc}


#: The columns of `break_even`.
COLUMNS = {
    "event_id": _column("Int64", "number of the event of its compile"),
    "rank": _column("Int64", "rank in a distributed job; NA outside of one"),
    "pid": _column("Int64", "process that it was compiled in"),
    "compile_id": _column("string", "torch's id of it"),
    "function": _column("string", "name of the compiled code object"),
    "file": _column("string", "file of the code object"),
    "line": _column("Int64", "first line of the code object"),
    "paid_s": _column("float64", "s of its compile, backward included"),
    "calls": _column("Int64", "its calls while this watched"),
    "first_s": _column("float64", "s of the first of them, on the host, forward only"),
    "mean_s": _column("float64", "s of one of the others; of the first if there are none"),
    "eager_s": _column("float64", "s of an eager call of the same function; NA if it had none"),
    "won_s": _column("float64", "s that its calls took less than so many eager ones; negative if more"),
    "break_even": _column("Int64", "calls after which that is paid_s; NA if never, or not known"),
    "once": _column("boolean", "true if it was called once"),
}


@dataclass(frozen=True)
class CallTotals:
    """Of all functions: calls that ran compiled, and eagerly where torch gave up; entries that were called once."""

    compiled_calls: int | None = None
    eager_calls: int | None = None
    eager_s: float | None = None
    used_once: int | None = None
    used_once_s: float | None = None


def call_totals(tables: Any) -> CallTotals:
    """None throughout if calls were not counted."""
    if not were_counted(tables):
        return CallTotals()
    rows = rows_of(tables, "calls", CALLS)
    eager = [row for row in rows if row["ran"] == "eager"]
    once = [entry for entry in entries_of(tables) if entry.worth is not None and entry.worth.once]
    return CallTotals(
        compiled_calls=sum(row["count"] or 0 for row in rows if row["ran"] == "compiled"),
        eager_calls=sum(row["count"] or 0 for row in eager),
        eager_s=sum(row["total_s"] or 0.0 for row in eager),
        used_once=len(once),
        used_once_s=sum(entry.paid_s or 0.0 for entry in once),
    )


def eager_words(tables: Any) -> Callable[[Place], str | None]:
    """A function that says how many calls of a function ran eagerly; None where nobody counted."""
    counted, found = were_counted(tables), eager_since(tables)

    def words(place: Place) -> str | None:
        tally = found.get(place)
        if tally is None:
            return "no call ran eagerly since" if counted else None
        took = f", {wording.spent(tally.total_s)}" if tally.timed else ""
        return f"{wording.counted(tally.calls, 'call', 'calls')} ran eagerly since{took}"

    return words


def eager_since(tables: Any) -> dict[Place, CallTally]:
    """The calls of each function that ran eagerly under torch.compile, all processes together."""
    found: dict[Place, CallTally] = defaultdict(CallTally)
    for row in rows_of(tables, "calls", CALLS):
        if row["ran"] == "eager":
            found[place_in(row)].add(row)
    return found


def once_findings(tables: Any) -> list[Finding]:
    """Functions whose entries cost much, were called once and then left for others; none if nobody counted."""
    if not were_counted(tables):
        return []
    groups: dict[tuple[Any, ...], list[CompiledEntry]] = defaultdict(list)
    for entry in entries_of(tables):
        if entry.was_left and entry.worth is not None and entry.worth.once:
            groups[entry.place[2:]].append(entry)
    spent = {place: sum(entry.paid_s or 0.0 for entry in entries) for place, entries in groups.items()}
    return [_once(entries, spent[place]) for place, entries in groups.items() if spent[place] >= WORTH_TELLING_S]


def _once(entries: list[CompiledEntry], paid_s: float) -> Finding:
    function, file, line = (entries[0].row[name] for name in ("function", "file", "line"))
    number = wording.counted(len(entries), "entry that was", "entries that were")
    who = wording.place(function, file, line)
    return Finding(
        rule="used_once",
        severity=severity_of(paid_s, 1, "medium"),
        title=f"{who} compiled {number} called once: {wording.spent(paid_s)}",
        # Where they are recompiles, what recompiled them has these seconds already.
        seconds_lost=0.0,
        evidence=ids(entry.row for entry in entries),
        suggestion="Mend what recompiles it. Calls that will not come again are cheaper eager: "
        'torch.compiler.set_stance("eager_on_recompile") runs what has no entry as it is.',
        cost=cost_of("used_once"),
        function=function,
        file=file,
        line=line,
        count=len(entries),
        places=((function, file, line),),
    )
