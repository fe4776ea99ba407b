"""Documents for other programs: dataclasses that are written as JSON.

The fields of a document are plain values, tuples, dicts and other dataclasses; `described` says what a field means.
`make docs` derives the JSON Schemas in `schemas/` from the classes (`docs/make_schemas.py`). A published document only
gets more fields within a version.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

#: Where the schemas are, as `findings-1.json`.
SCHEMAS = Path(__file__).with_name("schemas")


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
    """A value as JSON has it: dataclasses are objects, tuples are lists, numbers that JSON lacks are null."""
    if dataclasses.is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [to_plain(item) for item in value] if isinstance(value, list | tuple) else value


def format_json(values: Mapping[str, Any]) -> str:
    """An object as JSON in ASCII, with a line for each field and for each object of a list."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_format_field(value)}" for name, value in values.items()) + "\n}"


def _format_field(value: Any) -> str:
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
    return json.dumps(value)


def find_schema_file(schema: str) -> Path:
    """The file of a schema: `compilediag.findings/1` is in `findings-1.json`."""
    return SCHEMAS / f"{schema.removeprefix('compilediag.').replace('/', '-')}.json"
