"""What the sources of tuning share: the function that is compiled, and rows of look-ups of what was tuned before."""

from __future__ import annotations

import time
from typing import Any

from ...events import CacheLookup
from ..dynamo.current_compile import code_of
from ..hooks.patching import Raised
from ..hooks.shield import columns
from ..hooks.source import Source, made


class Tuner(Source):
    """A source of the table `autotune`."""

    def frame(self, compile_id: str | None) -> dict[str, Any]:
        """Function, file and line of what is compiled, as far as known."""
        return code_of(compile_id, self.recorder.frames)

    def look_up(
        self,
        compile_id: str | None,
        tier: str | None,
        outcome: str,
        key: str | None,
        *,
        cache: str = "autotune",
        action: str = "look_up",
        reason: str | None = None,
        error: Raised = None,
    ) -> None:
        """Tell that a cache was asked, or given something to keep."""
        event = CacheLookup(
            time_ns=time.time_ns(),
            compile_id=compile_id,
            cache=cache,
            tier=tier,
            action=action,
            outcome=outcome,
            key=key,
            **self.frame(compile_id),
            **{"reason": reason, **columns(error)},
        )
        self.emit(made, event)
