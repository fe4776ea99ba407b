"""Findings of functions that reached a recompile limit and run eagerly since."""

from __future__ import annotations

from collections.abc import Collection

from ...events import Compile, Rows
from ...formatting import format_function, format_line, format_times
from ..costs import get_cost
from ..evidence import Place, get_ids, get_place, group_by
from ..finding import Finding
from ..rules.break_even import make_eager_call_counter
from ..settings import Settings, merge_fixes
from .advice import list_changes

#: torch's defaults.
DEFAULT_LIMITS = {"recompile_limit": 8, "accumulated_recompile_limit": 256}
#: A limit is raised by this factor where none of the causes has a fix.
_RAISE_BY = 8
_NOT_COUNTED = " Its eager calls were not counted; watch(calls=True) counts them, on Python 3.12 or later."


def find_limits(data: Rows, causes: list[Finding]) -> list[Finding]:
    """One finding per function and limit that it hit; `causes` are the findings of its recompiles."""
    hits = [row for row in data.rows(Compile) if row.limit is not None]
    describe_eager = make_eager_call_counter(data)
    found = []
    for (place, limit), rows in group_by(hits, lambda row: (get_place(row), row.limit or "")).items():
        found.append(_make_finding(limit, rows, _select_causes(causes, place), describe_eager(place)))
    return found


def count_limit_hits(data: Rows, limit: str | None, places: Collection[Place]) -> int:
    """Count how often these functions hit this limit."""
    return sum(row.limit == limit and get_place(row) in places for row in data.rows(Compile))


def _select_causes(causes: list[Finding], place: Place) -> list[Finding]:
    """The findings of one function, the most frequent first."""
    own = [cause for cause in causes if place in cause.places]
    return sorted(own, key=lambda cause: (-cause.count, -cause.seconds_lost, cause.title))


def _make_finding(limit: str, rows: list[Compile], causes: list[Finding], eager: str | None) -> Finding:
    function, file, line = place = get_place(rows[0])
    name = format_line(limit, 60)
    fix = _choose_fix(limit, causes)
    return Finding(
        rule="recompile_limit",
        severity="high",
        title=f"{format_function(*place)} hit {name}: {eager or 'it silently runs eagerly from then on'}",
        seconds_lost=sum(cause.seconds_lost for cause in causes),
        evidence=get_ids(rows),
        suggestion=_write_suggestion(name, causes) + (_NOT_COUNTED if eager is None else ""),
        cost=get_cost("recompile_limit"),
        fix=fix,
        changes=list_changes(fix),
        function=function,
        file=file,
        line=line,
        count=len(rows),
        kind=limit,
        places=(place,),
    )


def _write_suggestion(name: str, causes: list[Finding]) -> str:
    raise_it = f"torch._dynamo.config.{name} only if all those compiled versions are intended."
    if not causes:
        return f"Raise {raise_it} What recompiled it was not collected."
    top = "; ".join(f"{cause.what_changed} ({format_times(cause.count)})" for cause in causes[:2])
    return f"Fix what recompiles it: {top}. Raise {raise_it}"


def _choose_fix(limit: str, causes: list[Finding]) -> Settings | None:
    """The fixes of its causes; a higher limit only where all of them are expected, so that each version is needed."""
    fix = merge_fixes(cause.fix for cause in causes)
    if fix or limit not in DEFAULT_LIMITS or not all(cause.is_expected for cause in causes):
        return fix or None
    return {limit: _RAISE_BY * DEFAULT_LIMITS[limit]}
