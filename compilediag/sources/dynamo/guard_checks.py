"""What a call pays for the guards of an entry, only if requested: one check that holds, with warm caches.

torch measures a check once in each compile, after it has emptied the processor's caches, so its figure is many times
what a call in a loop pays. The same check, of the arguments of the call that compiled, is repeated here.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from ..guards.guard_scope import GuardScope
from ..guards.guard_walk import runs_users_code
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import Source, hook
from . import torch_api

#: Frames between the hook and the frame of the conversion.
DEPTH = 40
#: Checks of a round, and rounds: the fastest one counts, because others share the cores.
CHECKS, ROUNDS = 20, 5


class GuardChecks(Source):
    name = "guard_checks"
    needs = (torch_api.COMPILE_CONTEXT,)
    on_request = True

    @hook(torch_api.CONVERSION_RESULT)
    def _got_result(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The result of a conversion: if it is an entry, its guards hold for the arguments of this call."""
        entry, frame = getattr(args[0], "guarded_code", None), torch_api.converted_frame(DEPTH)
        if entry is None or frame is None:
            return
        known = self.context.frames.get(self.context.keys.find(entry.compile_id) or "")
        if known is not None:
            known["guard_check_us"] = time_check(entry.guard_manager, frame.f_locals)


def time_check(guard_manager: Any, f_locals: dict[str, Any]) -> float | None:
    """us of one check; None if the guards do not hold, or if checking them runs methods that the user wrote."""
    if runs_users_code(guard_manager, GuardScope(guard_manager, f_locals)):
        return None
    check = guard_manager.root.check
    if not check(f_locals):
        return None
    rounds = []
    for _ in range(ROUNDS):
        begin = perf_counter_ns()
        for _ in range(CHECKS):
            check(f_locals)
        rounds.append(perf_counter_ns() - begin)
    return min(rounds) / CHECKS / 1e3
