"""What the sources of tuning share: the compile that a tuning belongs to, and rows of look-ups in their caches."""

from __future__ import annotations

from typing import NamedTuple

from ... import clock
from ...events import CacheLookup
from ..hooks.columns import ErrorColumns, FunctionColumns
from ..hooks.own_errors import error_columns
from ..hooks.patches import Raised
from ..hooks.source import Source


class CompileIds(NamedTuple):
    """The compile attempt that a tuning belongs to; both None outside of torch.compile."""

    compile_id: str | None
    compile_key: str | None


class Tuner(Source):
    """A source of the table `autotune`."""

    def current_ids(self) -> CompileIds:
        return CompileIds(*self.context.keys.current())

    def frame(self, ids: CompileIds) -> FunctionColumns:
        """Function, file and line that are compiled, as far as known."""
        return self.context.function_columns(ids.compile_key)

    def emit_look_up(
        self,
        ids: CompileIds,
        tier: str | None,
        outcome: str,
        key: str | None,
        *,
        cache: str = "autotune",
        action: str = "look_up",
        reason: str | None = None,
        error: Raised = None,
    ) -> None:
        """Record that a cache was asked, or given an entry."""
        why: ErrorColumns = {"reason": reason, **error_columns(error)}
        self.emit_event(
            CacheLookup(
                time_ns=clock.now_ns(),
                compile_id=ids.compile_id,
                compile_key=ids.compile_key,
                cache=cache,
                tier=tier,
                action=action,
                outcome=outcome,
                key=key,
                **self.frame(ids),
                **why,
            )
        )
