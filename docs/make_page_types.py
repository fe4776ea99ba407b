"""Writes the TypeScript types of what a page receives to stdout: `make docs`.

The types of rows come from the columns that `compilediag/events/` and the group tables of the page declare, all others
from the classes of `compilediag/views/page_types.py` that a patch contains, and the dataclasses that these name.
"""

import dataclasses
import types
import typing
from collections.abc import Iterator

from compilediag.diagnosis.plan.plan import Outcome
from compilediag.events import BY_TABLE
from compilediag.storage.data import table_columns
from compilediag.views import page_types
from compilediag.views.page_rows import COLUMNS, MADE_OF

HEADER = """\
// Written by `make docs` (docs/make_page_types.py) from compilediag/views/page_types.py and the columns of the tables;
// a test holds them together. All files know these types, and those that only the browser has (types.d.ts).

/** A JSON column: a list or an object, as docs/tables.md describes it. */
type Json = any;

/** A row as it is sent: its values in the order of the table's columns, the event id first. */
type Cells = [id: number, ...values: any[]];
"""
ROWS = "// Rows: docs/tables.md says what each column means. Times are Unix milliseconds. A missing value is null.\n"
#: What the browser gets: everything else is a part of these.
ROOTS = (
    page_types.PagePatch,
    Outcome,
    page_types.PageSearch,
    page_types.PackedPatch,
    page_types.FunctionDocument,
    page_types.PackedDocument,
)

PLAIN = {str: "string", int: "number", float: "number", bool: "boolean", type(None): "null", typing.Any: "any"}
BY_DTYPE = {"Int64": "number", "float64": "number", "boolean": "boolean", "json": "Json", "string": "string"}
#: Types of group columns that are not numbers.
BY_KIND = {"bool": "boolean", "text": "string", "path": "string", "list": "string[]", "ids": "number[]"}
#: Columns of an event's own that a row always has.
ALWAYS = {"event_id": "number", "time": "number"}


def main() -> None:
    found: dict[str, str] = {}
    for root in ROOTS:
        add_type(root, found)
    print(HEADER)
    print("\n".join(found.values()))
    print(ROWS)
    tables = {table: event_fields(table) for table in BY_TABLE} | {table: group_fields(table) for table in COLUMNS}
    for table, fields in tables.items():
        lines = [f"  {name}: {kind};" for name, kind in fields]
        print("\n".join([f"interface {row_name(table)} {{", *lines, "}\n"]))
    print("/** Table -> its row. */\ninterface RowTypes {")
    print("\n".join([*(f"  {table}: {row_name(table)};" for table in tables), "}"]))


# Parts of a patch


def add_type(cls: typing.Any, found: dict[str, str]) -> None:
    """Add a class, and those that its fields have, unless they are known."""
    name = type_name(cls)
    if name in found:
        return
    found[name] = ""  # A type can contain itself.
    hints = typing.get_type_hints(cls, include_extras=True)
    if typing.is_typeddict(cls) or dataclasses.is_dataclass(cls):
        optional = getattr(cls, "__optional_keys__", ())
        marks = {key: "?" for key in hints if key in optional or is_optional(hints[key])}
        fields = [f"  {quote(key)}{marks.get(key, '')}: {write(hint, found)};" for key, hint in hints.items()]
        text = "\n".join([f"interface {name} {{", *fields, "}\n"])
    else:
        parts = ", ".join(f"{key}: {write(hint, found)}" for key, hint in hints.items())
        text = f"type {name} = [{parts}];\n"
    found[name] = "".join(comment(cls)) + text


def is_optional(hint: typing.Any) -> bool:
    return typing.get_origin(hint) is typing.NotRequired


def type_name(cls: typing.Any) -> str:
    return str(cls.__name__.removeprefix("Page"))


def comment(cls: typing.Any) -> Iterator[str]:
    """The docstring of a class; what `typing` gives a class without one is no docstring."""
    if cls.__doc__ and not cls.__doc__.startswith("dict("):
        lines = [line.strip() for line in cls.__doc__.strip().splitlines()]
        yield f"/** {lines[0]}" + "".join(f"\n *  {line}".rstrip() for line in lines[1:]) + " */\n"


def quote(key: str) -> str:
    return key if key.isidentifier() else f'"{key}"'


def write(hint: typing.Any, found: dict[str, str]) -> str:
    """A type as TypeScript writes it."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if hint in PLAIN:
        return PLAIN[hint]
    if origin in (typing.NotRequired, typing.Required):
        return write(args[0], found)
    if origin is typing.Annotated:
        return args[1] if isinstance(args[1], str) else write(args[1], found)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(dict.fromkeys(write(arg, found) for arg in args))
    if origin is list or (origin is tuple and args[1:] == (...,)):
        item = write(args[0], found)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is dict:
        return f"Record<{write(args[0], found)}, {write(args[1], found)}>"
    if origin is tuple:
        return f"[{', '.join(write(arg, found) for arg in args)}]"
    add_type(hint, found)
    return type_name(hint)


# Rows


def row_name(table: str) -> str:
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
    fields = {name: BY_KIND.get(kind, "number") for name, (kind, _) in COLUMNS[table].items()}
    return [(name, kind if name in ALWAYS or "[]" in kind else f"{kind} | null") for name, kind in fields.items()]


if __name__ == "__main__":
    main()
