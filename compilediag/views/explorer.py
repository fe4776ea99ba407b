"""The explorer's documents: of each function its entries, its recompiles against them, and its guards.

Every number that the explorer shows is computed here; the browser and the text form only render. Events come in any
order. A document is made of all events of its function, so it is made again whenever one of them comes. The text form
lists the functions that recompiled, their entries, recompiles and guards.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any, TypeVar

from ..decode.guards.guard_text import ObjectNames, TreeLine, describe_guard, parse_guard, parse_tree_line, split_tree
from ..decode.guards.path import format_expression
from ..diagnosis import explain_gaps
from ..diagnosis.evidence import sum_known
from ..diagnosis.rules.break_even import CallTally, EntryWorth
from ..document import Block, Items, Section, escape_unprintable, shorten_items, to_text
from ..events import Artifact, Calls, Compile, Event, GuardFailure, Recompile, SourceStatus
from ..formatting import (
    find_cell_number,
    format_amount,
    format_count,
    format_function,
    format_line,
    format_names,
    format_place,
    format_seconds,
)
from ..storage.data import SessionData
from ..system.source_files import SourceReader, read_cell, split_lines
from .page_rows import to_ms
from .page_types import (
    Company,
    EntryCalls,
    EntryDocument,
    FailedGuard,
    FunctionDocument,
    GuardCount,
    GuardDescription,
    GuardDocument,
    RecompileDocument,
    ValueHistory,
)

#: rank, pid, file, line and name of a function.
FunctionKey = tuple[int | None, int | None, str | None, int | None, str | None]
PlacedEvent = Compile | Recompile | Calls
#: The lists of a document.
LISTS = ("entries", "rows", "guards")


class ExplorerDocuments:
    """The documents of a session's functions, brought up to date as events come.

    `has_every_guard`: all failing guards of all entries were recorded (detail="full"), not only those of the closest
    entry. `lines` reads the user's code; None leaves it out.
    """

    def __init__(self, has_every_guard: bool, lines: SourceLines | None):
        self._has_every_guard = has_every_guard
        self._lines = lines
        self._functions: dict[FunctionKey, _FunctionEvents] = {}
        self._by_compile: dict[str, _FunctionEvents] = {}
        self._failures: dict[str, list[GuardFailure]] = defaultdict(list)
        self._facts: dict[str, _CompileFacts] = defaultdict(_CompileFacts)
        self._tree_lines: dict[str, SharedTreeLines] = defaultdict(SharedTreeLines)
        self._counted_pids: set[int | None] = set()

    def add(self, event: Event) -> None:
        """Take an event. A recompile may come again, when its seconds are known."""
        if isinstance(event, Compile):
            self._add_compile(event)
        elif isinstance(event, Recompile):
            function = self._find_function(event)
            function.recompiles[event.event_id or 0] = event
            self._remember(event, function)
        elif isinstance(event, GuardFailure) and event.compile_key is not None:
            self._failures[event.compile_key].append(event)
            self._mark_changed(event.compile_key)
        elif isinstance(event, Calls):
            self._find_function(event).calls.append(event)
        elif isinstance(event, SourceStatus) and event.name == "calls" and event.status == "active":
            # In a process whose calls are counted, an entry without any was never called.
            self._counted_pids.add(event.pid)

    def add_tree(self, artifact: Artifact, text: str) -> list[Any]:
        """The row of an entry's guard tree: [event id, key of its lines, the lines that are new, runs of lines]."""
        if artifact.compile_key is not None:
            facts = self._facts[artifact.compile_key]
            facts.tree = max(artifact.event_id or 0, facts.tree or 0)
            self._mark_changed(artifact.compile_key)
        frame = f"{artifact.rank}|{artifact.pid}|{(artifact.compile_id or '').rpartition('/')[0]}"
        fresh, runs = self._tree_lines[frame].add_tree(text)
        return [artifact.event_id, frame, fresh, runs]

    def take_changed(self) -> list[list[Any]]:
        """[id, document] of each function that changed since the last call. Each list of a document is a pair: the
        names of its columns, once, and its rows.
        """
        changed = []
        for function in self._functions.values():
            if function.is_changed:
                document: dict[str, Any] = {**self._make_document(function)}
                for part in LISTS:
                    items = document[part]
                    document[part] = ([*items[0]] if items else [], [[*item.values()] for item in items])
                changed.append([function.id, document])
        return changed

    def make_all(self) -> list[FunctionDocument]:
        """The documents of all functions."""
        return [self._make_document(function) for function in self._functions.values()]

    def _add_compile(self, event: Compile) -> None:
        is_backward = event.trigger == "lazy_backward"
        if event.compile_key is not None:
            facts = self._facts[event.compile_key]
            if not is_backward and facts.first is None:
                facts.first = event.event_id
            if event.duration_s is not None:
                facts.seconds = (facts.seconds or 0.0) + event.duration_s
            if is_backward:
                self._mark_changed(event.compile_key)
        if not is_backward:
            function = self._find_function(event)
            function.compiles.append(event)
            self._remember(event, function)

    def _get_facts(self, compile: Compile | None) -> _CompileFacts:
        """What is known of a frame's compile; of another compile that belongs to it, its own seconds."""
        if compile is None:
            return _CompileFacts()
        facts = self._facts.get(compile.compile_key or "", _CompileFacts())
        return facts if facts.first == compile.event_id else replace(facts, seconds=compile.duration_s)

    def _find_function(self, event: PlacedEvent) -> _FunctionEvents:
        key = (event.rank, event.pid, event.file, event.line, event.function)
        function = self._functions.setdefault(key, _FunctionEvents(key, event.event_id or 0))
        function.id = min(function.id, event.event_id or 0)
        function.is_changed = True
        return function

    def _remember(self, event: Compile | Recompile, function: _FunctionEvents) -> None:
        if event.compile_key is not None:
            self._by_compile.setdefault(event.compile_key, function)

    def _mark_changed(self, compile_key: str) -> None:
        if compile_key in self._by_compile:
            self._by_compile[compile_key].is_changed = True

    def _make_document(self, function: _FunctionEvents) -> FunctionDocument:
        function.is_changed = False
        entries, guards = FunctionEntries(function.compiles), GuardList()
        recompiles = sorted(function.recompiles.values(), key=lambda event: (event.time_ns, event.event_id or 0))
        rows = [self._make_row(event, entries, guards) for event in keep_latest(recompiles)]
        row_documents = [row.document for row in rows]
        rank, pid, file, line, name = function.key
        calls: dict[int | None, CallTally] = defaultdict(CallTally)
        for event in function.calls:
            calls[None if event.ran == "eager" else entries.find(event.compile_key, event.compile_id)].add(event)
        is_counted, eager = pid in self._counted_pids, calls[None]
        entry_documents = entries.make_documents(row_documents, self._get_facts, calls if is_counted else None)
        once = [entry["seconds"] or 0.0 for entry in entry_documents if entry["calls"] == 1]
        return {
            "rank": rank,
            "pid": pid,
            "file": file,
            "line": line,
            "function": name,
            "compiles": len(function.compiles),
            "recompiles": len(recompiles),
            "lost_s": sum_known(event.lost_s for event in recompiles),
            "eager": {"calls": eager.calls, "total_s": eager.total_s, "mean_s": eager.mean_s} if is_counted else None,
            "once": {"count": len(once), "seconds": sum(once)} if is_counted else None,
            "entries": entry_documents,
            "rows": row_documents,
            "guards": guards.make_documents(rows, entry_documents, self._lines),
        }

    def _make_row(self, event: Recompile, entries: FunctionEntries, guards: GuardList) -> GridRow:
        """One line of the grid: in each entry the guards that failed, each once."""
        failed: dict[int, dict[int, FailedGuard]] = {}
        actual: dict[int, str | None] = {}
        lookalikes: dict[int, str | None] = {}
        for failure in self._failures.get(event.compile_key or "", ()):
            guard = guards.add(failure)
            entry = entries.find(failure.entry_compile_key, failure.entry_compile_id)
            actual.setdefault(guard, failure.actual)
            lookalikes.setdefault(guard, failure.lookalike)
            cell = FailedGuard(guard, bool(failure.is_first), failure.fail_count, failure.expected)
            failed.setdefault(entry, {}).setdefault(guard, cell)
        main = guards.add(event) if event.guard_source or event.guard_kind else None
        has_closest = bool(event.closest_compile_id or event.closest_compile_key)
        checked = event.entries_checked or 0
        closest = entries.find(event.closest_compile_key, event.closest_compile_id) if has_closest else None
        return GridRow(
            {
                "event": event.event_id or 0,
                "made": entries.made.get(event.compile_key),
                "closest": closest,
                "guard": main,
                "cells": [(entry, list(found.values())) for entry, found in failed.items()],
                "time": to_ms(event.time_ns),
                "compile_id": event.compile_id,
                "expected": event.expected,
                "now": event.actual,
                "entries_checked": event.entries_checked,
                "others": checked - (checked if event.entries_analyzed is None else event.entries_analyzed),
                "lost_s": event.lost_s,
            },
            actual,
            lookalikes,
            [set(found) for entry, found in failed.items() if self._has_every_guard or entry == closest],
        )


