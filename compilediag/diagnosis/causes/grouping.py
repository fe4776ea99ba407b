"""Recompiles grouped by root cause: the function and what was guarded."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from ...decode.guards.source_names import format_source
from .. import wording
from ..rows import Place, Row, first, ids, is_timed, place_in, row_order, rows_of, seconds
from . import paths

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
INTEGER = re.compile(r"-?\d{1,18}")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
#: torch's mark on the guard of a symbol that Python code needed as a value.
EVALUATED = "in evaluate_expr"

#: Of the whole program: where they strike is no part of the cause.
_MODES = ("global_state", "default_device", "mode_stack")
#: What is told apart by being another object: that two look the same says nothing.
_OBJECTS = ("identity", "dead_reference", "backend", "type", "alias", "other")
_VARYING = ("tensor_size", "symbolic_shape")
#: File, line, function, family, text and source: what the recompiles of one cause in one function have in common.
Key = tuple[Any, ...]
#: Failing guards by recompile.
Failures = dict[tuple[Any, ...], list[Row]]


@dataclass(frozen=True)
class Cause:
    """All recompiles that one guarded thing brought about, oldest first, in one function or in several.

    `also` is what failed beside it at most of these: (kind, source). `still_static`: an entry that was compiled
    with the size or number dynamic was bound to one value even so. `shared`: recompiles that are told as another
    cause's but at which this failed as well: without it mended they would stay. `also_named`: torch's names of what is
    in `also`, where they are certain.
    """

    rows: tuple[Row, ...]
    source: str
    also: tuple[tuple[str, str], ...] = ()
    still_static: bool = False
    shared: tuple[Row, ...] = ()
    also_named: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The kind that it began with; a guard of dynamic shapes only if there is no other."""
        kinds = [row["guard_kind"] or "other" for row in self.rows]
        return next((k for k in kinds if k != "symbolic_shape"), kinds[0])

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def most(self) -> int:
        """The recompiles of the function that it struck most often: once in each of five functions is once."""
        return max(Counter(place_in(row) for row in self.rows).values())

    @property
    def seconds(self) -> float:
        return seconds(row["lost_s"] for row in self.rows)

    @property
    def seconds_at_stake(self) -> float:
        """s of all recompiles at which it failed: what can't be had back while it stays."""
        return seconds(row["lost_s"] for row in (*self.rows, *self.shared))

    @property
    def family(self) -> str:
        return _family(self.rows[0]["guard_kind"] or "other", self.source)

    @property
    def places(self) -> tuple[Place, ...]:
        """The functions that it recompiled, in order of appearance."""
        return tuple(dict.fromkeys(place_in(row) for row in self.rows))

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
        """`forward (model.py:30)`, and how many functions more."""
        shown, more = wording.place(*self.places[0]), len(self.places) - 1
        return f"{shown} and {more} more function{'s' if more > 1 else ''}" if more else shown

    @property
    def user_place(self) -> str:
        return wording.position(self.first("user_file"), self.first("user_line"))


def find_causes(tables: Any) -> list[Cause]:
    """The root causes of all recompiles, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    failures, decided = _failures(tables), _decisions(tables)
    for row in rows_of(tables, "recompiles", COLUMNS):
        groups[_key(row)].append(_with_own_text(row, failures))
    beside = _beside(groups, failures)
    causes = [_cause(key, rows, failures, decided, beside.get(key, [])) for key, rows in groups.items()]
    return _joined(causes)


def _cause(key: Key, rows: list[Row], failures: Failures, decided: set[tuple[Any, ...]], shared: list[Row]) -> Cause:
    source = key[-1]
    beside = [failures.get(_moment(row), []) for row in rows]
    is_static = any(_is_static(row, decided) for row in rows) or any(_is_pinned(f, source) for fs in beside for f in fs)
    also = _also(rows, source, beside)
    return Cause(tuple(rows), source, also, is_static, tuple(shared), _names(also, beside))


def _with_own_text(row: Row, failures: Failures) -> Row:
    """The row with the text of its own guard, where torch's reason is of another one that failed before it."""
    if not row["guard_source"] or paths.torch_source(row["guard_source"], row["reason"]) is not None:
        return row
    own = (
        failure["guard"]
        for failure in failures.get(_moment(row), ())
        if (failure["entry_compile_id"], failure["guard_source"]) == (row["closest_compile_id"], row["guard_source"])
    )
    return {**row, "reason": next(own, None) or row["reason"]}


