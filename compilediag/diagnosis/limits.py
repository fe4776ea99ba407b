"""Functions that gave up: recompile limits, and compiles that failed."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from . import wording
from .costs import cost_of
from .finding import Finding, merged, severity_of
from .rows import Row, first, ids, is_timed, place_in, rows_of, seconds

COLUMNS = ("function", "file", "line", "outcome", "duration_s", "fail_type", "fail_reason", "limit")
#: What torch says of a frame that it leaves to Python.
_TO_EAGER, _IN_LOOP = "falling back to eager", "graph break in loop"
#: torch's defaults.
DEFAULT_LIMITS = {"recompile_limit": 8, "accumulated_recompile_limit": 256}


def limit_findings(tables: Any, causes: list[Finding]) -> list[Finding]:
    """One finding a function that hit a limit; `causes` are the recompile findings, to tie it to."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "compiles", COLUMNS):
        if row["limit"] is not None:
            groups[(row["file"], row["line"], row["function"], row["limit"])].append(row)
    return [_limit(key[-1], rows, _of_function(causes, rows[0])) for key, rows in groups.items()]


def limits_hit(tables: Any, limit: str | None, places: tuple[Any, ...]) -> int:
    """How often these functions hit this limit."""
    rows = rows_of(tables, "compiles", COLUMNS)
    return sum(row["limit"] == limit and place_in(row) in places for row in rows)


def _of_function(causes: list[Finding], row: Row) -> list[Finding]:
    place = place_in(row)
    own = [c for c in causes if place in c.places]
    return sorted(own, key=lambda c: (-c.count, -c.seconds_lost, c.title))


def _limit(limit: str, rows: list[Row], causes: list[Finding]) -> Finding:
    function, file, line = (first(rows, name) for name in ("function", "file", "line"))
    name = wording.one_line(limit, 60)
    return Finding(
        rule="recompile_limit",
        severity="high",
        title=f"{wording.place(function, file, line)} hit {name}: from here on it runs eagerly, in silence",
        seconds_lost=sum(c.seconds_lost for c in causes),
        evidence=ids(rows),
        suggestion=_limit_advice(name, causes),
        cost=cost_of("recompile_limit"),
        fix=_limit_fix(limit, causes),
        function=function,
        file=file,
        line=line,
        count=len(rows),
        kind=limit,
        places=((function, file, line),),
    )


def _limit_advice(name: str, causes: list[Finding]) -> str:
    raising = (
        f"If all those variants are meant, raise torch._dynamo.config.{name}. How many calls ran eagerly since is not "
        "counted."
    )
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


def failure_findings(tables: Any) -> list[Finding]:
    """Compiles that ended in an exception, one finding a function and exception."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows_of(tables, "compiles", COLUMNS):
        if row["outcome"] == "failed" and row["limit"] is None:
            reason = _error_line(row["fail_reason"] or "")
            groups[(row["file"], row["line"], row["function"], row["fail_type"], reason)].append(row)
    return [
        _eager(rows) if _TO_EAGER in (first(rows, "fail_reason") or "") else _failure(*key[-2:], rows)
        for key, rows in groups.items()
    ]


def _error_line(reason: str) -> str:
    """The first line, and the one after it where the first only announces it."""
    lines = [line.strip() for line in reason[:2000].splitlines() if line.strip()]
    announced = len(lines) > 1 and lines[0].endswith(":")
    return wording.one_line(" ".join(lines[: 2 if announced else 1]), 160)


def _eager(rows: list[Row]) -> Finding:
    """A function that torch gave up on: a graph break where it can't go on after one."""
    function, file, line = (first(rows, name) for name in ("function", "file", "line"))
    text = first(rows, "fail_reason") or ""
    reason = wording.first_line(text) or "no reason was given"
    loop = ", in a loop" if _IN_LOOP in text else ""
    advice = "torch goes on after a graph break, but not inside of a loop, a with block or a try block"
    return Finding(
        rule="runs_eagerly",
        severity="medium",
        title=f"{wording.place(function, file, line)} is not compiled and runs eagerly: {reason}{loop}",
        seconds_lost=seconds(row["duration_s"] for row in rows),
        evidence=ids(rows),
        suggestion=f"{advice}: take that call out of it, or put what is inside into a function of its own, which is "
        "then compiled by itself. torch.compile(fullgraph=True) raises instead.",
        function=function,
        file=file,
        line=line,
        count=len(rows),
        details=(reason,),
    )


def _failure(fail_type: str | None, reason: str, rows: list[Row]) -> Finding:
    function, file, line = (first(rows, name) for name in ("function", "file", "line"))
    spent = seconds(row["duration_s"] for row in rows)
    timed = sum(is_timed(row["duration_s"]) for row in rows)
    error = ": ".join(part for part in (wording.one_line(fail_type or "", 80), reason) if part) or "no reason was given"
    return Finding(
        rule="compile_failed",
        severity="high" if len(rows) > 1 else severity_of(max(spent, 1.0), 1),
        title=f"{wording.place(function, file, line)} failed to compile {wording.times(len(rows))}, "
        f"{wording.lost(spent, timed, len(rows))}: {error}",
        seconds_lost=spent,
        evidence=ids(rows),
        suggestion="The exception is torch's or the backend's own. To find the step that fails, compile with "
        'backend="eager", then backend="aot_eager".',
        function=function,
        file=file,
        line=line,
        count=len(rows),
        details=(error,),
    )
