"""Compare two sessions: failures, recompiles and refused calls by cause, graph breaks, compiles, cache look-ups,
autotuning, phases.

The two may come from other machines and other revisions of a program. A function is the same if its name and the end of
its file's path are; of several with one name in a file (lambdas), they are paired in their order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

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
from .evidence import Evidence, PlacedEvent, get_ids, get_place, group_by, sum_seconds
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
    left_out, names = find_uncompared(before, after), _SharedNames(before, after)
    changes = [
        change for table, compare in _COMPARISONS if table not in left_out for change in compare(names, before, after)
    ]
    known = _map_fingerprints(before), _map_fingerprints(after)
    return sorted(
        (_name_cause(change, *known) for change in changes),
        key=lambda c: (c.worse is not True, KINDS.index(c.kind), -abs(c.seconds_more or 0.0), c.title),
    )


def _map_fingerprints(data: Rows) -> dict[int, str]:
    """Event id -> the fingerprint of the finding on its cause, as far as one is on this event."""
    evidence = Evidence.of(data)
    found = [*find_recompiles(evidence), *find_refused_calls(evidence), *find_graph_breaks(evidence)]
    named = name_findings(evidence, [*found, *find_failures(evidence), *find_limits(evidence)])
    return {number: one.fingerprint for one in reversed(named) for number in one.evidence}


def _name_cause(change: Change, before: dict[int, str], after: dict[int, str]) -> Change:
    if change.kind not in CAUSES or change.fingerprint is not None:
        return change
    names = (
        known.get(number)
        for known, ids in ((after, change.evidence_after), (before, change.evidence_before))
        for number in ids
    )
    return replace(change, fingerprint=next(filter(None, names), None))


def find_uncompared(before: Rows, after: Rows) -> dict[str, str]:
    """Map each table that cannot be compared to the reason: one of the two sessions did not collect it."""
    collected = [coverage.map_collected(data.rows(SourceStatus)) for data in (before, after)]
    gaps = {}
    for table in coverage.FEEDS:
        lacking = [name for name, has in zip(("before", "after"), collected, strict=True) if not has[table]]
        if len(lacking) == 1:
            gaps[table] = f"not collected {lacking[0]}"
    return gaps


class _SharedNames:
    """Names that functions have in both sessions."""

    def __init__(self, before: Rows, after: Rows):
        old, new = _map_lines(before), _map_lines(after)
        self._before: dict[tuple[str, str], dict[int, int]] = {}
        self._after: dict[tuple[str, str], dict[int, int]] = {}
        for name in {**old, **new}:
            self._before[name], self._after[name] = _number_lines(old.get(name, set()), new.get(name, set()))

    def before(self, row: PlacedEvent) -> Key:
        name = _get_name(row)
        return *name, self._before[name].get(row.line or 0)

    def after(self, row: PlacedEvent) -> Key:
        name = _get_name(row)
        return *name, self._after[name].get(row.line or 0)


def _map_lines(data: Rows) -> dict[tuple[str, str], set[int]]:
    """Name and file -> the lines at which functions of that name begin."""
    lines: dict[tuple[str, str], set[int]] = defaultdict(set)
    rows: list[PlacedEvent] = [*data.rows(Compile), *data.rows(Recompile), *data.rows(RefusedCall)]
    for row in rows:
        lines[_get_name(row)].add(row.line or 0)
    return lines


def _number_lines(before: set[int], after: set[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Number the functions of one name so that the same function has the same number in both sessions.

    Equally many functions are paired in their order, otherwise those at the same line are paired.
    """
    common = before & after if len(before) != len(after) else set()
    orders = ([*sorted(common), *sorted(lines - common)] for lines in (before, after))
    old, new = ({line: number for number, line in enumerate(order)} for order in orders)
    return old, new


def _get_name(row: PlacedEvent) -> tuple[str, str]:
    return row.function or "", _get_path_end(row.file)


def _get_path_end(path: str | None) -> str:
    """The end of a path, which two checkouts have in common."""
    return "/".join((path or "").replace("\\", "/").split("/")[-2:])


def _compare_groups(
    kind: str,
    before: Groups[E],
    after: Groups[E],
    describe: Callable[[E], str],
    get_seconds: Callable[[E], float | None] | None = None,
    is_bad: Callable[[E], bool | None] = lambda row: True,
    get_count: Callable[[E], int] = lambda row: 1,
) -> Iterator[Change]:
    """A change for each group whose number, or whose seconds, differ."""
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
        function, file, line = get_place(row) if isinstance(row, _PLACED) else (None, None, None)
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
            function=function,
            file=file,
            line=line,
        )


def _compare_seconds(old: float, new: float) -> str | None:
    if abs(new - old) < max(FLOOR_S, SHARE * old):
        return None
    return "slower" if new > old else "faster"


