"""Calls of compiled code, and of functions that run eagerly after all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column

#: What a `ran` column can name: a compiled entry, or the function itself, under torch.compile but not compiled.
RAN = ("compiled", "eager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls(Event):
    """Calls of one entry, or of one function that torch gave up on, since its row before: sum them up."""

    kind: ClassVar[str] = "calls"
    table: ClassVar[str] = "calls"
    shown_first: ClassVar[tuple[str, ...]] = ("function", "line", "ran", "count", "total_s")

    function: str | None = column("string", "name of the code object that was compiled", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    ran: str | None = column(
        "string",
        "compiled (the entry of compile_id), or eager (the function itself, because torch gave up on it)",
        sources=("calls",),
    )
    count: int | None = column(
        "Int64", "calls that began since the previous row of this entry, or since `time` in its first row"
    )
    timed: int | None = column("Int64", "calls with a known duration; not those that raised, no generators")
    total_s: float | None = column(
        "float64", "time that these took on the host, callees included, compiles excluded", unit="s"
    )
    min_s: float | None = column("float64", "shortest call so far", unit="s")
    first_s: float | None = column("float64", "duration of the first timed call, in the row that counts it", unit="s")

    @property
    def title(self) -> str:
        return f"{self.function or '?'} ran {self.ran} {self.count}x"
