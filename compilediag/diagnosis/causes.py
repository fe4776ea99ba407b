"""Recompiles grouped by root cause: the function and what was guarded."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from . import paths, wording
from .rows import Row, first, ids, is_timed, rows_of, seconds

COLUMNS = (
    "function",
    "file",
    "line",
    "closest_compile_id",
    "guard_source",
    "guard_kind",
    "expected",
    "actual",
    "user_file",
    "user_line",
    "user_code",
    "reason",
    "lost_s",
)
#: Kinds that are told of one thing: a size is guarded by its value first, by its range once it is dynamic.
_FAMILY = {"symbolic_shape": "tensor_size"}


@dataclass(frozen=True)
class Cause:
    """All recompiles of one function that one guarded thing brought about, oldest first."""

    rows: tuple[Row, ...]
    source: str
    also: tuple[tuple[str, str], ...] = ()
    """(kind, source) of what failed beside it, most of the times."""

    @property
    def kind(self) -> str:
        """The kind it began with, unless torch's range guard is all there is."""
        return next((k for k in self.kinds if k != "symbolic_shape"), self.kinds[0])

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row["guard_kind"] or "other" for row in self.rows))

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def seconds(self) -> float:
        return seconds(row["lost_s"] for row in self.rows)

    @property
    def timed(self) -> int:
        return sum(is_timed(row["lost_s"]) for row in self.rows)

    @property
    def evidence(self) -> tuple[int, ...]:
        return ids(self.rows)

    @property
    def values(self) -> tuple[str, ...]:
        """What was seen, in order of appearance, each once: what the first entry needed, then what came.

        The bounds of a range guard are not values, so of those rows only what came is told.
        """
        seen: dict[str, None] = {}
        for row in self.rows:
            if row["guard_kind"] != "symbolic_shape" and row["expected"] is not None:
                seen.setdefault(row["expected"])
            if row["actual"] is not None:
                seen.setdefault(row["actual"])
        return tuple(seen)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources as they were told, before instances were put together."""
        return tuple(dict.fromkeys(row["guard_source"] for row in self.rows if row["guard_source"] is not None))

    @property
    def torch_sources(self) -> tuple[str, ...]:
        """torch's names of them; empty if one of them has no certain name."""
        named = {
            row["guard_source"]: paths.torch_source(row["guard_source"], row["reason"])
            for row in self.rows
            if row["guard_source"] is not None
        }
        known = tuple(dict.fromkeys(name for name in named.values() if name is not None))
        return known if None not in named.values() else ()

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(row["reason"] for row in self.rows if row["reason"] is not None)

    def first(self, name: str) -> Any:
        return first(self.rows, name)

    @property
    def place(self) -> str:
        return wording.place(self.first("function"), self.first("file"), self.first("line"))

    @property
    def user_place(self) -> str:
        return wording.position(self.first("user_file"), self.first("user_line"))


def find_causes(tables: Any) -> list[Cause]:
    """The root causes of all recompiles, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "recompiles", COLUMNS):
        groups[_key(row)].append(row)
    beside = _failures(tables, Counter(_moment(row) for rows in groups.values() for row in rows))
    return [Cause(tuple(rows), key[-1], _also(rows, key[-1], beside)) for key, rows in groups.items()]


def _key(row: Row) -> tuple[Any, ...]:
    kind = row["guard_kind"] or "other"
    source = paths.normalised(row["guard_source"]) if row["guard_source"] else ""
    text = wording.first_line(row["reason"] or "") if kind == "other" and not source else ""
    return (row["file"], row["line"], row["function"], _FAMILY.get(kind, kind), text, source)


def _moment(row: Row) -> tuple[Any, ...]:
    return (row["rank"], row["pid"], row["compile_id"])


def _failures(tables: Any, recompiles: Counter[tuple[Any, ...]]) -> dict[tuple[Any, ...], list[Row]]:
    """Failing guards by recompile and entry.

    Ids begin again after `torch._dynamo.reset()`: what belongs to more than one recompile is left out.
    """
    found: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "guard_failures", ("entry_compile_id", "guard_source", "guard_kind")):
        if row["guard_source"] and recompiles[_moment(row)] == 1:
            found[(*_moment(row), row["entry_compile_id"])].append(row)
    return found


def _also(rows: list[Row], source: str, beside: dict[tuple[Any, ...], list[Row]]) -> tuple[tuple[str, str], ...]:
    """What failed in the same entry at the same recompile, in at least half of the cases."""
    counts: Counter[tuple[str, str]] = Counter()
    for row in rows:
        failures = beside.get((*_moment(row), row["closest_compile_id"]), [])
        others = {(f["guard_kind"] or "other", paths.normalised(f["guard_source"])) for f in failures}
        counts.update(sorted(pair for pair in others if pair[1] != source))
    return tuple(pair for pair, n in counts.most_common(8) if 2 * n >= len(rows))
