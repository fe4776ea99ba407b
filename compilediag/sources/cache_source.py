"""What the sources of caches share: the row of one look-up, store or clearing."""

from __future__ import annotations

from typing import Any

from ..events import CacheLookup
from ..system import clock
from .compile_context import FunctionColumns, OwnerColumns
from .hooks.own_errors import error_columns
from .hooks.source import Source

#: Characters of an error that are kept in a row.
MAX_REASON = 2_000


class CacheSource(Source):
    """A source of the table `cache_lookups`."""

    def emit_lookup(
        self,
        cache: str,
        tier: str | None,
        action: str,
        outcome: str,
        error: BaseException | None = None,
        owner: OwnerColumns | FunctionColumns | None = None,
        **columns: Any,
    ) -> None:
        """Hand over a row, by default of now and of the compile that runs in this thread. `error`: why it failed."""
        row = {"time_ns": clock.now_ns(), "cache": cache, "tier": tier, "action": action, "outcome": outcome}
        row |= self.context.current_columns() if owner is None else owner
        self.emit(_make_row, row | columns | error_columns(error, MAX_REASON))


def _make_row(row: dict[str, Any]) -> CacheLookup:
    return CacheLookup(**row)
