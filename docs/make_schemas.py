"""Writes docs/schemas.md to stdout, and with --write the JSON Schemas of the documents for other programs into
compilediag/schemas: `make docs`.
"""

import json
import sys
from collections.abc import Iterator
from typing import Any

from compilediag.json_document import JsonDocument, find_schema_file, make_schema
from compilediag.views.findings_document import FindingsDocument

DOCUMENTS: tuple[type[JsonDocument], ...] = (FindingsDocument,)
#: Above the fields.
INTRODUCTION = """# JSON documents

What commands print with `--json`. Each document names its schema in `schema`. The JSON Schemas are in the package, in
`compilediag/schemas`: `compilediag.findings/1` is `findings-1.json`. Within a version, fields are only added. `make docs`
writes this page from the classes of the documents.
"""


def main() -> None:
    schemas = {document.SCHEMA: make_schema(document) for document in DOCUMENTS}
    if sys.argv[1:] == ["--write"]:
        for name, schema in schemas.items():
            find_schema_file(name).write_text(write_schema(schema), encoding="utf-8")
        return
    print(INTRODUCTION)
    for name, schema in schemas.items():
        print(f"## `{name}`\n\n{schema['description']}\n\n| field | type | meaning |\n| --- | --- | --- |")
        print("\n".join(list_fields(schema)), end="\n\n")


def write_schema(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2) + "\n"


def list_fields(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """A row for each field, and below it for the fields of an object."""
    for name, field in schema["properties"].items():
        meaning = field.get("description", "")
        yield f"| `{prefix}{name}` | {describe_type(field)} | {meaning[:1].upper()}{meaning[1:]} |"
        for part in list_parts(field):
            yield from list_fields(part, f"{prefix}{name}{'[]' if field.get('type') == 'array' else ''}.")


def list_parts(field: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The objects that a field has."""
    for one in (field, field.get("items", {}), *field.get("anyOf", ())):
        if "properties" in one:
            yield one


def describe_type(field: dict[str, Any]) -> str:
    if "const" in field:
        return f'"{field["const"]}"'
    if "enum" in field:
        return ", ".join(f'"{value}"' for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(map(describe_type, field["anyOf"]))
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {describe_type(field['items'])}"
    return " or ".join(kind) if isinstance(kind, list) else kind


if __name__ == "__main__":
    main()
