"""Documents for other programs: dataclasses that are written as JSON.

The fields of a document are plain values, tuples, dicts and other dataclasses; `described` says what a field means.
`make docs` derives the JSON Schemas in `schemas/` from the classes (`docs/make_schemas.py`). A published document only
gets more fields within a version.
"""

from __future__ import annotations

import bisect
import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

#: Where the schemas are, as `findings-1.json`.
SCHEMAS = Path(__file__).with_name("schemas")


def described(doc: str) -> Any:
    """A field of a document, with its meaning."""
    return dataclasses.field(metadata={"doc": doc})


@dataclasses.dataclass(frozen=True)
class JsonDocument:
    """A document: a subclass names its schema, such as `compilediag.findings/1`."""

    SCHEMA: ClassVar[str]

    omitted: dict[str, int] = dataclasses.field(
        default_factory=dict,
        kw_only=True,
        metadata={"doc": "how many items of which lists were left out because of the budget: the last ones"},
    )

    def to_dict(self) -> dict[str, Any]:
        """The document as plain JSON values."""
        omitted, *others = dataclasses.fields(self)
        return {"schema": self.SCHEMA} | {each.name: to_plain(getattr(self, each.name)) for each in (*others, omitted)}

    def fit(self, budget: int | None) -> Self:
        """The document with so few items of each list that its JSON has at most `budget` characters, if it can."""
        if budget is None or len(self.to_json()) <= budget:
            return self
        longest = range(max(map(len, self._list_lists().values()), default=0))
        fitting = bisect.bisect_right(longest, budget, key=lambda most: len(self._cut(most).to_json()))
        return self._cut(max(0, fitting - 1))

    def _cut(self, most: int) -> Self:
        lists = self._list_lists()
        left = {name: len(items) - most for name, items in lists.items() if len(items) > most}
        return dataclasses.replace(self, omitted=left, **{name: lists[name][:most] for name in left})

    def _list_lists(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if isinstance(value, list | tuple)}

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


def read_plain(cls: type[T], values: Mapping[str, Any]) -> T:
    """The dataclass of which `to_plain` gave these values. Those that have no field, or do not fit it, are ignored."""
    found = {name: _read(values.get(name), declared) for name, declared in get_type_hints(cls).items()}
    return cls(**{name: value for name, value in found.items() if value is not None})


def _read(value: Any, declared: Any) -> Any:
    """The value as the type of a field has it; None if it does not fit."""
    if get_origin(declared) is not tuple:
        return value if _fits(value, declared) else None
    kinds = get_args(declared)
    if not isinstance(value, list):
        return None
    if kinds[-1] is Ellipsis:
        return tuple(item for item in value if _fits(item, kinds[0]))
    return tuple(value) if len(value) == len(kinds) and all(map(_fits, value, kinds)) else None


def _fits(value: Any, declared: Any) -> bool:
    kinds = get_args(declared) or (declared,)
    return type(value) in kinds or (float in kinds and type(value) is int)


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
