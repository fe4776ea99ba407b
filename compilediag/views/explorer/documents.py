"""The explorer's documents: of each function its entries, its recompiles against them, and its guards.

Every number that the explorer shows is computed here; the browser and the text form only render. Events come in any
order. A document is made of all events of its function, so it is made again whenever one of them comes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, cast

from ...events import Artifact, Calls, Compile, Event, GuardFailure, Recompile, Rows, SourceStatus
from ..page_columns import to_ms
from ..page_types import FailedGuard, FunctionDocument, PackedDocument, PackedList
from .function_entries import FunctionCalls, FunctionEntries, keep_latest
from .guard_history import GridRow, GuardList
from .guard_tree_lines import SharedTreeLines
from .source_lines import SourceLines

#: rank, pid, file, line and name of a function.
FunctionKey = tuple[int | None, int | None, str | None, int | None, str | None]
PlacedEvent = Compile | Recompile | Calls


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
        self._costs = _CompileIndex()
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
            self._costs.add_tree(artifact)
            self._mark_changed(artifact.compile_key)
        frame = f"{artifact.rank}|{artifact.pid}|{(artifact.compile_id or '').rpartition('/')[0]}"
        fresh, runs = self._tree_lines[frame].add_tree(text)
        return [artifact.event_id, frame, fresh, runs]

    def take_changed(self) -> list[list[Any]]:
        """[id, packed document] of each function that changed since the last call."""
        changed = [function for function in self._functions.values() if function.is_changed]
        return [[function.id, _pack_document(self._make_document(function))] for function in changed]

    def make_all(self) -> list[FunctionDocument]:
        """The documents of all functions."""
        return [self._make_document(function) for function in self._functions.values()]

    def _add_compile(self, event: Compile) -> None:
        self._costs.add_compile(event)
        if event.trigger == "lazy_backward":
            if event.compile_key is not None:
                self._mark_changed(event.compile_key)
            return
        function = self._find_function(event)
        function.compiles.append(event)
        self._remember(event, function)

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
        calls = FunctionCalls(function.calls, entries, function.pid in self._counted_pids)
        entry_documents = entries.make_documents(row_documents, self._costs, calls)
        lost = [event.lost_s for event in recompiles if event.lost_s is not None]
        rank, pid, file, line, name = function.key
        return {
            "rank": rank,
            "pid": pid,
            "file": file,
            "line": line,
            "function": name,
            "compiles": len(function.compiles),
            "recompiles": len(recompiles),
            "lost_s": sum(lost) if lost else None,
            "eager": calls.describe_eager(),
            "once": calls.find_called_once(entry_documents),
            "entries": entry_documents,
            "rows": row_documents,
            "guards": guards.make_documents(rows, entry_documents, self._has_every_guard, self._lines),
        }

    def _make_row(self, event: Recompile, entries: FunctionEntries, guards: GuardList) -> GridRow:
        """One line of the grid: in each entry the guards that failed, each once."""
        failed: dict[int, dict[int, FailedGuard]] = {}
        actual: dict[int, str | None] = {}
        for failure in self._failures.get(event.compile_key or "", ()):
            guard = guards.add(failure)
            entry = entries.find(failure.entry_compile_key, failure.entry_compile_id)
            actual.setdefault(guard, failure.actual)
            cell = FailedGuard(guard, bool(failure.is_first), failure.fail_count, failure.expected)
            failed.setdefault(entry, {}).setdefault(guard, cell)
        main = guards.add(event) if event.guard_source or event.guard_kind else None
        has_closest = bool(event.closest_compile_id or event.closest_compile_key)
        return GridRow(
            {
                "event": event.event_id or 0,
                "made": entries.find_made(event.compile_key),
                "closest": entries.find(event.closest_compile_key, event.closest_compile_id) if has_closest else None,
                "guard": main,
                "cells": [(entry, list(found.values())) for entry, found in failed.items()],
                "time": to_ms(event.time_ns),
                "compile_id": event.compile_id,
                "expected": event.expected,
                "now": event.actual,
                "entries_checked": event.entries_checked,
                "others": _count_others(event),
                "lost_s": event.lost_s,
            },
            actual,
        )


def _count_others(event: Recompile) -> int:
    """The entries that were checked but not analyzed."""
    checked = event.entries_checked or 0
    return checked - (checked if event.entries_analyzed is None else event.entries_analyzed)


class _FunctionEvents:
    """All events of one function in one process."""

    def __init__(self, key: FunctionKey, event_id: int):
        self.key = key
        self.id = event_id
        self.compiles: list[Compile] = []
        self.recompiles: dict[int, Recompile] = {}
        self.calls: list[Calls] = []
        self.is_changed = True

    @property
    def pid(self) -> int | None:
        return self.key[1]


class _CompileIndex:
    """The seconds and guard trees of compiles, by compile key."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._first: dict[str, int | None] = {}
        self._trees: dict[str, int] = {}

    def add_compile(self, event: Compile) -> None:
        key = event.compile_key
        if key is None:
            return
        if event.trigger != "lazy_backward":
            self._first.setdefault(key, event.event_id)
        if event.duration_s is not None:
            self._seconds[key] = self._seconds.get(key, 0.0) + event.duration_s

    def add_tree(self, event: Artifact) -> None:
        if event.compile_key is not None:
            self._trees[event.compile_key] = max(event.event_id or 0, self._trees.get(event.compile_key, 0))

    def get_seconds(self, compile: Compile) -> float | None:
        """The s of a frame's compile with its backward; of another compile that belongs to it, its own s."""
        if compile.compile_key is None or self._first.get(compile.compile_key) != compile.event_id:
            return compile.duration_s
        return self._seconds.get(compile.compile_key)

    def get_tree(self, compile: Compile) -> int | None:
        return None if compile.compile_key is None else self._trees.get(compile.compile_key)


def make_documents(data: Rows, has_every_guard: bool) -> list[FunctionDocument]:
    """The documents of a session without the user's code and guard trees."""
    documents = ExplorerDocuments(has_every_guard, None)
    for kind in (SourceStatus, Compile, Recompile, GuardFailure, Calls):
        for event in data.rows(kind):
            documents.add(event)
    return documents.make_all()


#: The lists of a document, which are sent as column names and rows.
LISTS = ("entries", "rows", "guards")


def _pack_document(document: FunctionDocument) -> PackedDocument:
    """A document for the page: each list as the names of its columns, once, and its rows."""
    lists = {part: _pack_list(document[part]) for part in LISTS}  # type: ignore[literal-required]
    return cast(PackedDocument, {**document, **lists})


def _pack_list(items: list[dict[str, Any]]) -> PackedList:
    return (list(items[0]), [list(item.values()) for item in items]) if items else ([], [])