def _compare_compiles(names: _SharedNames, before: Rows, after: Rows) -> Iterator[Change]:
    old, new = before.rows(Compile), after.rows(Compile)
    groups = group_by(old, names.before), group_by(new, names.after)
    yield from _compare_groups(
        "compile", *groups, lambda row: f"compiles of {format_function(*get_place(row))}", lambda row: row.duration_s
    )
    failed = group_by(filter(_get_failure, old), lambda row: (*names.before(row), _get_failure(row)))
    fails = group_by(filter(_get_failure, new), lambda row: (*names.after(row), _get_failure(row)))
    yield from _compare_groups("failure", failed, fails, _describe_failure)


def _get_failure(row: Compile) -> str | None:
    """The limit that a compile hit, or `COMPILE_FAILED`; None if it did not fail."""
    return row.limit or (COMPILE_FAILED if row.outcome == "failed" else None)


def _describe_failure(row: Compile) -> str:
    failure = _get_failure(row)
    what = "failed to compile" if failure == COMPILE_FAILED else f"hit {failure}"
    return f"{format_function(*get_place(row))} {what}"


def _compare_recompiles(names: _SharedNames, before: Rows, after: Rows) -> Iterator[Change]:
    def group(data: Rows, get_name: Callable[[Recompile], Key]) -> Groups[Recompile]:
        return group_by(data.rows(Recompile), lambda row: (*get_name(row), row.guard_kind, row.guard_source))

    def describe(row: Recompile) -> str:
        cause = format_expression(row.guard_source) if row.guard_source else "an unknown guard"
        kind = (row.guard_kind or "other").replace("_", " ")
        return f"recompiles of {format_function(*get_place(row))} for {cause} ({kind})"

    groups = group(before, names.before), group(after, names.after)
    yield from _compare_groups("recompile", *groups, describe, lambda row: row.lost_s)


def _compare_refused(names: _SharedNames, before: Rows, after: Rows) -> Iterator[Change]:
    def group(data: Rows, get_name: Callable[[RefusedCall], Key]) -> Groups[RefusedCall]:
        rows = (row for row in data.rows(RefusedCall) if row.ran != "unchecked")
        return group_by(rows, lambda row: (*get_name(row), row.refused_by, row.guard_kind, row.guard_source))

    def describe(row: RefusedCall) -> str:
        what = f"calls of {format_function(*get_place(row))} that {describe_code(row.refused_by)} refused"
        return f"{what} for {format_expression(row.guard_source)}" if row.guard_source else what

    groups = group(before, names.before), group(after, names.after)
    yield from _compare_groups("refused_call", *groups, describe, get_count=lambda row: row.count or 0)


def _compare_graph_breaks(names: _SharedNames, before: Rows, after: Rows) -> Iterator[Change]:
    def group(data: Rows) -> Groups[GraphBreak]:
        return group_by(
            data.rows(GraphBreak),
            lambda row: (row.break_id or row.reason, _get_path_end(row.user_file), row.user_code),
        )

    def describe(row: GraphBreak) -> str:
        where = format_place(row.user_file, row.user_line)
        return f"graph breaks{f' at {where}' if where else ''} ({format_line(row.reason or '?', 80)})"

    yield from _compare_groups("graph_break", group(before), group(after), describe)


def _compare_lookups(names: _SharedNames, before: Rows, after: Rows) -> Iterator[Change]:
    def group(data: Rows) -> Groups[CacheLookup]:
        return group_by(data.rows(CacheLookup), lambda row: (row.cache, row.tier, row.outcome))

    def is_bad(row: CacheLookup) -> bool | None:
        return None if row.outcome in NEUTRAL_OUTCOMES else row.outcome not in GOOD_OUTCOMES

    def describe(row: CacheLookup) -> str:
        return f"{describe_code(row.outcome)} of the {describe_code(row.cache)} cache ({row.tier})"

    yield from _compare_groups("cache", group(before), group(after), describe, is_bad=is_bad)


def _compare_winners(names: _SharedNames, before: Rows, after: Rows) -> Iterator[Change]:
    olds, news = _group_winners(before), _group_winners(after)
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


def _group_winners(data: Rows) -> Groups[AutotuneChoice]:
    winners = (row for row in data.rows(AutotuneChoice) if row.is_winner is True)
    return group_by(winners, lambda row: (format_op(row.op), tuple(map(str, row.inputs or ())), row.device))


def _compare_phases(names: _SharedNames, before: Rows, after: Rows) -> Iterator[Change]:
    old, new = (group_by(data.rows(Phase), lambda row: row.name) for data in (before, after))
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


_COMPARISONS: tuple[tuple[str, Callable[[_SharedNames, Rows, Rows], Iterable[Change]]], ...] = (
    ("compiles", _compare_compiles),
    ("recompiles", _compare_recompiles),
    ("refused_calls", _compare_refused),
    ("graph_breaks", _compare_graph_breaks),
    ("cache_lookups", _compare_lookups),
    ("autotune", _compare_winners),
    ("phases", _compare_phases),
)
