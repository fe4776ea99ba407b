"""Limits that a session has to keep, for `compilediag check` and the pytest plugin: which are broken, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from ..events import CacheLookup, Calls, Compile, GraphBreak, Recompile, Rows, SourceStatus
from ..formatting import (
    escape_lines,
    format_amount,
    format_first_line,
    format_function,
    format_line,
    format_names,
    format_place,
    format_seconds,
)
from . import diagnose
from .diff import find_changes
from .evidence import get_place, group_by, sum_seconds
from .incidents import Incident, count_incidents, find_incidents, find_warmup_ends
from .rules.break_even import make_eager_call_counter
from .rules.caches import is_loaded_code
from .rules.coverage import explain_gaps, map_collected

#: Causes that are listed for each broken limit.
SHOWN = 5
#: Kinds of changes against a baseline that are causes; the others are mere counts.
CAUSES = ("failure", "recompile", "graph_break")


@dataclass(frozen=True)
class Limits:
    """What is allowed; None allows anything. `baseline`: a session whose causes are known and allowed."""

    max_recompiles: int | None = None
    max_compile_s: float | None = None
    max_graph_breaks: int | None = None
    max_after_warmup: int | None = None
    no_silent_eager: bool = False
    baseline: Rows | None = None


@dataclass(frozen=True)
class Broken:
    """A limit that was not kept: what was found, in a sentence, and why, in lines."""

    title: str
    causes: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        hidden = len(self.causes) - SHOWN
        rest = [f"... and {hidden} more"] if hidden > 0 else []
        return escape_lines("\n".join([self.title, *(f"  {cause}" for cause in [*self.causes[:SHOWN], *rest])]))


def check(data: Rows, limits: Limits, must_compile: bool = True) -> list[Broken]:
    """Find the limits that a session breaks, none if it passes.

    A limit whose table was not collected does not pass, nor does, with `must_compile`, a session in which no compiled
    code was made or loaded.
    """
    if must_compile and not data.rows(Compile) and not any(map(is_loaded_code, data.rows(CacheLookup))):
        return [Broken("nothing was compiled, so the limits cannot be checked", _list_gaps(data))]
    return [broken for check_limit in _CHECKS for broken in check_limit(data, limits)]


def _list_gaps(data: Rows) -> list[str]:
    return [f"not collected: {what}: {why}" for what, why in explain_gaps(data).items()]


def explain_no_warmup(data: Rows, limits: Limits) -> str | None:
    """Why the limit on what compiles after the warm-up can't be checked; None if it can, or if there is none."""
    if limits.max_after_warmup is None:
        return None
    ended = {row.rank for row in find_warmup_ends(data)}
    late = sorted({row.rank for row in data.rows(Compile) if row.rank is not None} - ended)
    if ended and not late:
        return None
    whose = f" of rank {format_names([str(rank) for rank in late])}" if ended else ""
    return (
        f"the warm-up{whose} never ended, so what compiled after it can't be checked; call session.end_warmup(), or "
        "pass warmup_steps=N to watch() and call cd.step()"
    )


def _check_after_warmup(data: Rows, limits: Limits) -> Iterator[Broken]:
    if limits.max_after_warmup is None:
        return
    missing = explain_no_warmup(data, limits)
    if missing is not None:
        yield Broken(missing)
        return
    alone = [one for one in find_incidents(data) if one.part_of is None]
    count = count_incidents(alone)
    if count > limits.max_after_warmup:
        title = f"{format_amount(count, 'incident')} after the warm-up, at most {limits.max_after_warmup} allowed:"
        yield Broken(title, [_describe_incident(one) for one in alone])


def _describe_incident(incident: Incident) -> str:
    inputs = f"\n    the warm-up lacks {incident.inputs}" if incident.inputs else ""
    return f"{format_line(incident, 300)}{inputs}"


def _check_coverage(data: Rows, limits: Limits) -> Iterator[Broken]:
    """The limits that cannot be checked because their table was not collected."""
    collected = map_collected(data.rows(SourceStatus))
    has_baseline = limits.baseline is not None
    after_warmup = limits.max_after_warmup is not None
    needed = {
        "recompiles": limits.max_recompiles is not None or has_baseline or after_warmup,
        "compiles": limits.max_compile_s is not None or limits.no_silent_eager or has_baseline or after_warmup,
        "graph_breaks": limits.max_graph_breaks is not None or has_baseline,
    }
    for table, is_needed in needed.items():
        if is_needed and not collected[table]:
            name = table.replace("_", " ")
            yield Broken(f"{name} were not collected, so their limit cannot be checked", _list_gaps(data))


