"""Limits that a session has to keep, for `compilediag check` and the pytest plugin, and what broke them and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ..events import SourceStatus
from . import diagnose
from .diff import changes, counts
from .rows import Row, place_in, rows_of, seconds
from .rules.break_even import make_eager_call_counter
from .rules.coverage import explain_gaps, map_collected
from .wording import counted, first_line, one_line, place, position, spent

#: Causes that are told of each limit that is broken.
SHOWN = 5
#: Changes against a baseline that are causes, and no mere counts.
CAUSES = ("failure", "recompile", "graph_break")


@dataclass(frozen=True)
class Limits:
    """What is allowed; None allows anything. `baseline`: a session with the causes that are known."""

    max_recompiles: int | None = None
    max_compile_s: float | None = None
    max_graph_breaks: int | None = None
    no_silent_eager: bool = False
    baseline: Any = None

    @property
    def are_any(self) -> bool:
        return self != Limits()


@dataclass(frozen=True)
class Broken:
    """A limit that was not kept: what was found in a sentence, and why in lines."""

    title: str
    causes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        hidden = len(self.causes) - SHOWN
        rest = [f"... and {hidden} more"] if hidden > 0 else []
        return "\n".join([self.title, *(f"  {cause}" for cause in [*self.causes[:SHOWN], *rest])])


def check(session: Any, limits: Limits, must_compile: bool = True) -> list[Broken]:
    """The limits that `session` breaks, none if it passes.

    What was not observed does not pass: neither a limit whose table was not watched nor, with `must_compile`, a session
    in which nothing was compiled.
    """
    compiles = rows_of(
        session, "compiles", ("function", "file", "line", "duration_s", "outcome", "fail_reason", "limit")
    )
    if must_compile and not compiles:
        return [Broken("nothing was compiled: nothing observed is not a pass", list(_gaps(session)))]
    broken = list(_blind(session, limits))
    for limit in (_recompiles, _compile_seconds, _graph_breaks, _silent_eager, _new_causes):
        broken += limit(session, limits, compiles)
    return broken


def totals(session: Any) -> str:
    """The session in a few words."""
    found = counts(session)
    parts = [
        counted(found["compiles"], "compile", "compiles"),
        counted(found["recompiles"], "recompile", "recompiles"),
        counted(found["graph_breaks"], "graph break", "graph breaks"),
        f"{spent(found['compile_s'])} compiling",
    ]
    return ", ".join(parts)


def _gaps(session: Any) -> Iterator[str]:
    yield from (f"not observed: {what}: {why}" for what, why in explain_gaps(session).items())


def _blind(session: Any, limits: Limits) -> Iterator[Broken]:
    """The limits that nobody can say of whether they were kept."""
    seen = map_collected(session.rows(SourceStatus))
    needed = {
        "recompiles": limits.max_recompiles is not None or limits.baseline is not None,
        "compiles": limits.max_compile_s is not None or limits.no_silent_eager or limits.baseline is not None,
        "graph_breaks": limits.max_graph_breaks is not None or limits.baseline is not None,
    }
    for table, is_needed in needed.items():
        if is_needed and not seen[table]:
            yield Broken(f"{table.replace('_', ' ')} were not observed: that is not a pass", list(_gaps(session)))


def _recompiles(session: Any, limits: Limits, compiles: list[Row]) -> Iterable[Broken]:
    rows = rows_of(session, "recompiles", ())
    if limits.max_recompiles is not None and len(rows) > limits.max_recompiles:
        ids = {row["event_id"] for row in rows}
        causes = [f"{f.title}\n    {f.suggestion}" for f in diagnose(session) if ids & {*f.evidence}]
        yield Broken(f"{_found(len(rows), 'recompile', 'recompiles')} {limits.max_recompiles} allowed:", causes)


def _compile_seconds(session: Any, limits: Limits, compiles: list[Row]) -> Iterable[Broken]:
    taken = seconds(row["duration_s"] for row in compiles)
    if limits.max_compile_s is not None and taken > limits.max_compile_s:
        by_function: dict[str, list[float]] = {}
        for row in compiles:
            by_function.setdefault(_place(row), []).append(row["duration_s"] or 0.0)
        longest = sorted(by_function.items(), key=lambda item: -sum(item[1]))
        told = [f"{name}: {spent(sum(of))} in {counted(len(of), 'compile', 'compiles')}" for name, of in longest]
        yield Broken(f"{spent(taken)} compiling, at most {limits.max_compile_s:g} s allowed:", told)


def _graph_breaks(session: Any, limits: Limits, compiles: list[Row]) -> Iterable[Broken]:
    rows = rows_of(session, "graph_breaks", ("reason", "user_file", "user_line", "user_code"))
    if limits.max_graph_breaks is not None and len(rows) > limits.max_graph_breaks:
        found = [
            f"{position(row['user_file'], row['user_line']) or 'unknown line'}: {one_line(row['user_code'] or '', 60)}"
            f" ({one_line(row['reason'] or 'no reason', 100)})"
            for row in rows
        ]
        title = f"{_found(len(rows), 'graph break', 'graph breaks')} {limits.max_graph_breaks} allowed:"
        yield Broken(title, list(dict.fromkeys(found)))


def _silent_eager(session: Any, limits: Limits, compiles: list[Row]) -> Iterable[Broken]:
    """Functions that were to be compiled and run eagerly from some call on, or gave up before this was watched."""
    if not limits.no_silent_eager:
        return
    eager = [row for row in compiles if row["outcome"] in ("failed", "skipped") or row["limit"]]
    since = make_eager_call_counter(session)
    if eager:
        told = [": ".join(filter(None, (_place(row), _why_eager(row), since(place_in(row))))) for row in eager]
        title = f"{counted(len(eager), 'compile', 'compiles')} given up, so that the function runs eagerly:"
        yield Broken(title, list(dict.fromkeys(told)))
    known = {_place(row) for row in eager}
    rows = rows_of(session, "calls", ("function", "file", "line", "ran"))
    ran = [row for row in rows if row["ran"] == "eager" and _place(row) not in known]
    before = {_place(row): since(place_in(row)) for row in ran}
    if before:
        title = f"{counted(len(before), 'function runs', 'functions run')} eagerly, given up before this was watched:"
        yield Broken(title, [f"{name}: {words}" for name, words in before.items()])


def _place(row: Row) -> str:
    return place(row["function"], row["file"], row["line"])


def _why_eager(row: Row) -> str:
    return f"it hit {row['limit']}" if row["limit"] else first_line(row["fail_reason"] or "no reason told", 100)


def _new_causes(session: Any, limits: Limits, compiles: list[Row]) -> Iterable[Broken]:
    if limits.baseline is not None:
        new = [c for c in changes(limits.baseline, session) if c.kind in CAUSES and c.change == "new"]
        if new:
            yield Broken(f"{counted(len(new), 'cause', 'causes')} that the baseline lacks:", [c.title for c in new])


def _found(number: int, one: str, many: str) -> str:
    return f"{counted(number, one, many)}, at most"
