"""What every event has, and what makes a field a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar


def column(dtype: str, doc: str) -> Any:
    """A field that is a column: `dtype` is "string", "Int64", "float64", "boolean" or "json" (a list or dict)."""
    return field(default=None, metadata={"dtype": dtype, "doc": doc})


@dataclass(slots=True, kw_only=True)
class Event:
    """What every event has. `kind` and `table` belong to the class."""

    kind: ClassVar[str]
    table: ClassVar[str]

    time_ns: int
    compile_id: str | None = None
    duration_s: float | None = None
    rank: int | None = None
    pid: int | None = None

    @property
    def title(self) -> str:
        """One line that names this event in a list of all events."""
        return self.kind
