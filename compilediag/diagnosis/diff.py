"""Compare two sessions: failures, recompiles and refused calls by cause, graph breaks, compiles, cache look-ups,
autotuning, phases.

The two may come from other machines and other revisions of a program. A function is the same if its name and the end of
its file's path are; of several with one name in a file (lambdas), they are paired in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from ..decode.guards.path import format_expression
from ..events import (
    AutotuneChoice,
    CacheLookup,
    Compile,
    Event,
    GraphBreak,
    Phase,
    Recompile,
    RefusedCall,
    Rows,
    SourceStatus,
)
from ..events.words import describe_code, format_phase
from ..formatting import format_function, format_line, format_milliseconds, format_op, format_place, format_seconds
from .evidence import Evidence, PlacedEvent, get_ids, get_place, group_by, make_place_fields, sum_seconds
from .finding import name_findings
from .rules import coverage
from .rules.failures import find_failures
from .rules.graph_breaks import find_graph_breaks
from .rules.recompiles import find_limits, find_recompiles
from .rules.refused_calls import find_refused_calls

E = TypeVar("E", bound=Event)

#: What a change can be of, in the order in which changes are listed.
KINDS = ("failure", "recompile", "refused_call", "graph_break", "compile", "cache", "autotune", "phase")
#: Kinds of changes that are causes; the others are mere counts and times.
CAUSES = ("failure", "recompile", "refused_call", "graph_break")
#: Seconds that differ by less than this, or by a smaller share, are noise.
FLOOR_S, SHARE = 0.1, 0.2
#: Outcomes of a look-up of which fewer are worse.
GOOD_OUTCOMES = ("hit",)
#: Outcomes that are as frequent as there was something to keep: neither better nor worse.
NEUTRAL_OUTCOMES = ("saved", "written")
#: The failure of a compile that hit no limit.
COMPILE_FAILED = "failed"
#: Events that a phase's change lists, the last ones.
_SHOWN_EVENTS = 20
#: Events of a function, which is named alike in both sessions.
_PLACED = (Compile, Recompile, RefusedCall)

Key = tuple[Hashable, ...]
Groups = dict[Key, list[E]]


@dataclass(frozen=True)
class Change:
    """One difference. `change`: new, gone, more, fewer, slower, faster or other.

    `before` and `after` are numbers or names. `seconds_more` is the additional cost in s; None if it has no time.
    `worse` is None if the change is neither better nor worse. `evidence_before` and `evidence_after` are event ids in
    the two sessions. `fingerprint` is that of the finding on the cause, in `after` if it has one there.
    """

    kind: str
    change: str
    title: str
    before: str
    after: str
    seconds_more: float | None
    worse: bool | None
    evidence_before: tuple[int, ...]
    evidence_after: tuple[int, ...]
    function: str | None = None
    file: str | None = None
    line: int | None = None
    fingerprint: str | None = None


def find_changes(before: Rows, after: Rows) -> list[Change]:
    """Find all differences of two sessions: what got worse first, by kind, the most expensive first.

    A table that only one of them collected is left out: see `find_uncompared`.
    """
    left_out, sides = find_uncompared(before, after), _name_functions(before, after)
    changes = [change for table, compare in _COMPARISONS if table not in left_out for change in compare(sides)]
    old_names, new_names = _map_fingerprints(before), _map_fingerprints(after)
    for at, change in enumerate(changes):
        if change.kind in CAUSES:
            names = [
                *(new_names.get(number) for number in change.evidence_after),
                *(old_names.get(number) for number in change.evidence_before),
            ]
            changes[at] = replace(change, fingerprint=next(filter(None, names), None))
    return sorted(
        changes,
        key=lambda c: (c.worse is not True, KINDS.index(c.kind), -abs(c.seconds_more or 0.0), c.title),
    )


def _map_fingerprints(data: Rows) -> dict[int, str]:
    """Event id -> the fingerprint of the finding on its cause, as far as one is on this event."""
    evidence = Evidence.of(data)
    found = [*find_recompiles(evidence), *find_refused_calls(evidence), *find_graph_breaks(evidence)]
    named = name_findings(evidence, [*found, *find_failures(evidence), *find_limits(evidence)])
    return {number: one.fingerprint for one in reversed(named) for number in one.evidence}


def find_uncompared(before: Rows, after: Rows) -> dict[str, str]:
    """Map each table that cannot be compared to the reason: one of the two sessions did not collect it."""
    collected = [coverage.map_collected(data.rows(SourceStatus)) for data in (before, after)]
    gaps = {}
    for table in coverage.FEEDS:
        lacking = [name for name, has in zip(("before", "after"), collected, strict=True) if not has[table]]
        if len(lacking) == 1:
            gaps[table] = f"not collected {lacking[0]}"
    return gaps


class _Side(NamedTuple):
    """One of the two sessions. `numbers`: name and file -> the numbers of the functions of that name, by their line."""

    data: Rows
    numbers: dict[tuple[str, str], dict[int, int]]

    def name(self, row: PlacedEvent) -> Key:
        """The name that a function has in both sessions."""
        name = _get_name(row)
        return *name, self.numbers[name].get(row.line or 0)


_Sides = tuple[_Side, _Side]


def _name_functions(before: Rows, after: Rows) -> _Sides:
    """Number the functions of one name so that the same function has the same number in both sessions.

    Equally many functions are paired in their order, otherwise those at the same line are paired.
    """
    sides = _Side(before, {}), _Side(after, {})
    lines: dict[tuple[str, str], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for number, side in enumerate(sides):
        data = side.data
        rows: list[PlacedEvent] = [*data.rows(Compile), *data.rows(Recompile), *data.rows(RefusedCall)]
        for row in rows:
            lines[_get_name(row)][number].add(row.line or 0)
    for name, (old, new) in lines.items():
        common = old & new if len(old) != len(new) else set()
        for side, own in zip(sides, (old, new), strict=True):
            side.numbers[name] = {line: at for at, line in enumerate([*sorted(common), *sorted(own - common)])}
    return sides


def _get_name(row: PlacedEvent) -> tuple[str, str]:
    return row.function or "", _get_path_end(row.file)


def _get_path_end(path: str | None) -> str:
    """The end of a path, which two checkouts have in common."""
    return "/".join((path or "").replace("\\", "/").split("/")[-2:])


def _compare_groups(
    kind: str,
    groups: Iterable[Groups[E]],
    describe: Callable[[E], str],
    get_seconds: Callable[[E], float | None] | None = None,
    is_bad: Callable[[E], bool | None] = lambda row: True,
    get_count: Callable[[E], int] = lambda row: 1,
) -> Iterator[Change]:
    """A change for each group whose number, or whose seconds, differ. `groups` are those before, and those after."""
    before, after = groups
    for key in {**before, **after}:
        old, new = before.get(key, []), after.get(key, [])
        old_n, new_n = (sum(map(get_count, rows)) for rows in (old, new))
        old_s, new_s = (sum_seconds(map(get_seconds, rows)) if get_seconds else 0.0 for rows in (old, new))
        change = _compare_seconds(old_s, new_s) if get_seconds else None
        if old_n != new_n:
            change = "new" if not old_n else "gone" if not new_n else "more" if new_n > old_n else "fewer"
        if change is None:
            continue
        row = (new or old)[-1]
        more = new_s - old_s if get_seconds else None
        shown = "" if more is None or abs(more) < 0.005 else f", {'+' if more > 0 else ''}{format_seconds(more)}"
        bad, is_growth = is_bad(row), change in ("new", "more", "slower")
        place = get_place(row) if isinstance(row, _PLACED) else (None, None, None)
        yield Change(
            kind=kind,
            change=change,
            title=f"{describe(row)}: {old_n} -> {new_n}{shown}",
            before=str(old_n),
            after=str(new_n),
            seconds_more=more,
            worse=None if bad is None else is_growth == bad,
            evidence_before=get_ids(old),
            evidence_after=get_ids(new),
            **make_place_fields(place),
        )


def _compare_seconds(old: float, new: float) -> str | None:
    if abs(new - old) < max(FLOOR_S, SHARE * old):
        return None
    return "slower" if new > old else "faster"


def _compare_compiles(sides: _Sides) -> Iterator[Change]:
    def describe(row: Compile) -> str:
        return f"compiles of {format_function(*get_place(row))}"

    groups = [group_by(side.data.rows(Compile), side.name) for side in sides]
    yield from _compare_groups("compile", groups, describe, lambda row: row.duration_s)


def _compare_failures(sides: _Sides) -> Iterator[Change]:
    def group(side: _Side) -> Groups[Compile]:
        return group_by(filter(_get_failure, side.data.rows(Compile)), lambda row: (*side.name(row), _get_failure(row)))

    def describe(row: Compile) -> str:
        failure = _get_failure(row)
        what = "failed to compile" if failure == COMPILE_FAILED else f"hit {failure}"
        return f"{format_function(*get_place(row))} {what}"

    yield from _compare_groups("failure", map(group, sides), describe)


def _get_failure(row: Compile) -> str | None:
    """The limit that a compile hit, or `COMPILE_FAILED`; None if it did not fail."""
    return row.limit or (COMPILE_FAILED if row.outcome == "failed" else None)


def _compare_recompiles(sides: _Sides) -> Iterator[Change]:
    def group(side: _Side) -> Groups[Recompile]:
        return group_by(side.data.rows(Recompile), lambda row: (*side.name(row), row.guard_kind, row.guard_source))

    def describe(row: Recompile) -> str:
        cause = format_expression(row.guard_source) if row.guard_source else "an unknown guard"
        kind = (row.guard_kind or "other").replace("_", " ")
        return f"recompiles of {format_function(*get_place(row))} for {cause} ({kind})"

    yield from _compare_groups("recompile", map(group, sides), describe, lambda row: row.lost_s)


def _compare_refused(sides: _Sides) -> Iterator[Change]:
    def group(side: _Side) -> Groups[RefusedCall]:
        rows = (row for row in side.data.rows(RefusedCall) if row.ran != "unchecked")
        return group_by(rows, lambda row: (*side.name(row), row.refused_by, row.guard_kind, row.guard_source))

    def describe(row: RefusedCall) -> str:
        what = f"calls of {format_function(*get_place(row))} that {describe_code(row.refused_by)} refused"
        return f"{what} for {format_expression(row.guard_source)}" if row.guard_source else what

    yield from _compare_groups("refused_call", map(group, sides), describe, get_count=lambda row: row.count or 0)


def _compare_graph_breaks(sides: _Sides) -> Iterator[Change]:
    def group(side: _Side) -> Groups[GraphBreak]:
        return group_by(
            side.data.rows(GraphBreak),
            lambda row: (row.break_id or row.reason, _get_path_end(row.user_file), row.user_code),
        )

    def describe(row: GraphBreak) -> str:
        where = format_place(row.user_file, row.user_line)
        return f"graph breaks{f' at {where}' if where else ''} ({format_line(row.reason or '?', 80)})"

    yield from _compare_groups("graph_break", map(group, sides), describe)


def _compare_lookups(sides: _Sides) -> Iterator[Change]:
    def group(side: _Side) -> Groups[CacheLookup]:
        return group_by(side.data.rows(CacheLookup), lambda row: (row.cache, row.tier, row.outcome))

    def is_bad(row: CacheLookup) -> bool | None:
        return None if row.outcome in NEUTRAL_OUTCOMES else row.outcome not in GOOD_OUTCOMES

    def describe(row: CacheLookup) -> str:
        return f"{describe_code(row.outcome)} of the {describe_code(row.cache)} cache ({row.tier})"

    yield from _compare_groups("cache", map(group, sides), describe, is_bad=is_bad)


def _compare_winners(sides: _Sides) -> Iterator[Change]:
    def group(side: _Side) -> Groups[AutotuneChoice]:
        winners = (row for row in side.data.rows(AutotuneChoice) if row.is_winner is True)
        return group_by(winners, lambda row: (format_op(row.op), tuple(map(str, row.inputs or ())), row.device))

    olds, news = map(group, sides)
    for key in olds.keys() & news.keys():
        old, new = olds[key][-1], news[key][-1]
        if old.choice == new.choice:
            continue
        times, worse = "", None
        if old.time_ms is not None and new.time_ms is not None:
            times = f" ({format_milliseconds(old.time_ms)} -> {format_milliseconds(new.time_ms)})"
            worse = new.time_ms > old.time_ms * (1 + SHARE) or None
        inputs = format_line(", ".join(map(str, new.inputs or ())), 80)
        yield Change(
            kind="autotune",
            change="other",
            title=f"winner of {format_op(new.op)} ({inputs}): {old.choice} -> {new.choice}{times}",
            before=str(old.choice),
            after=str(new.choice),
            seconds_more=None,
            worse=worse,
            evidence_before=get_ids(olds[key]),
            evidence_after=get_ids(news[key]),
        )


def _compare_phases(sides: _Sides) -> Iterator[Change]:
    old, new = (group_by(side.data.rows(Phase), lambda row: row.name) for side in sides)
    for name in {**old, **new}:
        rows = old.get(name, []), new.get(name, [])
        old_s, new_s = (sum_seconds(row.duration_s for row in side) for side in rows)
        change = _compare_seconds(old_s, new_s)
        if change is not None:
            yield Change(
                kind="phase",
                change=change,
                title=f"phase {format_phase(name or '?')}: {format_seconds(old_s)} -> {format_seconds(new_s)}",
                before=format_seconds(old_s),
                after=format_seconds(new_s),
                seconds_more=new_s - old_s,
                worse=change == "slower",
                evidence_before=get_ids(rows[0])[-_SHOWN_EVENTS:],
                evidence_after=get_ids(rows[1])[-_SHOWN_EVENTS:],
            )


_COMPARISONS: tuple[tuple[str, Callable[[_Sides], Iterable[Change]]], ...] = (
    ("compiles", _compare_compiles),
    ("compiles", _compare_failures),
    ("recompiles", _compare_recompiles),
    ("refused_calls", _compare_refused),
    ("graph_breaks", _compare_graph_breaks),
    ("cache_lookups", _compare_lookups),
    ("autotune", _compare_winners),
    ("phases", _compare_phases),
)
