"""Panels of plug-ins: tables that the page shows in tabs of their own."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

from .. import plugins
from ..storage.table_properties import TableProperties
from .page_types import Cell, PagePanel, PanelTable

#: Larger panels are cut, and a note says so.
MAX_ROWS, MAX_COLUMNS, MAX_CHARS = 5_000, 20, 2_000


def make_panels(data: TableProperties) -> list[PagePanel]:
    """The panels of all plug-ins. `data` has the DataFrames of the session, redacted if need be."""
    return [_make_panel(plugin, data) for plugin in plugins.list_plugins("panels")]


def _make_panel(plugin: plugins.Plugin, data: TableProperties) -> PagePanel:
    table: PanelTable | None = plugin.call(validate_panel, data)
    failed: PanelTable = {"columns": [], "rows": [], "note": f"{plugin.subject}: {plugin.reason}"}
    table = table or failed
    return {"name": f"panel:{plugin.name}", "label": plugin.name.replace("_", " "), **table}


def validate_panel(result: Any) -> PanelTable:
    """The result of a plug-in as a table, cut to the limits. ValueError or TypeError if it is no table."""
    columns = [str(name)[:100] for name in result["columns"]][:MAX_COLUMNS]
    if not columns or isinstance(result["columns"], str):
        raise ValueError("a panel needs a list of columns")
    rows = [_convert_row(row, len(columns)) for row in islice(result["rows"], MAX_ROWS + 1)]
    is_cut = len(rows) > MAX_ROWS
    return {"columns": columns, "rows": rows[:MAX_ROWS], "note": f"the first {MAX_ROWS} rows" if is_cut else None}


def _convert_row(row: Iterable[Any], width: int) -> list[Cell]:
    cells = [_convert_cell(cell) for cell in islice(row, width)]
    return cells + [None] * (width - len(cells))


def _convert_cell(cell: Any) -> Cell:
    if hasattr(cell, "item") and getattr(cell, "ndim", 0) == 0:
        cell = cell.item()  # A number of numpy, as DataFrames have it.
    if cell is None or isinstance(cell, bool | int):
        return cell
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    text = str(cell)
    return None if text in ("<NA>", "NaT") else text[:MAX_CHARS]
