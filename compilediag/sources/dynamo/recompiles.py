"""Recompiles: when all entries of a frame have failed, which guards failed in each, and the values now.

torch calls the hook with the entries and the frame's locals, and then forgets both. `full` finds all failing guards
of every entry, and the closest is the one with the fewest, of those made for the same structure. `lean` takes the
latest entry as the closest, and finds all failing guards of that one and the first of each other.
"""

from __future__ import annotations

import time
import types
from collections.abc import Sequence
from typing import Any

from ...decode.guards.failed_guards import FailedEntry, make_first_failure, make_recompile_events
from ...decode.guards.guard_text import parse_guard
from ...recording import Made
from ..guards.guard_tree import failing_guards, first_failing_guard
from ..hooks.caller_frames import is_torch_file
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from . import torch_api
from .current_compile import compile_keys

#: (is the entry alive?, its number): larger for later entries; the dead ones come before all that live.
Age = tuple[bool, int]


class Recompiles(Source):
    name = "recompiles"
    needs = (torch_api.ALL_ENTRIES_FAILED, torch_api.COMPILE_CONTEXT)

    def patches(self) -> list[Patch]:
        return [self.watch(torch_api.ALL_ENTRIES_FAILED, self._all_failed)]

    def _all_failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        chain, frame, *_ = args
        if torch_api.was_asked_before(args, kwargs):
            return  # The second time is not a recompile of its own.
        entries = torch_api.cache_entries(chain)
        if not entries:
            return
        ages: list[Age] = [(not torch_api.is_dead(entry), torch_api.entry_number(entry)) for entry in entries]
        latest = ages.index(max(ages)) if self.detail == "lean" else None
        f_locals, reasons = frame.f_locals, result or ()
        found = [
            self._check_entry(entry, age, f_locals, reasons, latest in (None, at))
            for at, (entry, age) in enumerate(zip(entries, ages, strict=True))
        ]
        closest = min(found, key=lambda entry: entry.distance) if latest is None else found[latest]
        current = compile_keys(self.recorder).current()
        self.emit(_make_rows, time.time_ns(), *current, frame.f_code, found, closest)

    def _check_entry(
        self, entry: Any, age: Age, f_locals: dict[str, Any], reasons: Sequence[str], every_guard: bool
    ) -> FailedEntry:
        compile_id, key = str(entry.compile_id), compile_keys(self.recorder).find(entry.compile_id)
        reason = next((r for r in reasons if r.startswith(f"{compile_id}: ")), None)
        if every_guard:
            guards = list(failing_guards(entry.guard_manager, f_locals))
        else:
            guards = [first] if (first := first_failing_guard(entry.guard_manager, f_locals)) else []
        if not guards and reason is not None:
            # The guards themselves do not show another backend or an entry that was dropped: torch's text does.
            guards = [make_first_failure(parse_guard(reason))]
        return FailedEntry(compile_id, age, guards, reason, key)


def _make_rows(
    time_ns: int,
    compile_id: str | None,
    key: str | None,
    code: types.CodeType,
    entries: list[FailedEntry],
    closest: FailedEntry,
) -> Made:
    where = (code.co_name, code.co_filename, code.co_firstlineno)
    return make_recompile_events(time_ns, compile_id, where, entries, closest, is_torch_file, key)
