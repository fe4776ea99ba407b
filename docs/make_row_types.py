"""Writes the TypeScript types of the rows that a page receives to stdout: `make docs`.

The types come from the columns that `compilediag/events/` and the group tables of the page declare.
"""

from compilediag.events import BY_TABLE
from compilediag.storage.tables import table_columns
from compilediag.views.group_tables import COLUMNS, MADE_OF

HEADER = """// Written by `make docs` (docs/make_row_types.py) from the event columns; a test holds the two together.
// docs/tables.md says what each column means. Times are Unix milliseconds. A missing value is null.
"""
BY_DTYPE = {"Int64": "number", "float64": "number", "boolean": "boolean", "json": "Json", "string": "string"}
#: Types of group columns that are not numbers.
BY_KIND = {"bool": "boolean", "text": "string", "path": "string", "list": "string[]", "ids": "number[]"}
#: Columns of an event's own that a row always has.
ALWAYS = {"event_id": "number", "time": "number"}


def main() -> None:
    tables = {table: event_fields(table) for table in BY_TABLE} | {table: group_fields(table) for table in COLUMNS}
    print(HEADER)
    print("/** A JSON column: a list or an object, as docs/tables.md describes it. */\nexport type Json = any;\n")
    for table, fields in tables.items():
        lines = [f"  {name}: {kind};" for name, kind in fields]
        print("\n".join([f"export interface {type_name(table)} {{", *lines, "}\n"]))
    print("/** Table -> its row. */\nexport interface RowTypes {")
    print("\n".join([*(f"  {table}: {type_name(table)};" for table in tables), "}"]))


def type_name(table: str) -> str:
    return "".join(part.capitalize() for part in table.split("_")) + "Row"


def event_fields(table: str) -> list[tuple[str, str]]:
    fields = [
        (name, ALWAYS.get(name) or f"{BY_DTYPE[spec['dtype']]} | null") for name, spec in table_columns(table).items()
    ]
    if table == "cache_lookups":
        fields.append(("explained", "string[] | null"))
    if table in MADE_OF.values():
        fields.append(("part_of", "number"))
    return fields


def group_fields(table: str) -> list[tuple[str, str]]:
    types = {name: BY_KIND.get(kind, "number") for name, (kind, _) in COLUMNS[table].items()}
    return [(name, kind if name in ALWAYS or "[]" in kind else f"{kind} | null") for name, kind in types.items()]


if __name__ == "__main__":
    main()