@dataclass
class _FunctionEvents:
    """All events of one function in one process."""

    key: FunctionKey
    id: int
    compiles: list[Compile] = field(default_factory=list)
    recompiles: dict[int, Recompile] = field(default_factory=dict)
    calls: list[Calls] = field(default_factory=list)
    is_changed: bool = True


@dataclass
class _CompileFacts:
    """What is known of all compiles with one key: a frame and its backward.

    `first` is the event id of the frame's compile, `seconds` are those of all, `tree` is the event id of the guard tree
    of the entry that was made.
    """

    first: int | None = None
    seconds: float | None = None
    tree: int | None = None


# The cache entries of one function: those compiled during the watch, and older ones that failed or were called

#: A document holds so many of the latest entries and recompiles; torch stops at 256 entries of one code object.
MAX_ITEMS = 256
#: Of more items so many are left out at once: their positions are in all other items, which a page gets again then.
LEFT_OUT = 64

T = TypeVar("T")


def keep_latest(items: Sequence[T]) -> Sequence[T]:
    """The latest items of a function, at most `MAX_ITEMS`."""
    begin = -(-max(0, len(items) - MAX_ITEMS) // LEFT_OUT) * LEFT_OUT
    return items[begin:]


class FunctionEntries:
    """Numbers the entries of a function, the compiled ones first, in order of time."""

    def __init__(self, compiles: Iterable[Compile]):
        # One that only has guards, because its graph is empty, is an entry too.
        made = [c for c in compiles if c.outcome in ("ok", None) or (c.outcome == "empty" and c.guard_count)]
        made.sort(key=lambda compile: (compile.time_ns, compile.event_id or 0))
        self._compiles: list[Compile | None] = list(keep_latest(made))
        self._compile_ids = [compile.compile_id for compile in keep_latest(made)]
        #: Key of a compile -> the number of the entry that it made.
        self.made: dict[str | None, int] = {
            c.compile_key: at for at, c in enumerate(self._compiles) if c and c.compile_key is not None
        }
        self._older: dict[tuple[str | None, str | None], int] = {}

    def find(self, compile_key: str | None, compile_id: str | None) -> int:
        """The number of an entry. One that was not compiled here is older than the watch, and is added."""
        if compile_key in self.made:
            return self.made[compile_key]
        number = self._older.setdefault((compile_key, compile_id), len(self._compiles))
        if number == len(self._compiles):
            self._compiles.append(None)
            self._compile_ids.append(compile_id)
        return number

    def make_documents(
        self,
        rows: Sequence[RecompileDocument],
        get_facts: Callable[[Compile | None], _CompileFacts],
        calls: Tallies | None,
    ) -> list[EntryDocument]:
        """The documents of all entries; `rows` are the function's recompiles in order of time. `calls` is None if they
        were not counted.
        """
        made_at = {row["made"]: at for at, row in enumerate(rows) if row["made"] is not None}
        # At a lookup, the entry that the last recompile made comes first, then those that it checked. Entries that were
        # not analyzed have unknown positions between them.
        looked_up: list[int | None] = [0] if not rows and len(self._compiles) == 1 else []
        if rows and not rows[-1]["others"]:
            looked_up = [rows[-1]["made"], *(entry for entry, _ in rows[-1]["cells"])]
        known = dict.fromkeys(entry for entry in looked_up if entry is not None)
        order = {entry: turn for turn, entry in enumerate(known, 1)}
        failed: dict[int, dict[int, GuardCount]] = defaultdict(dict)
        for entry, failures in chain.from_iterable(row["cells"] for row in rows):
            for failure in failures:
                before = failed[entry].get(failure.guard, GuardCount(failure.guard, 0, None, failure.expected))
                latest = before.fail_count if failure.fail_count is None else failure.fail_count
                failed[entry][failure.guard] = before._replace(recompiles=before.recompiles + 1, fail_count=latest)
        documents: list[EntryDocument] = []
        for number, compile in enumerate(self._compiles):
            facts = get_facts(compile)
            documents.append(
                {
                    "event": compile.event_id if compile else None,
                    "compile_id": self._compile_ids[number],
                    "made_at": made_at.get(number),
                    "seconds": facts.seconds,
                    "tree": facts.tree,
                    "order": order.get(number),
                    "failed": [*failed[number].values()],
                    **_describe_calls(number, facts.seconds, calls),
                    "time": to_ms(compile.time_ns) if compile else None,
                    "guard_count": compile.guard_count if compile else None,
                    "guard_check_us": compile.guard_check_us if compile else None,
                }
            )
        return documents


#: Number of an entry -> its calls; those that ran eagerly are with None.
Tallies = Mapping[int | None, CallTally]


def _describe_calls(entry: int, paid_s: float | None, calls: Tallies | None) -> EntryCalls:
    """The columns of an entry that cost `paid_s`, see `EntryWorth`."""
    if calls is None:
        return {"calls": None, "mean_s": None, "won_s": None, "break_even": None}
    tally = calls.get(entry, CallTally())
    worth = EntryWorth(paid_s, tally.calls, tally.mean_s, calls[None].mean_s)
    return {"calls": worth.calls, "mean_s": worth.mean_s, "won_s": worth.won_s, "break_even": worth.break_even}


# Its guards: their values over time, the user's line, and what failed together with each of them

_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?(?:e[-+]?\d{1,3})?")
_HINT = re.compile(r"\(HINT: (.*)\)\s*$", re.S)
_STACK = "User stack trace:\n"
#: Texts of one guard that are shown: they differ only in the values.
MAX_TEXTS = 6
#: Guards of these kinds need a bound or a set, not one value.
_KINDS_WITHOUT_VALUE = frozenset({"symbolic_shape"})


@dataclass
class GridRow:
    """A recompile as a line of the grid, with what each guard saw at it, and which objects only look the same.

    `companies` has the guards that failed in each entry of which all are known: only the closest one, if the failing
    guards of the others were not all recorded.
    """

    document: RecompileDocument
    actual: dict[int, str | None]
    lookalikes: dict[int, str | None]
    companies: list[set[int]]


class GuardList:
    """The guards that failed, numbered in the order of appearance. All checks of one source are one guard."""

    def __init__(self) -> None:
        self._guards: dict[str, _GuardHistory] = {}

    def add(self, event: GuardFailure | Recompile) -> int:
        """Take the guard that an event names; its number."""
        text = event.guard if isinstance(event, GuardFailure) else None
        key = event.guard_source or f"{event.guard_kind or 'other'}: {text or ''}"[:200]
        guard = self._guards.setdefault(key, _GuardHistory(key, len(self._guards)))
        guard.add(event)
        return guard.number

    def make_documents(
        self, rows: list[GridRow], entries: list[EntryDocument], lines: SourceLines | None
    ) -> list[GuardDocument]:
        """The documents of all guards. `lines` reads the user's code; None leaves it out."""
        names = [guard.name for guard in self._guards.values()]
        return [
            {
                **guard.describe(lines),
                **_collect_values(guard, rows, entries),
                **_find_company(guard.number, rows, names),
                "recompiles": sum(guard.number in row.actual or row.document["guard"] == guard.number for row in rows),
                # The seconds of the recompiles that this guard was the reason for.
                "lost_s": sum_known(row.document["lost_s"] for row in rows if row.document["guard"] == guard.number),
            }
            for guard in self._guards.values()
        ]


class _GuardHistory:
    """One guard, from all events that name it."""

    def __init__(self, key: str, number: int):
        self.key = key
        self.number = number
        self.source: str | None = None
        self.kinds: dict[str, None] = {}
        self.texts: dict[str, None] = {}
        self.user_file: str | None = None
        self.user_line: int | None = None
        self.user_code: str | None = None
        self.reason: str | None = None

    @property
    def name(self) -> str:
        return format_expression(self.source) if self.source else next(iter(self.kinds)).replace("_", " ")

    def add(self, event: GuardFailure | Recompile) -> None:
        self.source = self.source or event.guard_source
        self.kinds.setdefault(event.guard_kind or "other")
        if event.user_file is not None and self.user_line is None:
            self.user_file, self.user_line = event.user_file, event.user_line
        if isinstance(event, Recompile):
            self.user_code = self.user_code or event.user_code
            self.reason = self.reason or event.reason
        elif event.guard:
            self.texts.setdefault(event.guard)

    def describe(self, lines: SourceLines | None) -> GuardDescription:
        # The longest text has torch's comment.
        parsed = parse_guard(max(self.texts, key=len)) if self.texts else None
        # Only torch's line is known if the guard was made in its own code.
        framework = parsed if parsed and parsed.user_file and self.user_file is None else None
        code = self.user_code or (parsed.user_code if parsed and framework is None else None)
        names = ObjectNames()
        return {
            "key": self.key,
            "source": self.source,
            "name": self.name,
            "kinds": list(self.kinds),
            "texts": [describe_guard(text, names) for text in list(self.texts)[:MAX_TEXTS]],
            "user_file": self.user_file,
            "user_line": self.user_line,
            "user_code": code if lines else None,
            "around": lines.read_around(self.user_file, self.user_line, code) if lines else None,
            "framework": f"{framework.user_file}:{framework.user_line}" if framework else None,
            "framework_code": framework.user_code if framework else None,
            "stack": (self.reason or "").partition(_STACK)[2].rstrip() or None,
            "hint": next((found[1] for text in self.texts if (found := _HINT.search(text))), None),
        }


def _collect_values(guard: _GuardHistory, rows: list[GridRow], entries: Iterable[EntryDocument]) -> ValueHistory:
    """The values of a guard over time. Step 0 is the value that the first entry needs, step n the n-th recompile."""
    number, values = guard.number, _ValueList()
    points: list[tuple[int, int, bool]] = []
    if not _KINDS_WITHOUT_VALUE.issuperset(guard.kinds):
        first_entries = (entry for entry in entries if entry["made_at"] is None)
        needs = (need.expected for entry in first_entries for need in entry["failed"] if need.guard == number)
        first = next(needs, None)
        if first is not None:
            points.append((0, values.add(first, is_new=False), False))
    for step, row in enumerate(rows, 1):
        actual = row.actual.get(number)
        if actual is not None:
            cells = row.document["cells"]
            is_new = all(any(f.guard == number for f in found) for _, found in cells)
            # Of each entry that was checked, the failing guards are known.
            is_whole = len(cells) == (row.document["entries_checked"] or 0)
            value = values.add(actual, is_new and is_whole, is_new, row.lookalikes.get(number))
            points.append((step, value, True))
    return {"values": values.listed, "points": points}


class _ValueList:
    """The values that a guard saw, each once. Different objects that look the same get different names if possible."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._objects: Counter[str] = Counter()
        self.listed: list[tuple[str, float | None]] = []

    def add(self, text: str, is_new: bool, may_be_new: bool = False, lookalike: str | None = None) -> int:
        """The number of a value. `is_new`: no entry had the same object, so one that looks alike is another one. If
        only `may_be_new` is true, that is not known, and the value keeps its text.
        """
        label = text
        if lookalike is not None and (is_new or not may_be_new):
            label = lookalike
            self._objects[label] += is_new
            label = f"{label} #{self._objects[label] + 1}" if is_new else f"{label}, an earlier one"
        if label not in self._numbers:
            self._numbers[label] = len(self.listed)
            number = float(label) if _NUMBER.fullmatch(label) else None
            self.listed.append((label, number if number is not None and math.isfinite(number) else None))
        return self._numbers[label]


def _find_company(number: int, rows: Iterable[GridRow], names: Sequence[str]) -> Company:
    """Which guards failed with this one, and what fixing this one alone would have prevented.

    `alone` counts the recompiles at which this was the only failing guard of some entry.
    """
    failed = [row for row in rows if number in row.actual]
    beside: Counter[int] = Counter(guard for row in failed for guard in row.actual if guard != number)
    # The fewest other guards that failed together with it in an entry; None if no entry shows it.
    companies = ([frozenset(found - {number}) for found in row.companies if number in found] for row in failed)
    smallest = [min(found, key=lambda others: (len(others), sorted(others)), default=None) for found in companies]
    alone = sum(others == frozenset() for others in smallest)
    counts = Counter(others for others in smallest if others)
    usual = min(counts, key=lambda others: (-counts[others], len(others), sorted(others)), default=frozenset())
    verdict = _judge(alone, len(failed), [names[guard] for guard in sorted(usual)])
    return {"with": list(beside.most_common()), "alone": alone, "verdict": verdict}


def _judge(alone: int, failed: int, others: Sequence[str]) -> str | None:
    """What fixing this guard alone would have prevented, in a sentence; None if that is not known."""
    if not failed:
        return None
    recompiles = {1: "the only recompile", 2: "both recompiles"}.get(failed, f"all {failed} recompiles")
    if alone == failed:
        return f"Fixing this guard alone would have prevented {recompiles} at which it failed."
    if not others:
        return None
    also = format_names(others)
    if alone == 0:
        return f"Fixing this guard alone would not have helped: {also} also failed in every entry that it failed in."
    return (
        f"Fixing this guard alone would have prevented {alone} of the {failed} recompiles at which it failed; "
        f"at the others, {also} also failed."
    )


# The lines around the user's line

#: Lines that are shown before and after the line itself.
AROUND = 4
_MAX_CHARS = 300


class SourceLines:
    """Reads the program's Python files, and cells of this notebook if the session was recorded in it (`is_own`).

    A session does not keep files. What it names may have changed since, and a session from elsewhere may name any
    file. So lines are shown only if `SourceReader` reads the file, and the whole line still has the text that torch
    recorded.
    """

    def __init__(self, is_own: bool):
        self._is_own = is_own
        self._reader = SourceReader(is_own)
        self._files: dict[str, list[str] | None] = {}

    def read_around(self, file: str | None, line: int | None, code: str | None) -> list[tuple[int, str]] | None:
        """(number, text) of the lines around a line, in order; None if they cannot be verified."""
        if file is None or line is None or not code:
            return None
        if file not in self._files:
            self._files[file] = self._read(file)
        lines = self._files[file]
        if lines is None or not 1 <= line <= len(lines) or lines[line - 1].strip() != code.strip():
            return None
        first, last = max(1, line - AROUND), min(len(lines), line + AROUND)
        return [(number, lines[number - 1][:_MAX_CHARS]) for number in range(first, last + 1)]

    def _read(self, file: str) -> list[str] | None:
        if (cell := find_cell_number(file)) is not None:
            return read_cell(cell) if self._is_own else None
        text = self._reader.find(file)
        return None if text is None else [line.rstrip("\r\n") for line in split_lines(text)]


# Guard trees


class SharedTreeLines:
    """The lines of the guard trees of one frame, numbered; a tree is runs of these lines."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names = ObjectNames()

    def add_tree(self, text: str) -> tuple[list[TreeLine], list[list[int]]]:
        """The lines that are new with this tree, and the tree as runs: [first line, number of lines]."""
        fresh: list[TreeLine] = []
        runs: list[list[int]] = []
        for line in split_tree(text):
            number = self._numbers.get(line)
            if number is None:
                number = self._numbers[line] = len(self._numbers)
                fresh.append(parse_tree_line(line, self._names))
            if runs and sum(runs[-1]) == number:
                runs[-1][1] += 1
            else:
                runs.append([number, 1])
        return fresh, runs


# As text

#: Functions, and items of each of their lists, that are shown; the rest is counted.
MAX_FUNCTIONS, MAX_LINES = 8, 12
#: Values of a guard that are shown.
MAX_VALUES = 8


def format_explorer(data: SessionData) -> str:
    """What `session.explore()` shows, as text of at most 100 columns, which only a longer word exceeds."""
    with data.settled():
        explorer = ExplorerDocuments(data.meta.get("detail") == "full", None)
        for kind in (SourceStatus, Compile, Recompile, GuardFailure, Calls):
            for event in data.rows(kind):
                explorer.add(event)
        gap = explain_gaps(data).get("recompiles")
    recompiled = (document for document in explorer.make_all() if document["recompiles"])
    found = sorted(recompiled, key=lambda document: (-(document["lost_s"] or 0), -document["recompiles"]))
    functions = Items([*map(_describe_function, found)], "numbered", (" functions",))
    nothing = ["Nothing was recompiled."] if not found and gap is None else []
    missing = [f"Not collected: recompiles: {gap}"] if gap is not None else []
    whole = Section(shorten_items(functions, MAX_FUNCTIONS), *nothing, *missing)
    return escape_unprintable(f"{to_text(whole)}\n")


def _describe_function(document: FunctionDocument) -> list[Block]:
    recompiles = format_amount(document["recompiles"], "recompile")
    lost = f" cost {format_seconds(document['lost_s'])}" if document["lost_s"] is not None else ""
    where = format_function(document["function"], document["file"], document["line"])
    head = f"{where}: {recompiles}{lost}, {format_amount(document['compiles'], 'compile')}"
    once, eager = document["once"], document["eager"]
    if once and once["count"]:
        head += f"; {format_amount(once['count'], 'entry', 'entries')} called once, {format_seconds(once['seconds'])}"
    if eager and eager["calls"]:
        head += f"; {format_amount(eager['calls'], 'call')} ran eagerly, {format_seconds(eager['total_s'])}"
    entries = sorted(document["entries"], key=lambda entry: (entry["order"] is None, entry["order"] or 0))
    return [
        head,
        f"cache entries in lookup order{'' if eager else ' (calls were not counted)'}:",
        _list_lines(_format_entry(entry, document) for entry in entries),
        "recompiles, and the guards that failed in each entry (* has the fewest failing guards):",
        _list_lines(_format_recompile(row, document) for row in document["rows"]),
        "guards:",
        _list_lines(map(_format_guard, document["guards"])),
    ]


def _list_lines(lines: Iterable[str]) -> Items:
    return shorten_items(Items([[line] for line in lines], "indented"), MAX_LINES)


def _format_entry(entry: EntryDocument, document: FunctionDocument) -> str:
    origin = "compiled before the watch" if entry["event"] is None else "first compile"
    if entry["event"] is not None and entry["made_at"] is not None:
        origin = _format_cause(document["rows"][entry["made_at"]], document)
    calls = None if entry["calls"] is None else format_amount(entry["calls"], "call")
    if calls and entry["break_even"] is not None:
        calls += f", pays off after {format_count(entry['break_even'])}"
    failed = ", ".join(f"{document['guards'][f.guard]['name']} {f.recompiles}x" for f in entry["failed"])
    parts = [
        origin,
        format_seconds(entry["seconds"]) if entry["seconds"] is not None else None,
        f"{format_count(entry['guard_count'])} guards" if entry["guard_count"] is not None else None,
        f"{format_seconds(entry['guard_check_us'] / 1e6)} per check" if entry["guard_check_us"] is not None else None,
        calls,
        f"failed: {failed}" if failed else None,
    ]
    return f"{entry['compile_id']}  {'; '.join(filter(None, parts))}"


def _format_cause(row: RecompileDocument, document: FunctionDocument) -> str:
    name = "a guard" if row["guard"] is None else document["guards"][row["guard"]]["name"]
    if row["expected"] is None and row["now"] is None:
        return f"{format_line(name)} failed"
    return f"{format_line(name)}: {format_line(row['expected'] or '?', 60)} -> {format_line(row['now'] or '?', 60)}"


def _format_recompile(row: RecompileDocument, document: FunctionDocument) -> str:
    guards, entries = document["guards"], document["entries"]
    failed = "; ".join(
        f"{entries[entry]['compile_id']}{'*' if entry == row['closest'] else ''} "
        + ", ".join(guards[f.guard]["name"] for f in found)
        for entry, found in row["cells"]
    )
    if row["others"]:
        failed += f"; {format_amount(row['others'], 'more entry', 'more entries')} not analyzed"
    lost = f"  {format_seconds(row['lost_s'])}" if row["lost_s"] is not None else ""
    clock = datetime.fromtimestamp(row["time"] / 1e3).strftime("%H:%M:%S")
    head = f"{row['compile_id']}  {clock}  {_format_cause(row, document)}{lost}"
    return f"{head}  [{format_line(failed)}]" if failed else head


def _format_guard(guard: GuardDocument) -> str:
    where = format_place(guard["user_file"], guard["user_line"])
    seen = ", ".join(format_line(value, 40) for value, _ in guard["values"][:MAX_VALUES])
    parts = [
        f"{guard['name']} ({', '.join(guard['kinds']).replace('_', ' ')})",
        f"at {where}" if where else None,
        f"values: {seen}" if seen else None,
    ]
    return f"{'; '.join(filter(None, parts))}. {guard['verdict']}"
