"""Why a compile was a recompile: torch's reasons, completed by the guards and symbols that are logged after them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...events import GuardFailure, Recompile
from ..call_stacks import is_torch_file
from ..guards.entry_values import (
    Values,
    find_tensor_guards,
    match_tensor_guard,
    read_guard_values,
    read_symbol_value,
)
from ..guards.failed_guards import FailedEntry, FailingGuard, make_recompile_events, parse_entry
from .attempts import Attempts, CompileAttempt
from .file_names import FileNames

#: Name of the artifact with the reasons.
REASONS = "recompile_reasons"
#: Recompiles and entries that are remembered: a log may never report their end.
MAX_PENDING, MAX_ENTRIES = 1_000, 1_000


@dataclass
class PendingRecompile:
    """A recompile whose compile is not over. `values` are those that its new entry is made for."""

    time_ns: int
    entries: list[FailedEntry]
    values: Values = field(default_factory=dict)


class PendingRecompiles:
    """Makes the events of recompiles, each when its compile is over: later records say which values its guards met."""

    def __init__(self, attempts: Attempts, files: FileNames) -> None:
        self._attempts = attempts
        self._files = files
        self._pending: dict[CompileAttempt, PendingRecompile] = {}
        #: Compile key -> guards on the tensors of that entry.
        self._tensor_guards: dict[str | None, list[str]] = {}

    def add_reasons(self, text: str, attempt: CompileAttempt, time_ns: int) -> Iterator[Recompile | GuardFailure]:
        """Remember torch's reasons for a recompile; yield the events of one that waited too long."""
        if len(self._pending) >= MAX_PENDING:
            yield from self.finish(next(iter(self._pending)))
        entries = [parse_entry(reason) for reason in split_reasons(text)]
        for entry in entries:
            entry.compile_key = self._attempts.find_key(entry.compile_id)
        self._pending[attempt] = PendingRecompile(time_ns, entries)

    def add_guards(self, text: str, attempt: CompileAttempt) -> None:
        """Read the guards of a new entry."""
        pending = self._pending.get(attempt)
        if pending is not None:
            sources = {guard.source for entry in pending.entries for guard in entry.guards}
            pending.values.update(read_guard_values(text, sources))
        if len(self._tensor_guards) >= MAX_ENTRIES:
            self._tensor_guards.clear()
        self._tensor_guards[attempt.compile_key] = find_tensor_guards(text)

    def add_symbol(self, body: Mapping[str, object], attempt: CompileAttempt) -> None:
        """Read the value that torch made a symbol for."""
        pending = self._pending.get(attempt)
        if pending is not None:
            pending.values.update(read_symbol_value(body))

    def finish(self, attempt: CompileAttempt) -> Iterator[Recompile | GuardFailure]:
        """Yield the events of an attempt's recompile, if it is one."""
        pending = self._pending.pop(attempt, None)
        if pending is None:
            return
        for entry in pending.entries:
            for guard in entry.guards:
                self._complete(guard, entry, pending.values)
        function = self._attempts.find_function(attempt)
        closest = min(pending.entries, key=lambda entry: entry.distance)
        yield from make_recompile_events(
            pending.time_ns,
            attempt.compile_id,
            (function.function, function.file, function.line),
            pending.entries,
            closest,
            is_torch_file,
            compile_key=attempt.compile_key,
        )

    def finish_all(self) -> Iterator[Recompile | GuardFailure]:
        """Yield the events of all recompiles that wait."""
        for attempt in list(self._pending):
            yield from self.finish(attempt)

    def _complete(self, guard: FailingGuard, entry: FailedEntry, values: Values) -> None:
        """Add what the reason lacks: the value that the guard met, and the line that caused a guard on a tensor."""
        if guard.actual is None:
            value = values.get((guard.source, guard.kind))
            guard.actual = value if value != guard.expected else None
        if guard.user_file is None and entry.compile_key is not None:
            cause = match_tensor_guard(self._tensor_guards.get(entry.compile_key, ()), guard.source)
            if cause is not None:
                guard.user_file, guard.user_line, guard.user_code = cause.user_file, cause.user_line, cause.user_code
        guard.user_file = self._files.complete(guard.user_file)


def split_reasons(text: str) -> list[str]:
    """Return torch's reasons: it writes several as JSON, one as plain text."""
    if text.startswith("["):
        try:
            reasons = json.loads(text)
        except (ValueError, RecursionError):
            reasons = None
        if isinstance(reasons, list):
            return [str(reason) for reason in reasons] or [text]
    return [text]
