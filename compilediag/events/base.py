"""What every event has, and what makes a field a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypedDict

NS_PER_S = 1_000_000_000


#: What a column can hold of the user's: a path; the name of a guarded value, as users write it ("source") or as torch
#: does ("torch_source"); a name of code, such as that of a function ("name"); the key of a cache, which can be a path;
#: the configuration of a kernel, of which names and numbers are shown ("numbers"); code; or a text that can quote
#: values ("content").
UserData = Literal["path", "source", "torch_source", "name", "key", "numbers", "code", "content"]


class ColumnSpec(TypedDict):
    """What is declared of a column; the arguments of `column` say what each part means."""

    dtype: str
    doc: str
    unit: str | None
    user_data: UserData | None
    sources: tuple[str, ...]
    #: The Python type of the values of a column of JSON: "list[str]"; None for other columns.
    shape: str | None


def describe_column(
    dtype: str, doc: str, unit: str | None = None, user_data: UserData | None = None, sources: tuple[str, ...] = ()
) -> ColumnSpec:
    """The declaration of a column; see `column`."""
    return {"dtype": dtype, "doc": doc, "unit": unit, "user_data": user_data, "sources": sources, "shape": None}


def column(
    dtype: str, doc: str, unit: str | None = None, user_data: UserData | None = None, sources: tuple[str, ...] = ()
) -> Any:
    """A field that is a column.

    `dtype` is "string", "Int64", "float64", "boolean" or "json" (a list or dict). `unit` is the unit of a number:
    "s", "ms", "us" or "bytes". `user_data` says what the cells can hold of the user's, None if nothing that a redacted
    report must leave out: it replaces paths and keys, removes keys of containers from sources, keeps names and numbers,
    and drops code, content, and all that is not what its column declares. `sources` names the sources that fill the
    column.
    """
    return field(default=None, metadata={**describe_column(dtype, doc, unit, user_data, sources)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event has. `kind` and `table` belong to the class; `event_id` is None until it is read from a file."""

    kind: ClassVar[str]
    table: ClassVar[str]
    #: The columns that a DataFrame of this kind begins with, behind `compile_id`; the others follow as declared.
    shown_first: ClassVar[tuple[str, ...]] = ()

    time_ns: int
    compile_id: str | None = None
    compile_key: str | None = None
    duration_s: float | None = None
    rank: int | None = None
    pid: int | None = None
    event_id: int | None = None

    @property
    def title(self) -> str:
        """One line that names this event in a list of all events."""
        return self.kind

    @property
    def end_ns(self) -> int:
        """When it ended; an event without a duration ends when it begins."""
        return self.time_ns + round((self.duration_s or 0) * NS_PER_S)
