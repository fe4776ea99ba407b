"""The state of a session's sources as a text table: what `%compilewatch status` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..formatting import format_count, format_line

_HEAD = ("source", "status", "events", "why")


def format_status(sources: Sequence[dict[str, Any]]) -> str:
    """One line per row of `Session.status()`; a source that is not active has no number of events."""
    rows = [_HEAD, *map(_list_cells, sources)]
    widths = [max(len(row[at]) for row in rows) for at in range(3)]
    return "\n".join(
        f"{name:<{widths[0]}}  {status:<{widths[1]}}  {events:>{widths[2]}}  {why}".rstrip()
        for name, status, events, why in rows
    )


def _list_cells(source: dict[str, Any]) -> tuple[str, str, str, str]:
    events, is_active = source["events"], source["status"] == "active"
    shown = format_count(events) if events is not None and (is_active or events) else ""
    name, status = (format_line(source[part] or "", 60) for part in ("name", "status"))
    return name, status, shown, format_line(source["reason"] or "", 200)