def _check_recompiles(data: Rows, limits: Limits) -> Iterator[Broken]:
    rows = data.rows(Recompile)
    if limits.max_recompiles is not None and len(rows) > limits.max_recompiles:
        ids = {row.event_id for row in rows}
        causes = [f"{found.title}\n    {found.suggestion}" for found in diagnose(data) if ids & {*found.evidence}]
        yield Broken(f"{format_amount(len(rows), 'recompile')}, at most {limits.max_recompiles} allowed:", causes)


def _check_compile_seconds(data: Rows, limits: Limits) -> Iterator[Broken]:
    compiles = data.rows(Compile)
    total = sum_seconds(row.duration_s for row in compiles)
    if limits.max_compile_s is not None and total > limits.max_compile_s:
        by_function = group_by(compiles, _format_function)
        sums = {name: sum_seconds(row.duration_s for row in rows) for name, rows in by_function.items()}
        causes = [
            f"{name}: {format_seconds(sums[name])} in {format_amount(len(by_function[name]), 'compile')}"
            for name in sorted(sums, key=lambda name: -sums[name])
        ]
        allowed = format_seconds(limits.max_compile_s)
        yield Broken(f"{format_seconds(total)} compiling, at most {allowed} allowed:", causes)


def _check_graph_breaks(data: Rows, limits: Limits) -> Iterator[Broken]:
    rows = data.rows(GraphBreak)
    if limits.max_graph_breaks is not None and len(rows) > limits.max_graph_breaks:
        title = f"{format_amount(len(rows), 'graph break')}, at most {limits.max_graph_breaks} allowed:"
        yield Broken(title, list(dict.fromkeys(map(_describe_break, rows))))


def _describe_break(row: GraphBreak) -> str:
    where = format_place(row.user_file, row.user_line) or "unknown line"
    return f"{where}: {format_line(row.user_code or '', 60)} ({format_line(row.reason or 'no reason', 100)})"


def _check_silent_eager(data: Rows, limits: Limits) -> Iterator[Broken]:
    """Functions that fall back to eager at some call, or did so before this session began."""
    if not limits.no_silent_eager:
        return
    count_calls = make_eager_call_counter(data)
    given_up = [row for row in data.rows(Compile) if row.outcome in ("failed", "skipped") or row.limit]
    if given_up:
        causes = (
            ": ".join(filter(None, (_format_function(row), _explain_eager(row), count_calls(get_place(row)))))
            for row in given_up
        )
        title = f"{format_amount(len(given_up), 'compile')} failed, so the function falls back to eager:"
        yield Broken(title, list(dict.fromkeys(causes)))
    known = {get_place(row) for row in given_up}
    places = {get_place(row) for row in data.rows(Calls) if row.ran == "eager"} - known
    if places:
        causes = (f"{format_function(*place)}: {count_calls(place)}" for place in sorted(places, key=str))
        who = format_amount(len(places), "function runs", "functions run")
        yield Broken(f"{who} eagerly since before this session began:", [*causes])


def _format_function(row: Compile) -> str:
    return format_function(*get_place(row))


def _explain_eager(row: Compile) -> str:
    return f"it hit {row.limit}" if row.limit else format_first_line(row.fail_reason or "no reason was given", 100)


def _check_baseline(data: Rows, limits: Limits) -> Iterator[Broken]:
    if limits.baseline is None:
        return
    changes = find_changes(limits.baseline, data)
    new = [change.title for change in changes if change.kind in CAUSES and change.change == "new"]
    if new:
        yield Broken(f"{format_amount(len(new), 'cause')} not in the baseline:", new)


_CHECKS: tuple[Callable[[Rows, Limits], Iterable[Broken]], ...] = (
    _check_coverage,
    _check_recompiles,
    _check_compile_seconds,
    _check_graph_breaks,
    _check_after_warmup,
    _check_silent_eager,
    _check_baseline,
)
