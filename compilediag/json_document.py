"""Documents for other programs: dataclasses that are written as JSON, and the JSON Schemas that are derived from them.

The fields of a document are plain values, tuples, dicts and other dataclasses. `described` says what a field means; its
schema repeats it. The files in `schemas/` are written by `make docs`, and a test holds them and the classes together.
A document that is published only gets more fields within a version.
"""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

#: Where the schemas are, as `findings-1.json`.
SCHEMAS = Path(__file__).with_name("schemas")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}


def described(doc: str) -> Any:
    """A field of a document, with its meaning."""
    return dataclasses.field(metadata={"doc": doc})


class JsonDocument:
    """A document: a dataclass whose subclass names its schema, such as `compilediag.findings/1`."""

    SCHEMA: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """The document as plain JSON values."""
        return {"schema": self.SCHEMA, **to_plain(self)}

    def to_json(self) -> str:
        """The document as JSON, with a line for each field and for each object of a list."""
        return format_json(self.to_dict())


def to_plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses are objects, tuples are lists."""
    if dataclasses.is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def format_json(values: Mapping[str, Any]) -> str:
    """An object as JSON in ASCII, with a line for each field and for each object of a list."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_format_field(value)}" for name, value in values.items()) + "\n}"


def _format_field(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


# Schemas


def find_schema_file(schema: str) -> Path:
    """The file of a schema: `compilediag.findings/1` is in `findings-1.json`."""
    return SCHEMAS / f"{schema.removeprefix('compilediag.').replace('/', '-')}.json"


def make_schema(document: type[JsonDocument]) -> dict[str, Any]:
    """The JSON Schema of a document. Fields that a later version adds are valid."""
    made = _make_object(document)
    properties = {"schema": {"const": document.SCHEMA}, **made["properties"]}
    required = ["schema", *made["required"]]
    return {"$schema": _DIALECT, "title": document.SCHEMA, **made, "properties": properties, "required": required}


def _make_object(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return {
        "description": " ".join((cls.__doc__ or "").split()),
        "type": "object",
        "properties": {field.name: _describe_field(field, hints[field.name]) for field in fields},
        "required": [field.name for field in fields],
    }


def _describe_field(field: dataclasses.Field[Any], hint: Any) -> dict[str, Any]:
    doc = field.metadata.get("doc")
    return {**({"description": doc} if doc else {}), **_make_type(hint)}


def _make_type(hint: Any) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    if origin is Literal:
        return {"enum": [*args]}
    if origin in (Union, types.UnionType):
        return _join_types([_make_type(arg) for arg in args])
    if origin is tuple and args[1:] == (...,):
        return {"type": "array", "items": _make_type(args[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _make_type(args[1])}
    return {} if hint is Any else _make_object(hint)


def _join_types(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """`{"type": ["string", "null"]}` for plain types; any of them otherwise."""
    if all(part.keys() == {"type"} for part in parts):
        return {"type": [part["type"] for part in parts]}
    return {"anyOf": parts}
