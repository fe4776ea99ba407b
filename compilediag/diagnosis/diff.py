"""What is different between two sessions: failures, recompiles by cause, graph breaks, compiles, look-ups, phases.

The two may come from other machines and other revisions of a program: a function is the same if its name and the end of
its file's path are, and of several of one name in a file (lambdas) the first is told against the first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..events import SourceStatus
from . import wording
from .rows import Row, first, ids, place_in, rows_of, seconds
from .rules import coverage

#: What a change can be of, in the order in which they are told.
KINDS = ("failure", "recompile", "graph_break", "compile", "cache", "autotune", "phase")
#: Seconds that differ by less than this, or by a smaller share, are noise.
FLOOR_S, SHARE = 0.1, 0.2
#: Outcomes of a look-up of which fewer are worse.
GOOD = ("hit",)
#: Outcomes of which there are as many as there was something to keep: neither better nor worse.
NEITHER = ("saved", "written")
PLACE = ("function", "file", "line")

Key = tuple[Hashable, ...]
Groups = dict[Key, list[Row]]


@dataclass(frozen=True)
class Change:
    """One difference. `change`: new, gone, more, fewer, slower, faster or other.

    `before` and `after` are numbers or names; `seconds_more` is what it costs more now, None if it has no time. `worse`
    is None of what is neither better nor worse. Evidence: event ids in the one and in the other session.
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


def changes(before: Any, after: Any) -> list[Change]:
    """All differences of two sessions: what got worse first, by kind, the costly ones first.

    A table that either of them did not observe is left out: see `uncompared`.
    """
    left_out, names = uncompared(before, after), _Names(before, after)
    found = [
        change for table, compare in _COMPARISONS if table not in left_out for change in compare(names, before, after)
    ]
    return sorted(found, key=lambda c: (c.worse is not True, KINDS.index(c.kind), -abs(c.seconds_more or 0.0), c.title))


def uncompared(before: Any, after: Any) -> dict[str, str]:
    """Table -> why it can't be compared: which of the two did not observe it. Those that both lack are not listed."""
    seen = [coverage.map_collected(tables.rows(SourceStatus)) for tables in (before, after)]
    gaps = {}
    for table in coverage.FEEDS:
        lacking = [name for name, observed in zip(("before", "after"), seen, strict=True) if not observed[table]]
        if len(lacking) == 1:
            gaps[table] = f"not observed {lacking[0]}"
    return gaps


class _Names:
    """Names of functions that both sessions share."""

    def __init__(self, before: Any, after: Any):
        one, other = _lines(before), _lines(after)
        self._before: dict[tuple[str, str], dict[int, int]] = {}
        self._after: dict[tuple[str, str], dict[int, int]] = {}
        for name in {**one, **other}:
            self._before[name], self._after[name] = _paired(one.get(name, set()), other.get(name, set()))

    def before(self, row: Row) -> Key:
        return (*_name(row), self._before[_name(row)].get(row["line"] or 0))

    def after(self, row: Row) -> Key:
        return (*_name(row), self._after[_name(row)].get(row["line"] or 0))


def _lines(tables: Any) -> dict[tuple[str, str], set[int]]:
    """The lines at which functions of one name in one file begin."""
    lines: dict[tuple[str, str], set[int]] = defaultdict(set)
    for table in ("compiles", "recompiles"):
        for row in rows_of(tables, table, PLACE):
            lines[_name(row)].add(row["line"] or 0)
    return lines


