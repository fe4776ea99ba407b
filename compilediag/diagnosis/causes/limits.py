"""Functions that gave up: recompile limits."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from .. import wording
from ..costs import cost_of
from ..finding import Finding, merged
from ..rows import Row, first, ids, place_in, rows_of
from ..rules.break_even import make_eager_call_counter

COLUMNS = ("function", "file", "line", "limit")
_IN_SILENCE = "from here on it runs eagerly, in silence"
NOT_COUNTED = (
    " How many calls ran eagerly since is not counted: watch(calls=True) counts them, on Python 3.12 or later."
)
#: torch's defaults.
DEFAULT_LIMITS = {"recompile_limit": 8, "accumulated_recompile_limit": 256}


def limit_findings(tables: Any, causes: list[Finding]) -> list[Finding]:
    """One finding a function that hit a limit; `causes` are the recompile findings, to tie it to."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "compiles", COLUMNS):
        if row["limit"] is not None:
            groups[(row["file"], row["line"], row["function"], row["limit"])].append(row)
    eager = make_eager_call_counter(tables)
    return [
        _limit(key[-1], rows, _of_function(causes, rows[0]), eager(place_in(rows[0]))) for key, rows in groups.items()
    ]


def limits_hit(tables: Any, limit: str | None, places: tuple[Any, ...]) -> int:
    """How often these functions hit this limit."""
    rows = rows_of(tables, "compiles", COLUMNS)
    return sum(row["limit"] == limit and place_in(row) in places for row in rows)


def _of_function(causes: list[Finding], row: Row) -> list[Finding]:
    place = place_in(row)
    own = [c for c in causes if place in c.places]
    return sorted(own, key=lambda c: (-c.count, -c.seconds_lost, c.title))


def _limit(limit: str, rows: list[Row], causes: list[Finding], eager: str | None) -> Finding:
    function, file, line = (first(rows, name) for name in ("function", "file", "line"))
    name = wording.one_line(limit, 60)
    return Finding(
        rule="recompile_limit",
        severity="high",
        title=f"{wording.place(function, file, line)} hit {name}: {eager or _IN_SILENCE}",
        seconds_lost=sum(c.seconds_lost for c in causes),
        evidence=ids(rows),
        suggestion=_limit_advice(name, causes, eager is not None),
        cost=cost_of("recompile_limit"),
        fix=_limit_fix(limit, causes),
        function=function,
        file=file,
        line=line,
        count=len(rows),
        kind=limit,
        places=((function, file, line),),
    )


def _limit_advice(name: str, causes: list[Finding], is_counted: bool) -> str:
    raising = f"If all those variants are meant, raise torch._dynamo.config.{name}.{'' if is_counted else NOT_COUNTED}"
    if not causes:
        return f"What recompiled it was not observed. {raising}"
    top = "; ".join(c.title.partition(": ")[2] + f" ({wording.times(c.count)})" for c in causes[:2])
    return f"Mend what recompiled it: {top}. {raising}"


def _limit_fix(limit: str, causes: list[Finding]) -> dict[str, Any] | None:
    """The fixes of its causes; a higher limit only where none of them has one."""
    fix = merged(cause.fix for cause in causes)
    if fix or limit not in DEFAULT_LIMITS:
        return fix or None
    return {limit: 8 * DEFAULT_LIMITS[limit]}
