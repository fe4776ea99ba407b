"""The columns of the page's tables: name, label, type (how the page formats a cell) and meaning."""

from __future__ import annotations

from ..events import BY_TABLE, ColumnSpec
from ..storage.tables import table_columns
from .page_types import PageColumn

NS_PER_MS = 1_000_000


#: What event rows have in addition on the page: the first for lookups, the second for all that are part of a group.
EXPLAINED: PageColumn = {"name": "explained", "label": "explained", "type": "list", "doc": "why the lookup missed"}
PART_OF: PageColumn = {
    "name": "part_of",
    "label": "part of",
    "type": "id",
    "doc": "id of the group row that this event is part of",
}
#: How the page formats a column that has neither a unit nor user data of a known form.
_TYPES = {"Int64": "int", "boolean": "bool", "json": "list", "datetime64[ns, UTC]": "time"}


def make_column(name: str, type: str, doc: str) -> PageColumn:
    """A column whose label is its name."""
    return {"name": name, "label": name.replace("_", " "), "type": type, "doc": doc}


def get_event_columns(table: str) -> list[PageColumn]:
    """The columns of a table of events, as its documentation has them."""
    return [make_column(name, _get_type(name, spec), spec["doc"]) for name, spec in table_columns(table).items()]


def get_all_event_columns() -> dict[str, list[PageColumn]]:
    """Table -> its columns, for all tables of events."""
    return {table: get_event_columns(table) for table in BY_TABLE}


def to_ms(time_ns: int) -> float:
    """A time as the page has it, in ms."""
    return time_ns / NS_PER_MS


def _get_type(name: str, spec: ColumnSpec) -> str:
    if name == "event_id":
        return "id"
    if spec["user_data"] in ("path", "code") and spec["dtype"] == "string":
        return str(spec["user_data"])
    return spec["unit"] or _TYPES.get(spec["dtype"], "text")