def _paired(one: set[int], other: set[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Line -> number, the same number for what is the same: as many functions in order, else those at the same line."""
    common = one & other if len(one) != len(other) else set()
    orders = ([*sorted(common), *sorted(lines - common)] for lines in (one, other))
    first_, second = ({line: number for number, line in enumerate(order)} for order in orders)
    return first_, second


def _name(row: Row) -> tuple[str, str]:
    return row["function"] or "", _tail(row["file"])


def _tail(path: str | None) -> str:
    """The end of a path, which two checkouts share."""
    return "/".join((path or "").replace("\\", "/").split("/")[-2:])


def _grouped(rows: Iterable[Row], key: Callable[[Row], Key]) -> Groups:
    groups: Groups = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups


def _counted(
    kind: str,
    before: Groups,
    after: Groups,
    told: Callable[[Row], str],
    timed: str | None = None,
    worse: Callable[[Row], bool | None] = lambda row: True,
) -> Iterable[Change]:
    """A change for each group with another number of rows, or with other seconds in the column `timed`."""
    for key in {**before, **after}:
        old, new = before.get(key, []), after.get(key, [])
        spent = [seconds(row[timed] for row in rows) if timed else 0.0 for rows in (old, new)]
        change = _change(len(old), len(new)) or (_pace(*spent) if timed else None)
        if change is None:
            continue
        some = (new or old)[-1]
        more = spent[1] - spent[0] if timed else None
        grew, bad = change in ("new", "more", "slower"), worse(some)
        yield Change(
            kind=kind,
            change=change,
            title=f"{told(some)}: {len(old)} -> {len(new)}{_more(more)}",
            before=str(len(old)),
            after=str(len(new)),
            seconds_more=more,
            worse=None if bad is None else grew == bad,
            evidence_before=ids(old),
            evidence_after=ids(new),
            **{name: some.get(name) for name in PLACE},
        )


def _change(old: int, new: int) -> str | None:
    if old == new:
        return None
    if not old or not new:
        return "new" if new else "gone"
    return "more" if new > old else "fewer"


def _pace(old: float, new: float) -> str | None:
    if abs(new - old) < max(FLOOR_S, SHARE * old):
        return None
    return "slower" if new > old else "faster"


def _more(more: float | None) -> str:
    return "" if more is None or abs(more) < 0.005 else f", {'+' if more > 0 else '-'}{wording.spent(abs(more))}"


def _compiles(names: _Names, before: Any, after: Any) -> Iterable[Change]:
    columns = (*PLACE, "duration_s", "outcome", "limit")
    one, other = rows_of(before, "compiles", columns), rows_of(after, "compiles", columns)
    yield from _counted("compile", _grouped(one, names.before), _grouped(other, names.after), _compiled, "duration_s")
    failed = _grouped(filter(_failure, one), lambda row: (*names.before(row), _failure(row)))
    fails = _grouped(filter(_failure, other), lambda row: (*names.after(row), _failure(row)))
    yield from _counted("failure", failed, fails, lambda row: f"{_place(row)} {_failure(row)}")


def _failure(row: Row) -> str | None:
    return f"hit {row['limit']}" if row["limit"] else "failed to compile" if row["outcome"] == "failed" else None


def _compiled(row: Row) -> str:
    return f"compiles of {_place(row)}"


def _recompiles(names: _Names, before: Any, after: Any) -> Iterable[Change]:
    def groups(tables: Any, name: Callable[[Row], Key]) -> Groups:
        rows = rows_of(tables, "recompiles", (*PLACE, "guard_kind", "guard_source", "lost_s"))
        return _grouped(rows, lambda row: (*name(row), row["guard_kind"], row["guard_source"]))

    def told(row: Row) -> str:
        cause = wording.spoken(row["guard_source"]) if row["guard_source"] else "an unknown guard"
        return f"recompiles of {_place(row)} for {cause} ({(row['guard_kind'] or 'other').replace('_', ' ')})"

    yield from _counted("recompile", groups(before, names.before), groups(after, names.after), told, "lost_s")


def _graph_breaks(names: _Names, before: Any, after: Any) -> Iterable[Change]:
    columns = ("break_id", "reason", "user_file", "user_line", "user_code")

    def groups(tables: Any) -> Groups:
        rows = rows_of(tables, "graph_breaks", columns)
        return _grouped(rows, lambda row: (row["break_id"] or row["reason"], _tail(row["user_file"]), row["user_code"]))

    def told(row: Row) -> str:
        where = wording.position(row["user_file"], row["user_line"])
        return f"graph breaks{f' at {where}' if where else ''} ({wording.one_line(row['reason'] or '?', 80)})"

    yield from _counted("graph_break", groups(before), groups(after), told)


def _lookups(names: _Names, before: Any, after: Any) -> Iterable[Change]:
    def groups(tables: Any) -> Groups:
        rows = rows_of(tables, "cache_lookups", ("cache", "tier", "outcome"))
        return _grouped(rows, lambda row: (row["cache"], row["tier"], row["outcome"]))

    def told(row: Row) -> str:
        return f"{row['outcome']} of {row['cache']}, {row['tier']}"

    yield from _counted("cache", groups(before), groups(after), told, worse=_is_bad)


def _is_bad(lookup: Row) -> bool | None:
    return None if lookup["outcome"] in NEITHER else lookup["outcome"] not in GOOD


def _winners(names: _Names, before: Any, after: Any) -> Iterable[Change]:
    def winners(tables: Any) -> Mapping[Key, list[Row]]:
        rows = rows_of(tables, "autotune", ("op", "inputs", "choice", "time_ms", "is_winner", "device"))
        return _grouped(
            (row for row in rows if row["is_winner"] is True),
            lambda row: (row["op"], tuple(map(str, row["inputs"] or ())), row["device"]),
        )

    earlier, later = winners(before), winners(after)
    for key in earlier.keys() & later.keys():
        one, other = earlier[key][-1], later[key][-1]
        if one["choice"] == other["choice"]:
            continue
        times = [row["time_ms"] for row in (one, other)]
        told = f" ({times[0]:.4g} -> {times[1]:.4g} ms)" if None not in times else ""
        yield Change(
            kind="autotune",
            change="other",
            title=f"winner of {key[0]} ({wording.one_line(', '.join(key[1]), 80)}): "
            f"{one['choice']} -> {other['choice']}{told}",
            before=str(one["choice"]),
            after=str(other["choice"]),
            seconds_more=None,
            worse=None if None in times else times[1] > times[0] * (1 + SHARE) or None,
            evidence_before=ids(earlier[key]),
            evidence_after=ids(later[key]),
        )


def _phases(names: _Names, before: Any, after: Any) -> Iterable[Change]:
    one, other = (
        _grouped(rows_of(tables, "phases", ("name", "duration_s")), lambda row: (row["name"],))
        for tables in (before, after)
    )
    for key in {**one, **other}:
        rows = one.get(key, []), other.get(key, [])
        spent = [seconds(row["duration_s"] for row in of) for of in rows]
        change = _pace(*spent)
        if change is not None:
            told = f"phase {first(rows[1] or rows[0], 'name')}"
            yield Change(
                kind="phase",
                change=change,
                title=f"{told}: {wording.spent(spent[0])} -> {wording.spent(spent[1])}",
                before=f"{spent[0]:.3f}",
                after=f"{spent[1]:.3f}",
                seconds_more=spent[1] - spent[0],
                worse=change == "slower",
                evidence_before=ids(rows[0])[-20:],
                evidence_after=ids(rows[1])[-20:],
            )


def _place(row: Row) -> str:
    return wording.place(*place_in(row))


def counts(tables: Any) -> Counter[str]:
    """How many compiles, recompiles, graph_breaks and processes a session has, and compile_s."""
    compiles = rows_of(tables, "compiles", ("duration_s",))
    found = Counter({t: len(rows_of(tables, t, ())) for t in ("recompiles", "graph_breaks")}, compiles=len(compiles))
    found["processes"] = len({(row["rank"], row["pid"]) for row in compiles})
    found["compile_s"] = seconds(row["duration_s"] for row in compiles)  # type: ignore[assignment]
    return found


_COMPARISONS: tuple[tuple[str, Callable[[_Names, Any, Any], Iterable[Change]]], ...] = (
    ("compiles", _compiles),
    ("recompiles", _recompiles),
    ("graph_breaks", _graph_breaks),
    ("cache_lookups", _lookups),
    ("autotune", _winners),
    ("phases", _phases),
)
