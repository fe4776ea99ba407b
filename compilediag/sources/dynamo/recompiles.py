"""Recompiles: when all entries of a frame have failed, which guards failed in each, and the values now.

torch calls the hook with the entries and the frame's locals in hand, and then forgets both. `full` finds
all failing guards of every entry, and the closest is the one with the fewest, of those made for the same structure.
`lean` takes the latest for the closest, and finds all failing guards of that one and the first of each other.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ...decode.guards.failed_guards import FailedEntry, make_first_failure, make_recompile_events
from ...decode.guards.guard_text import parse_guard
from ...recording import Made
from .. import _compat
from ..guards.guard_tree import failing_guards, first_failing_guard
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source


class Recompiles(Source):
    name = "recompiles"

    @classmethod
    def probe(cls) -> None:
        _compat.convert_frame_module()

    def patches(self) -> list[Patch]:
        hook = "get_and_maybe_log_recompilation_reasons"
        return [Patch(_compat.convert_frame_module(), hook, self._all_failed, self.guarded)]

    def _all_failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        chain, frame, _backend, *skip_logging = args
        if any(skip_logging) or kwargs.get("skip_logging"):
            return  # torch 2.11 asks twice; the second time is not a recompile of its own.
        entries = _compat.cache_entries(chain)
        if not entries:
            return
        ages = [_age(entry) for entry in entries]
        latest = ages.index(max(ages)) if self.detail == "lean" else None
        f_locals, reasons = frame.f_locals, result or ()
        found = [
            self._analyse(entry, age, f_locals, reasons, latest in (None, at))
            for at, (entry, age) in enumerate(zip(entries, ages, strict=True))
        ]
        closest = min(found, key=lambda entry: entry.distance) if latest is None else found[latest]
        self.emit(_events, time.time_ns(), _compat.current_compile_id(), frame.f_code, found, closest)

    def _analyse(
        self, entry: Any, age: tuple[bool, int], f_locals: dict[str, Any], reasons: Sequence[str], every_guard: bool
    ) -> FailedEntry:
        compile_id = str(entry.compile_id)
        reason = next((r for r in reasons if r.startswith(f"{compile_id}: ")), None)
        if every_guard:
            guards = list(failing_guards(entry.guard_manager, f_locals))
        else:
            guards = [first] if (first := first_failing_guard(entry.guard_manager, f_locals)) else []
        if not guards and reason is not None:
            # What the guards themselves don't show (another backend, an entry that was dropped): torch's text says it.
            guards = [make_first_failure(parse_guard(reason))]
        return FailedEntry(compile_id, age, guards, reason)


def _age(entry: Any) -> tuple[bool, int]:
    """Larger for later entries; those that are dead come before all that live."""
    live = getattr(entry.guard_manager, "invalidation_reason", None) is None
    return live, entry.compile_id.frame_compile_id or 0


def _events(time_ns: int, compile_id: str | None, code: Any, entries: list[FailedEntry], closest: FailedEntry) -> Made:
    where = (code.co_name, code.co_filename, code.co_firstlineno)
    return make_recompile_events(time_ns, compile_id, where, entries, closest, _compat.is_torch_file)
