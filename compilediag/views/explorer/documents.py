"""What the explorer shows of each function: its entries, its recompiles against them, its guards. Numbers only here.

Rows come in as the view model gets them, in any order; a *document* of a function is made of all of its rows. The
browser and the text form show documents and reckon nothing.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

from ...decode.guards.guard_tree_text import ObjectNames, parse_tree_line, split_tree
from ...diagnosis.rules.break_even import CallTally, EntryWorth
from . import guard_history
from .source_lines import SourceLines

Row = dict[str, Any]
Moment = tuple[Any, ...]

#: A document holds so many of the latest recompiles and entries; torch itself stops at 256 of one code object.
MOST = 256
#: Times of one compile that come from different clocks of torch's and ours may differ by so many ms.
SLACK_MS = 5.0
_LISTS = ("entries", "rows", "guards")
_PLACE = ("rank", "pid", "file", "line", "function")


class Explorer:
    """The documents of a session's functions, brought up to date as rows come.

    `every_guard`: all failing guards of all entries were recorded (detail=full), not of the closest alone.
    `lines` gives the user's code; None leaves it out.
    """

    def __init__(self, every_guard: bool, lines: SourceLines | None):
        self._every_guard = every_guard
        self._lines = lines
        self._functions: dict[tuple[Any, ...], _Function] = {}
        self._by_recompile: dict[int, _Function] = {}
        self._moments: dict[Moment, _Function] = {}
        self._failures: dict[Moment, list[Row]] = defaultdict(list)
        self._backwards: dict[Moment, list[Row]] = defaultdict(list)
        self._trees: dict[Moment, list[tuple[float, int]]] = defaultdict(list)
        self._by_compile: dict[Moment, _Function] = {}
        self._begun: dict[Moment, list[float]] = defaultdict(list)
        self._packed: dict[Moment, _Packed] = defaultdict(_Packed)
        self._lost: dict[int, float] = {}
        self._counts_calls: set[int | None] = set()
        self._takes = {
            "compiles": self._compile,
            "recompiles": self._recompile,
            "guard_failures": self._failure,
            "calls": self._called,
            "sources": self._source,
        }

    def note(self, table: str, cells: Row) -> None:
        """One row of a table, as a page gets it: times in ms."""
        if table in self._takes:
            self._takes[table](cells)

    def tree(self, cells: Row, text: str) -> list[Any]:
        """The row of an entry's guard tree: [event id, key of its lines, lines that are new to it, runs of lines].

        A run is [first line, number of lines]. Entries of one function share most lines, so a tree is few runs.
        """
        key = _compile_key(cells)
        self._trees[key].append((cells["time"], cells["event_id"]))
        self._touch(key)
        frame = _frame_key(cells)
        fresh, runs = self._packed[frame].add(text)
        return [cells["event_id"], "|".join(map(str, frame)), fresh, runs]

    def documents(self, lost: dict[int, float]) -> list[list[Any]]:
        """[id, document] of each function that changed since the last call; `lost`: recompile's event id -> seconds.

        The lists of a document are packed: names once, then rows. `unpacked` gives them back.
        """
        for event_id, seconds in lost.items():
            if self._lost.get(event_id) != seconds and event_id in self._by_recompile:
                self._by_recompile[event_id].is_new = True
        self._lost = lost
        changed = [function for function in self._functions.values() if function.is_new]
        return [[function.id, _packed(self._document(function))] for function in changed]

    def _function(self, cells: Row) -> _Function:
        key = tuple(cells[name] for name in _PLACE)
        function = self._functions.get(key)
        if function is None:
            function = self._functions[key] = _Function(cells)
        function.id = min(function.id, cells["event_id"])
        function.is_new = True
        return function

    def _touch(self, key: Moment) -> None:
        if key in self._by_compile:
            self._by_compile[key].is_new = True

    def _compile(self, cells: Row) -> None:
        key = _compile_key(cells)
        if cells["trigger"] == "lazy_backward":
            self._backwards[key].append(cells)
            self._touch(key)
            return
        function = self._by_compile[key] = self._function(cells)
        function.compiles.append(cells)
        self._begun[key].append(cells["time"])

    def _recompile(self, cells: Row) -> None:
        function = self._function(cells)
        function.recompiles.append(cells)
        self._by_recompile[cells["event_id"]] = function
        self._moments[_moment(cells)] = function

    def _failure(self, cells: Row) -> None:
        moment = _moment(cells)
        self._failures[moment].append(cells)
        if moment in self._moments:
            self._moments[moment].is_new = True

    def _called(self, cells: Row) -> None:
        self._function(cells).calls.append(cells)

    def _source(self, cells: Row) -> None:
        """Of a process whose calls are counted, an entry without any was never called."""
        if cells["name"] == "calls" and cells["status"] == "active":
            self._counts_calls.add(cells["pid"])

    def _document(self, function: _Function) -> dict[str, Any]:
        function.is_new = False
        entries = _Entries(function.compiles)
        guards = guard_history.Guards()
        rows = [self._row(recompile, entries, guards) for recompile in sorted(function.recompiles, key=_when)[-MOST:]]
        counted = function.place["pid"] in self._counts_calls
        calls = _Calls(function.calls, entries, counted)
        columns = entries.columns(rows, self._paid, calls.of)
        lost_s = self._lose(function, rows, columns)
        told = guards.documents(rows, columns, self._every_guard, self._lines)
        for row in rows:
            del row["actual"]  # the guards' own pages have it
        return {
            **{name: function.place[name] for name in _PLACE},
            "compiles": len(function.compiles),
            "recompiles": len(function.recompiles),
            "lost_s": lost_s,
            "eager": calls.eager_columns(),
            "once": _once(columns) if counted else None,
            "entries": columns,
            "rows": rows,
            "guards": told,
        }

    def _lose(self, function: _Function, rows: list[Row], columns: list[Row]) -> float | None:
        """Gives each row its seconds; the sum of all recompiles of a function, also of those that have no row."""
        lost = {row["event_id"]: self._lost.get(row["event_id"]) for row in function.recompiles}
        for row in rows:
            # What recompiles lost is worked out now and then; what the entry cost, which is the same, is known at once.
            if lost[row["event"]] is None and row["made"] is not None:
                lost[row["event"]] = columns[row["made"]]["seconds"]
            row["lost_s"] = lost[row["event"]]
        known = [seconds for seconds in lost.values() if seconds is not None]
        return sum(known) if known else None

    def _row(self, cells: Row, entries: _Entries, guards: guard_history.Guards) -> dict[str, Any]:
        """One line of the grid; its `cells`: [entry, [[guard, was met first, torch's count, what the entry needs]]]."""
        failed: dict[int, dict[int, list[Any]]] = {}
        actual: dict[int, str | None] = {}
        known: dict[str, int] = {}
        for failure in self._failures.get(_moment(cells), ()):
            compile_id, guard = failure["entry_compile_id"], guards.number(failure)
            entry = known.get(compile_id)
            if entry is None:
                entry = known[compile_id] = entries.before(compile_id, cells["time"])
            actual.setdefault(guard, failure["actual"])
            told = [guard, bool(failure["is_first"]), failure["fail_count"], failure["expected"]]
            failed.setdefault(entry, {}).setdefault(guard, told)
        main = guards.number(cells) if cells["guard_source"] or cells["guard_kind"] else None
        closest = cells["closest_compile_id"]
        return {
            "event": cells["event_id"],
            "made": entries.made_by(cells),
            "closest": entries.before(closest, cells["time"]) if closest else None,
            "guard": main,
            "cells": [[entry, list(found.values())] for entry, found in failed.items()],
            "actual": actual,
            **{name: cells[name] for name in ("time", "compile_id", "expected", "entries_checked")},
            "now": cells["actual"],
        }

    def _paid(self, compiled: Row | None) -> tuple[float | None, int | None]:
        """(seconds of an entry's compile and its backward's, event id of its guard tree)."""
        if compiled is None:
            return None, None
        key = _compile_key(compiled)
        until = min((time for time in self._begun[key] if time > compiled["time"]), default=None)
        own = functools.partial(_within, compiled["time"] - SLACK_MS, until)
        spent = [r["duration_s"] for r in (compiled, *self._backwards.get(key, ())) if own(r["time"])]
        known = [s for s in spent if s is not None]
        trees = [event_id for time, event_id in self._trees.get(key, ()) if own(time)]
        return sum(known) if known else None, max(trees, default=None)


class _Function:
    """All rows of one function in one process."""

    def __init__(self, cells: Row):
        self.id = cells["event_id"]
        self.place = {name: cells[name] for name in _PLACE}
        self.compiles: list[Row] = []
        self.recompiles: list[Row] = []
        self.calls: list[Row] = []
        self.is_new = True


class _Calls:
    """The calls of a function's entries, and those that ran eagerly; None of all of them if nobody counted."""

    def __init__(self, rows: Iterable[Row], entries: _Entries, counted: bool):
        self._counted = counted
        self._eager = CallTally()
        self._compiled: dict[int, CallTally] = defaultdict(CallTally)
        for row in rows:
            is_eager = row["ran"] == "eager"
            (self._eager if is_eager else self._compiled[entries.before(row["compile_id"], row["time"])]).add(
                SimpleNamespace(**row)
            )

    def of(self, entry: int, paid_s: float | None) -> dict[str, Any]:
        """calls, mean_s, won_s and break_even of an entry, see `EntryWorth`."""
        names = ("calls", "mean_s", "won_s", "break_even")
        if not self._counted:
            return dict.fromkeys(names)
        tally = self._compiled.get(entry, CallTally())
        worth = EntryWorth(paid_s, tally.calls, tally.mean_s, self._eager.mean_s)
        return {name: getattr(worth, name) for name in names}

    def eager_columns(self) -> dict[str, Any] | None:
        return None if not self._counted else {
            "calls": self._eager.calls, "total_s": self._eager.total_s, "mean_s": self._eager.mean_s
        }  # fmt: skip


class _Entries:
    """The entries of a function: what was compiled while this watched, and what was there before and failed."""

    def __init__(self, compiles: Iterable[Row]):
        made = sorted((row for row in compiles if row["outcome"] in ("ok", None)), key=_when)[-MOST:]
        self._made: list[Row | None] = list(made)
        self._ids = [row["compile_id"] for row in made]
        self._by_id: dict[str, list[int]] = defaultdict(list)
        for at, compile_id in enumerate(self._ids):
            self._by_id[compile_id].append(at)

    def before(self, compile_id: str, time: float) -> int:
        """Number of the entry that had this compile id at a time (ids begin again after torch._dynamo.reset())."""
        begun = [at for at in self._by_id[compile_id] if self._time(at) < time]
        if not begun:
            self._by_id[compile_id].insert(0, len(self._made))
            self._made.append(None)
            self._ids.append(compile_id)
            return len(self._made) - 1
        return begun[-1]

    def made_by(self, recompile: Row) -> int | None:
        """Number of the entry that a recompile made; None if it made none, or is not done."""
        own = [at for at in self._by_id.get(recompile["compile_id"], ()) if self._made[at] is not None]
        own = [at for at in own if _end(self._made[at]) >= recompile["time"] - SLACK_MS]
        return own[0] if own else None

    def _time(self, at: int) -> float:
        row = self._made[at]
        return float("-inf") if row is None else row["time"]

    def columns(
        self,
        rows: list[dict[str, Any]],
        paid: Callable[[Row | None], tuple[Any, Any]],
        calls: Callable[[int, float | None], dict[str, Any]],
    ) -> list[dict[str, Any]]:
        made_at = {row["made"]: at for at, row in enumerate(rows) if row["made"] is not None}
        order = _look_up_order(rows, len(self._made))
        failed = _failed_in(rows)
        found = []
        for at, row in enumerate(self._made):
            seconds, tree = paid(row)
            names = ("time", "guard_count", "guard_latency_us")
            found.append(
                {
                    "event": row and row["event_id"],
                    "compile_id": self._ids[at],
                    "made_at": made_at.get(at),
                    "seconds": seconds,
                    "tree": tree,
                    "order": order.get(at),
                    "failed": failed.get(at, []),
                    **calls(at, seconds),
                    **{name: row and row[name] for name in names},
                }
            )
        return found


def _once(columns: list[dict[str, Any]]) -> dict[str, Any]:
    """The entries that were called once: how many, and the s of those whose compile was seen."""
    once = [entry for entry in columns if entry["calls"] == 1]
    return {"count": len(once), "seconds": sum(entry["seconds"] or 0.0 for entry in once)}


def _look_up_order(rows: list[dict[str, Any]], count: int) -> dict[int, int]:
    """Entry -> its turn (from 1) at the last recompile, with the entry that this made before all others."""
    order = [cell[0] for row in rows[-1:] for cell in row["cells"]]
    newest = [row["made"] for row in rows[-1:] if row["made"] is not None]
    if not rows and count == 1:
        newest = [0]
    return {entry: turn for turn, entry in enumerate(dict.fromkeys([*newest, *order]), 1)}


def _failed_in(rows: list[dict[str, Any]]) -> dict[int, list[list[Any]]]:
    """Entry -> [guard, recompiles at which it failed there, the last of torch's own counts, what the entry needs]."""
    found: dict[int, dict[int, list[Any]]] = defaultdict(dict)
    for row in rows:
        for entry, failures in row["cells"]:
            for guard, _, count, expected in failures:
                known = found[entry].setdefault(guard, [guard, 0, None, expected])
                known[1] += 1
                known[2] = count if count is not None else known[2]
    return {entry: list(by_guard.values()) for entry, by_guard in found.items()}


def unpacked(document: dict[str, Any]) -> dict[str, Any]:
    """A document as `documents` gives it, with its entries, rows and guards as dicts."""
    lists = {part: [dict(zip(document[part][0], row, strict=True)) for row in document[part][1]] for part in _LISTS}
    return {**document, **lists}


def _packed(document: dict[str, Any]) -> dict[str, Any]:
    lists = {part: (list(document[part][0]) if document[part] else [], [list(r.values()) for r in document[part]])
             for part in _LISTS}  # fmt: skip
    return {**document, **lists}


class _Packed:
    """The guard trees of one frame: each line once, parsed; a tree is runs of lines."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names = ObjectNames()

    def add(self, text: str) -> tuple[list[Any], list[list[int]]]:
        fresh: list[Any] = []
        runs: list[list[int]] = []
        for line in split_tree(text):
            number = self._numbers.get(line)
            if number is None:
                number = self._numbers[line] = len(self._numbers)
                fresh.append(parse_tree_line(line, self._names))
            if runs and runs[-1][0] + runs[-1][1] == number:
                runs[-1][1] += 1
            else:
                runs.append([number, 1])
        return fresh, runs


def _compile_key(cells: Row) -> Moment:
    return (cells["rank"], cells["pid"], cells["compile_id"])


def _frame_key(cells: Row) -> Moment:
    """What the entries of one function have in common: `0` of `0/3`."""
    return (cells["rank"], cells["pid"], (cells["compile_id"] or "").rpartition("/")[0])


def _moment(cells: Row) -> Moment:
    return (cells["rank"], cells["pid"], cells["compile_id"], cells["time"])


def _end(compiled: Row) -> float:
    """When a compile was done, in ms. Its recompile is told while it goes on."""
    return compiled["time"] + 1e3 * (compiled["duration_s"] or 0)


def _when(cells: Row) -> tuple[float, int]:
    return cells["time"], cells["event_id"]


def _within(begin: float, end: float | None, time: float) -> bool:
    return begin <= time and (end is None or time < end)