def _beside(groups: dict[Key, list[Row]], failures: Failures) -> dict[Key, list[Row]]:
    """Of each cause the recompiles of other causes at which its guard failed too, in the entry that was closest."""
    found: dict[Key, list[Row]] = defaultdict(list)
    for own, rows in groups.items():
        for row in rows:
            for failure in failures.get(_moment(row), ()):
                if failure["entry_compile_id"] != row["closest_compile_id"] or failure["normal"] == own[-1]:
                    continue
                family = _family(failure["guard_kind"] or "other", failure["normal"])
                other = (*own[:3], family, "", failure["normal"])
                if other in groups and row not in found[other][-1:]:
                    found[other].append(row)
    return found


def _joined(causes: list[Cause]) -> list[Cause]:
    """One cause for what changed in the same way in several functions: a batch size, a mode, a flag, a global."""
    groups: dict[tuple[Any, ...], list[Cause]] = defaultdict(list)
    for cause in causes:
        groups[_change(cause)].append(cause)
    return [same[0] if len(same) == 1 else _join(same) for same in groups.values()]


def _change(cause: Cause) -> tuple[Any, ...]:
    """What is the same for causes that are one: what was guarded, and the values that came, in their order."""
    if cause.family in _MODES:
        return (cause.family, cause.source, cause.values)
    if cause.family in _OBJECTS or not cause.values:
        return (id(cause),)
    return (cause.family, cause.source, cause.values, cause.bounds, cause.still_static)


def _join(causes: list[Cause]) -> Cause:
    rows = sorted((row for cause in causes for row in cause.rows), key=row_order)
    own = {row["event_id"] for row in rows}
    shared = {row["event_id"]: row for cause in causes for row in cause.shared if row["event_id"] not in own}
    also = dict.fromkeys(pair for cause in causes for pair in cause.also)
    named = tuple(dict.fromkeys(name for cause in causes for name in cause.also_named))
    static, others = causes[0].still_static, tuple(shared.values())
    return Cause(tuple(rows), causes[0].source, tuple(also), static, others, named)


def _key(row: Row) -> Key:
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
        tables, "guard_failures", ("entry_compile_id", "guard_source", "guard_kind", "expected", "actual", "guard")
    ):
        if row["guard_source"]:
            row["normal"] = paths.normalised(row["guard_source"])
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
        others = {(f["guard_kind"] or "other", f["normal"]) for f in same}
        counts.update(sorted(pair for pair in others if pair[1] != source))
    return tuple(pair for pair, n in counts.most_common(8) if 2 * n >= len(rows))


def _names(also: tuple[tuple[str, str], ...], beside: list[list[Row]]) -> tuple[str, ...]:
    """torch's names of those sizes and numbers in `also` that a setting could make dynamic."""
    wanted = set(also)
    rows = (f for failures in beside for f in failures if (f["guard_kind"], f["normal"]) in wanted and _varies(f))
    pairs = dict.fromkeys((f["guard_source"], f["guard"]) for f in rows)
    return tuple(dict.fromkeys(name for pair in pairs if (name := paths.torch_source(*pair)) is not None))


def _varies(failure: Row) -> bool:
    """True of a size, and of an integer that was another integer."""
    numbers = (failure["expected"] or "", failure["actual"] or "")
    return failure["guard_kind"] in _VARYING or (
        failure["guard_kind"] == "value" and all(map(INTEGER.fullmatch, numbers))
    )


def _is_pinned(failure: Row, source: str) -> bool:
    """True if an entry was bound to one value of this source because Python code needed it."""
    pinned = EVALUATED in (failure["guard"] or "") and NUMBER.fullmatch(failure["expected"] or "")
    return bool(pinned) and failure["normal"] == source


def _decisions(tables: Any) -> set[tuple[Any, ...]]:
    """The sizes that torch made dynamic by itself: (rank, pid, compile id of the entry, source)."""
    rows = rows_of(tables, "dynamic_decisions", ("source", "dim"))
    sized = (row for row in rows if row["source"] and (row["dim"] or "").isdecimal())
    return {
        (row["rank"], row["pid"], row["compile_id"], f"{format_source(row['source'])}.size()[{row['dim']}]")
        for row in sized
    }


def _is_static(row: Row, decided: set[tuple[Any, ...]]) -> bool:
    entry = (row["rank"], row["pid"], row["closest_compile_id"], row["guard_source"])
    return row["guard_kind"] == "tensor_size" and row["expected"] not in ZERO_ONE and entry in decided


def strikes_of(tables: Any, kind: str | None, source: str | None, places: tuple[Place, ...]) -> int:
    """How many recompiles of these functions have this cause."""
    if kind is None or source is None:
        return 0
    keys = {(file, line, function, _family(kind, source), source) for function, file, line in places}
    rows = rows_of(tables, "recompiles", COLUMNS)
    return sum((*_key(row)[:4], _key(row)[-1]) in keys for row in rows)
