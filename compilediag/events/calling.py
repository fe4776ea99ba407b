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

    function: str | None = column("string", "name of the code object that was compiled")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    ran: str | None = column(
        "string",
        "compiled (the entry of compile_id), or eager (the function itself: that compile gave up)",
        sources=("calls",),
    )
    count: int | None = column("Int64", "calls that began since this was last written, or since time in a first row")
    timed: int | None = column("Int64", "calls of which the time is known: none that raised, no generators")
    total_s: float | None = column(
        "float64", "s that those took on the host, with what they called and without compiles in between", unit="s"
    )
    min_s: float | None = column("float64", "s of the shortest call so far", unit="s")
    first_s: float | None = column(
        "float64", "s of the first call that was timed, in the row that it is counted in", unit="s"
    )

    @property
    def title(self) -> str:
        return f"{self.function or '?'} ran {self.ran} {self.count}x"
