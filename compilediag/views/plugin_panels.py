"""Panels of plug-ins: tables that a page shows in tabs of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

from .. import plugins

#: Beyond these a panel is cut, and says so.
MAX_ROWS, MAX_COLUMNS, MAX_CHARS = 5_000, 20, 2_000


def panels(tables: Any) -> list[dict[str, Any]]:
    """One dict a panel: name, label, columns (labels), rows (lists of cells) and a note, or None."""
    return [_panel(plugin, tables) for plugin in plugins.found("panels")]


def _panel(plugin: plugins.Plugin, tables: Any) -> dict[str, Any]:
    told = plugin.call(_accepted, tables) or {"columns": [], "rows": [], "note": f"{plugin.subject}: {plugin.reason}"}
    return {"name": f"panel:{plugin.name}", "label": plugin.name.replace("_", " "), **told}


def _accepted(told: Any) -> dict[str, Any]:
    """What a panel gave, as the page takes it. ValueError or TypeError if it is no table."""
    columns = [str(name)[:100] for name in told["columns"]][:MAX_COLUMNS]
    if not columns or isinstance(told["columns"], str):
        raise ValueError("a panel needs a list of columns")
    rows = [_cells(row, len(columns)) for row in islice(told["rows"], MAX_ROWS + 1)]
    cut = len(rows) > MAX_ROWS
    return {"columns": columns, "rows": rows[:MAX_ROWS], "note": f"the first {MAX_ROWS} rows" if cut else None}


def _cells(row: Iterable[Any], width: int) -> list[Any]:
    cells = [_cell(cell) for cell in islice(row, width)]
    return cells + [None] * (width - len(cells))


def _cell(cell: Any) -> str | float | int | bool | None:
    if hasattr(cell, "item") and getattr(cell, "ndim", 0) == 0:
        cell = cell.item()  # A number of numpy, as tables give it.
    if cell is None or isinstance(cell, bool | int):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    text = str(cell)
    return None if text in ("<NA>", "NaT") else text[:MAX_CHARS]
