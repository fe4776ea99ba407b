"""The variants of a session: what was compiled of each function, so that another process can compile the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..events import CacheLookup, Compile, Rows
from ..formatting import get_basename
from .evidence import group_by
from .rules.break_even import MADE


@dataclass(frozen=True)
class Variants:
    """The compiled versions of one function: how many, and how many of them have a backward or are in a cache.

    `line` is the first line of the function, `file` the name of its file without its folder.
    """

    function: str
    file: str
    line: int
    count: int
    backwards: int = 0
    stored: int = 0

    @property
    def place(self) -> tuple[str, str, int]:
        """What finds the function in another process."""
        return self.function, self.file, self.line


def list_variants(data: Rows) -> list[Variants]:
    """The variants of each function, in the order of their first compile."""
    lookups = group_by(data.rows(CacheLookup), lambda row: row.compile_key)
    keys = group_by(data.rows(Compile), lambda row: row.compile_key)
    parts = [(rows, lookups.get(key, [])) for key, rows in keys.items() if key is not None]
    made = [part for part in parts if _is_made(part[0])]
    groups = group_by(
        made, lambda part: (part[0][0].function or "", get_basename(part[0][0].file or ""), part[0][0].line or 0)
    )
    return [_count(place, found) for place, found in groups.items()]


def _is_made(rows: Sequence[Compile]) -> bool:
    return rows[0].trigger == "dynamo" and all(row.outcome in MADE for row in rows) and bool(rows[0].graph_ops)


def _count(place: tuple[str, str, int], parts: Sequence[tuple[Sequence[Compile], Sequence[CacheLookup]]]) -> Variants:
    backwards = sum(any(row.trigger == "lazy_backward" for row in rows) for rows, _ in parts)
    return Variants(*place, count=len(parts), backwards=backwards, stored=sum(_is_stored(found) for _, found in parts))


def _is_stored(lookups: Iterable[CacheLookup]) -> bool:
    return any(row.cache == "aot_autograd" and row.outcome in ("hit", "saved") for row in lookups)


def list_missing(expected: Iterable[Variants], data: Rows) -> list[str]:
    """What of the expected variants `data` lacks, one line per function; empty if it has everything.

    A variant that was found in a cache comes with its backward, so none is compiled.
    """
    found = {variants.place: variants for variants in list_variants(data)}
    lines = []
    for wanted in expected:
        has = found.get(wanted.place, Variants(*wanted.place, count=0))
        is_complete = has.count >= wanted.count and has.stored >= wanted.stored
        if not is_complete or has.backwards + has.stored < wanted.backwards:
            where = f"{wanted.function} ({wanted.file}:{wanted.line})"
            lines.append(f"{where}: {has.count} of {wanted.count} compiled, {has.stored} of {wanted.stored} stored")
    return lines
