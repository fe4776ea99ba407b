"""Recompiles: when all entries of a frame have failed, which guards failed in each, and the values now.

torch calls the hook with the entries and the frame's locals, and then forgets both. `full` finds all failing guards
of the entries that are closest, and the closest is the one with the fewest, of those made for the same structure.
`lean` takes the latest entry as the closest, finds all failing guards of that one and the first of each other.
Of more than `MAX_ANALYZED` entries, `full` analyzes so many, `lean` the latest alone; the others are only counted.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from typing import Any

from ... import clock
from ...decode.guards.failed_guards import FailedEntry, FailingGuard, make_first_failure, make_recompile_events
from ...decode.guards.guard_text import parse_guard
from ..guards.closest_entries import EntryIndex
from ..guards.deferred_failures import complete
from ..guards.guard_scope import GuardScope
from ..guards.guard_tree import failing_guards, first_failing_guard
from ..guards.torch_api import FOR_GUARDS
from ..hooks.caller_frames import is_torch_file
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.source import Source
from . import torch_api

#: Entries whose failing guards are found. 8 is torch's own limit of entries, unless it is raised.
MAX_ANALYZED = 8
#: Functions with more entries whose guards are remembered.
MAX_INDEXES = 100
#: (is the entry alive?, its number): larger for later entries; the dead ones come before all that live.
Age = tuple[bool, int]


class Recompiles(Source):
    name = "recompiles"
    needs = (torch_api.ALL_ENTRIES_FAILED, torch_api.COMPILE_CONTEXT, *FOR_GUARDS)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: By the id of the code and the region, whose entries are separate.
        self._indexes: dict[tuple[int, int | None], tuple[types.CodeType, EntryIndex]] = {}

    def patches(self) -> list[Patch]:
        return [self.watch(torch_api.ALL_ENTRIES_FAILED, self._all_failed)]

    def close(self) -> None:
        self._indexes.clear()

    def _all_failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        chain, frame, *_ = args
        if torch_api.was_asked_before(args, kwargs):
            return  # The second time is not a recompile of its own.
        entries = torch_api.cache_entries(chain)
        if not entries:
            return
        code: types.CodeType = frame.f_code
        failed = FailedCall(entries, result or (), code, frame.f_locals)
        if self.detail == "lean":
            latest = max(range(len(entries)), key=failed.ages.__getitem__)
            closest = self._check_entry(failed, latest)
            analyzed = range(len(entries)) if len(entries) <= MAX_ANALYZED else (latest,)
            found = [closest if at == latest else self._check_entry(failed, at, closest) for at in analyzed]
        else:
            order = self._order_by_distance(failed)
            found = [self._check_entry(failed, at) for at in sorted(order[:MAX_ANALYZED])]
            closest = min(found, key=lambda entry: entry.distance)
        compile_id, key = self.context.keys.current()
        where = (code.co_name, code.co_filename, code.co_firstlineno)
        rest = (key, len(entries), torch_api.current_region())
        self.emit(_make_rows, clock.now_ns(), compile_id, where, found, closest, *rest)

    def _order_by_distance(self, failed: FailedCall) -> list[int]:
        """The positions of the entries, the closest first if there are too many to analyze all."""
        if len(failed.entries) <= MAX_ANALYZED:
            return list(range(len(failed.entries)))
        name = id(failed.code), torch_api.current_region()
        code, index = self._indexes.get(name, (None, None))
        if index is None or code is not failed.code or index.is_outdated(len(failed.entries)):
            if len(self._indexes) >= MAX_INDEXES:
                self._indexes.clear()
            index = EntryIndex()
            self._indexes[name] = failed.code, index
        return index.find_closest(failed.entries, failed.ages, failed.reasons, failed.scope)

    def _check_entry(self, failed: FailedCall, at: int, closest: FailedEntry | None = None) -> FailedEntry:
        """One entry with all of its failing guards; with the first of them if the closest entry is already known."""
        entry, reason = failed.entries[at], failed.reasons[at]
        compile_id, key = str(entry.compile_id), self.context.keys.find(entry.compile_id)
        guards: list[FailingGuard]
        if closest is None:
            guards = failing_guards(entry.guard_manager, failed.f_locals, defers=self.detail == "lean", reason=reason)
        else:
            first = first_failing_guard(entry.guard_manager, failed.f_locals, closest.guards, reason)
            guards = [first] if first else []
        if not guards and reason:
            # The guards themselves do not show another backend or an entry that was dropped: torch's text does.
            guards = [make_first_failure(parse_guard(reason))]
        return FailedEntry(compile_id, failed.ages[at], guards, reason or None, key)


class FailedCall:
    """A call that no entry fits. `reasons` has torch's text for each entry, "" where it gave none."""

    def __init__(self, entries: list[Any], reasons: Sequence[str], code: types.CodeType, f_locals: dict[str, Any]):
        self.entries = entries
        self.code = code
        self.f_locals = f_locals
        self.ages: list[Age] = [(not torch_api.is_dead(entry), torch_api.entry_number(entry)) for entry in entries]
        self.reasons = [_find_reason(reasons, at, entry) for at, entry in enumerate(entries)]

    @property
    def scope(self) -> GuardScope:
        """Where the values of the guards are read."""
        alive = next(entry for entry, (live, _) in zip(self.entries, self.ages, strict=True) if live)
        return GuardScope(alive.guard_manager, self.f_locals)


def _find_reason(reasons: Sequence[str], at: int, entry: Any) -> str:
    """torch's text for an entry: it names the compile id, and is mostly at the entry's own place."""
    start = f"{entry.compile_id}: "
    if at < len(reasons) and reasons[at].startswith(start):
        return reasons[at]
    return next((reason for reason in reasons if reason.startswith(start)), "")


def _make_rows(
    time_ns: int,
    compile_id: str | None,
    where: tuple[str, str, int],
    entries: list[FailedEntry],
    closest: FailedEntry,
    key: str | None,
    checked: int,
    region: int | None,
) -> Made:
    for entry in entries:
        entry.guards = list(map(complete, entry.guards))
    return make_recompile_events(time_ns, compile_id, where, entries, closest, is_torch_file, key, checked, region)
