"""Writes docs/schemas.md to stdout, or the JSON Schema that a file in compilediag/schemas is to have: `make docs`.

A schema is derived from the class of its document: the types of the fields, and what `described` says of them.
"""

import dataclasses
import json
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from compilediag.json_document import JsonDocument, find_schema_file
from compilediag.views.findings_document import FindingsDocument
from compilediag.views.json_documents import (
    CheckDocument,
    ColdStartDocument,
    DiffDocument,
    DoctorDocument,
    FixDocument,
    InterpretersDocument,
    LiveDocument,
    PlanDocument,
    RanksDocument,
    TrialDocument,
)
from compilediag.views.queries import QueryAnswer

DOCUMENTS: tuple[type[JsonDocument], ...] = (
    FindingsDocument,
    PlanDocument,
    FixDocument,
    TrialDocument,
    InterpretersDocument,
    DiffDocument,
    CheckDocument,
    RanksDocument,
    ColdStartDocument,
    DoctorDocument,
    LiveDocument,
    QueryAnswer,
)
#: Above the fields.
INTRODUCTION = """# JSON documents

What commands print with `--json`. Each document names its schema in `schema`. The JSON Schemas are in the package, in
`compilediag/schemas`: `compilediag.findings/1` is `findings-1.json`. Within a version, fields are only added.
"""


DIALECT = "https://json-schema.org/draft/2020-12/schema"
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def main() -> None:
    schemas = {document.SCHEMA: make_schema(document) for document in DOCUMENTS}
    if sys.argv[1:]:
        files = {find_schema_file(name).name: schema for name, schema in schemas.items()}
        print(json.dumps(files[Path(sys.argv[1]).name], indent=2))
        return
    print(INTRODUCTION)
    for name, schema in schemas.items():
        print(f"## `{name}`\n\n{schema['description']}\n\n| field | type | meaning |\n| --- | --- | --- |")
        print("\n".join(list_fields(schema)), end="\n\n")


# Schemas


def make_schema(document: type[JsonDocument]) -> dict[str, Any]:
    """The JSON Schema of a document. Fields that a later version adds are valid."""
    made = make_object(document)
    properties = {"schema": {"const": document.SCHEMA}, **made["properties"]}
    required = ["schema", *made["required"]]
    return {"$schema": DIALECT, "title": document.SCHEMA, **made, "properties": properties, "required": required}


def make_object(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return {
        "description": " ".join((cls.__doc__ or "").split()),
        "type": "object",
        "properties": {field.name: describe_field(field, hints[field.name]) for field in fields},
        "required": [field.name for field in fields],
    }


def describe_field(field: dataclasses.Field[Any], hint: Any) -> dict[str, Any]:
    doc = field.metadata.get("doc")
    return {**({"description": doc} if doc else {}), **make_type(hint)}


def make_type(hint: Any) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return {"type": PLAIN[hint]}
    if origin is Literal:
        return {"enum": [*args]}
    if origin in (Union, types.UnionType):
        return join_types([make_type(arg) for arg in args])
    if origin is tuple and args[1:] == (...,):
        return {"type": "array", "items": make_type(args[0])}
    if origin is tuple:
        return {"type": "array", "items": join_types([make_type(arg) for arg in dict.fromkeys(args)])}
    if origin is dict:
        return {"type": "object", "additionalProperties": make_type(args[1])}
    return {} if hint is Any else make_object(hint)


def join_types(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """`{"type": ["string", "null"]}` for plain types; any of them otherwise."""
    if len(parts) == 1:
        return parts[0]
    if all(part.keys() == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}


# The page


def list_fields(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """A row for each field, and below it for the fields of an object."""
    for name, field in schema["properties"].items():
        meaning = field.get("description", "")
        yield f"| `{prefix}/{name}` | {describe_type(field)} | {meaning[:1].upper()}{meaning[1:]} |"
        for part in list_parts(field):
            yield from list_fields(part, f"{prefix}/{name}{'/*' if field.get('type') == 'array' else ''}")


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
