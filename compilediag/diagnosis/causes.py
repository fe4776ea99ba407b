"""Recompiles grouped by root cause: the function and what was guarded."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from ..decode.guard_names import readable
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
ZERO_ONE = frozenset({"0", "1"})
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
#: torch's mark on the guard of a symbol that Python code needed as a value.
EVALUATED = "in evaluate_expr"

#: Failing guards by recompile.
Failures = dict[tuple[Any, ...], list[Row]]


@dataclass(frozen=True)
class Cause:
    """All recompiles of one function that one guarded thing brought about, oldest first.

    `also` is what failed beside it at most of these: (kind, source). `still_static`: an entry that was compiled
    with the size or number dynamic was bound to one value even so.
    """

    rows: tuple[Row, ...]
    source: str
    also: tuple[tuple[str, str], ...] = ()
    still_static: bool = False

    @property
    def kind(self) -> str:
        """The kind that it began with; a guard of dynamic shapes only if there is no other."""
        kinds = [row["guard_kind"] or "other" for row in self.rows]
        return next((k for k in kinds if k != "symbolic_shape"), kinds[0])

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
        """What was seen, in order of appearance, each once: what the first entry needed, then what came."""
        seen: dict[str, None] = {}
        for row in self.rows:
            # What a guard of dynamic shapes needs is a bound, not a value.
            if row["guard_kind"] != "symbolic_shape" and row["expected"] is not None:
                seen.setdefault(row["expected"])
            if row["actual"] is not None:
                seen.setdefault(row["actual"])
        return tuple(seen)

    @property
    def bounds(self) -> tuple[str, ...]:
        """What guards of dynamic shapes needed, in order of appearance, each once."""
        bounds = (row["expected"] or "" for row in self.rows if row["guard_kind"] == "symbolic_shape")
        return tuple(dict.fromkeys(code for bound in bounds if (code := bound.partition("  # ")[0].strip())))

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources as they were told, before instances were put together."""
        return tuple(dict.fromkeys(row["guard_source"] for row in self.rows if row["guard_source"] is not None))

    @property
    def torch_sources(self) -> tuple[str, ...]:
        """torch's names of the sources; empty if one of them has no certain name."""
        pairs = dict.fromkeys((row["guard_source"], row["reason"]) for row in self.rows if row["guard_source"])
        by_source: dict[str, str | None] = {}
        for source, reason in pairs:
            by_source[source] = by_source.get(source) or paths.torch_source(source, reason)
        names = tuple(dict.fromkeys(name for name in by_source.values() if name is not None))
        return names if None not in by_source.values() else ()

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
    failures, decided = _failures(tables), _decisions(tables)
    return [_cause(rows, key[-1], failures, decided) for key, rows in groups.items()]


def _cause(rows: list[Row], source: str, failures: Failures, decided: set[tuple[Any, ...]]) -> Cause:
    beside = [failures.get(_moment(row), []) for row in rows]
    is_static = any(_is_static(row, decided) for row in rows) or any(_is_pinned(f, source) for fs in beside for f in fs)
    return Cause(tuple(rows), source, _also(rows, source, beside), is_static)


def _key(row: Row) -> tuple[Any, ...]:
    kind = row["guard_kind"] or "other"
    source = paths.normalised(row["guard_source"]) if row["guard_source"] else ""
    text = wording.first_line(row["reason"] or "") if kind == "other" and not source else ""
    return (row["file"], row["line"], row["function"], _family(kind, source), text, source)


def _family(kind: str, source: str) -> str:
    """Of one size or number, the guard on its value and those once it is dynamic are one family."""
    if kind != "symbolic_shape" or "," in source:
        return kind
    return "tensor_size" if paths.split_property(source)[1] == "size" else "value"


def _failures(tables: Any) -> Failures:
    found: Failures = defaultdict(list)
    for row in rows_of(
        tables, "guard_failures", ("entry_compile_id", "guard_source", "guard_kind", "expected", "guard")
    ):
        if row["guard_source"]:
            found[_moment(row)].append(row)
    return found


def _moment(row: Row) -> tuple[Any, ...]:
    """What tells one recompile from another. Ids alone don't: they begin again after torch._dynamo.reset()."""
    return (row["rank"], row["pid"], row["compile_id"], row["time"])


def _also(rows: list[Row], source: str, beside: list[list[Row]]) -> tuple[tuple[str, str], ...]:
    """What failed in the same entry at the same recompile, in at least half of the cases."""
    counts: Counter[tuple[str, str]] = Counter()
    for row, failures in zip(rows, beside, strict=True):
        same = (f for f in failures if f["entry_compile_id"] == row["closest_compile_id"])
        others = {(f["guard_kind"] or "other", paths.normalised(f["guard_source"])) for f in same}
        counts.update(sorted(pair for pair in others if pair[1] != source))
    return tuple(pair for pair, n in counts.most_common(8) if 2 * n >= len(rows))


def _is_pinned(failure: Row, source: str) -> bool:
    """True if an entry was bound to one value of this source because Python code needed it."""
    pinned = EVALUATED in (failure["guard"] or "") and NUMBER.fullmatch(failure["expected"] or "")
    return bool(pinned) and paths.normalised(failure["guard_source"]) == source


def _decisions(tables: Any) -> set[tuple[Any, ...]]:
    """The sizes that torch made dynamic by itself: (rank, pid, compile id of the entry, source)."""
    rows = rows_of(tables, "dynamic_decisions", ("source", "dim"))
    sized = (row for row in rows if row["source"] and (row["dim"] or "").isdecimal())
    return {
        (row["rank"], row["pid"], row["compile_id"], f"{readable(row['source'])}.size()[{row['dim']}]") for row in sized
    }


def _is_static(row: Row, decided: set[tuple[Any, ...]]) -> bool:
    entry = (row["rank"], row["pid"], row["closest_compile_id"], row["guard_source"])
    return row["guard_kind"] == "tensor_size" and row["expected"] not in ZERO_ONE and entry in decided
