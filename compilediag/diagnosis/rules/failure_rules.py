"""Functions that are not compiled: compiles that failed, and those that torch left to Python."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .. import wording
from ..finding import Finding, severity_of
from ..rows import Place, Row, compile_key, first, ids, is_timed, place_in, rows_of, seconds
from .break_even import eager_words

COLUMNS = ("function", "file", "line", "outcome", "duration_s", "fail_type", "fail_reason", "limit", "is_recompile")
#: What torch says of a frame that it leaves to Python.
_TO_EAGER, _IN_LOOP = "falling back to eager", "graph break in loop"
#: torch's sentence on a mark that the code does not allow, and its hints.
_MARKED = re.compile(r"^\s*- (You marked [^\n]*)", re.M)
_HINT = re.compile(r"^  Hint: ([^\n]*)", re.M)
_NO_LONGER = (
    "At one of these calls nothing was left to compile, and with that torch leaves the function to Python for good: "
    "its compiled code is no longer used, in silence."
)
#: Files of torch, and code that is in no file.
_NOT_USERS = re.compile(r"[\\/]torch[\\/]\w+[\\/]|^<")


def failure_findings(tables: Any) -> list[Finding]:
    """Compiles that ended in an exception, one finding a function and exception."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    eager = eager_words(tables)
    for row in rows_of(tables, "compiles", COLUMNS):
        if row["outcome"] == "failed" and row["limit"] is None:
            reason = _error_line(row["fail_reason"] or "")
            groups[(row["file"], row["line"], row["function"], row["fail_type"], reason)].append(row)
    return [
        _eager(rows, eager(place_in(rows[0]))) if _runs_eagerly(rows) else _failure(*key[-2:], rows)
        for key, rows in groups.items()
    ]


def with_empty(tables: Any, recompiled: list[Finding]) -> list[Finding]:
    """`recompiled`, the findings of recompiles, and functions that torch leaves to Python for good, as one call had
    nothing to compile: it takes that for all calls, and drops what it compiled before.

    Where that call was a recompile, its cause tells it. A function's first call is told only where there is no graph
    break: what is called behind one is compiled by itself, and often has nothing to compile.
    """
    rows = [row for row in rows_of(tables, "compiles", COLUMNS) if row["outcome"] == "empty" and _is_users(row)]
    if not rows:
        return recompiled
    moments = {compile_key(row) for row in rows if row["is_recompile"]}
    events = {row["event_id"] for row in rows_of(tables, "recompiles", ()) if compile_key(row) in moments}
    eager = eager_words(tables)
    told = [_with_end(found, eager) if events & {*found.evidence} else found for found in recompiled]
    if rows_of(tables, "graph_breaks", ("reason",)):
        return told
    groups: dict[Place, list[Row]] = defaultdict(list)
    for row in rows:
        if not row["is_recompile"]:
            groups[(row["function"], row["file"], row["line"])].append(row)
    return told + [_empty(place, rows) for place, rows in groups.items()]


def _is_users(row: Row) -> bool:
    return not wording.is_resumed(row["function"]) and not _NOT_USERS.search(row["file"] or "")


def _with_end(finding: Finding, eager: Callable[[Place], str | None]) -> Finding:
    """A recompile that had nothing to compile: the last of its function."""
    severity = "medium" if finding.severity == "low" else finding.severity
    since = [words for place in finding.places if (words := eager(place)) is not None]
    told = f" ({'; '.join(since)}.)" if since else ""
    return replace(finding, severity=severity, suggestion=f"{finding.suggestion} {_NO_LONGER}{told}")


def _empty(place: Place, rows: list[Row]) -> Finding:
    return Finding(
        rule="nothing_to_compile",
        severity="low",
        title=f"{wording.place(*place)} runs eagerly, in silence: its first call had nothing to compile",
        seconds_lost=seconds(row["duration_s"] for row in rows),
        evidence=ids(rows),
        suggestion="A call that does nothing with tensors, such as one that gives back its input, switches "
        "torch.compile off for that function: decide outside of it whether there is something to do, or do it at "
        "each call, with a neutral value if need be.",
        function=place[0],
        file=place[1],
        line=place[2],
        count=len(rows),
        places=(place,),
    )


def _runs_eagerly(rows: list[Row]) -> bool:
    """True if torch left the function to Python: it says so, or it met a graph break and was not asked again, as it is
    with fullgraph=True.
    """
    told = _TO_EAGER in (first(rows, "fail_reason") or "")
    return told or (len(rows) == 1 and _is_break(rows))


def _is_break(rows: list[Row]) -> bool:
    return (first(rows, "fail_type") or "").rpartition(".")[2] == "Unsupported"


def _error_line(reason: str) -> str:
    """The first line, and the one after it where the first only announces it."""
    lines = [line.strip() for line in reason[:2000].splitlines() if line.strip()]
    announced = len(lines) > 1 and lines[0].endswith(":")
    return wording.one_line(" ".join(lines[: 2 if announced else 1]), 160)


def _eager(rows: list[Row], counted: str | None) -> Finding:
    """A function that torch gave up on: a graph break where it can't go on after one."""
    function, file, line = (first(rows, name) for name in ("function", "file", "line"))
    text = first(rows, "fail_reason") or ""
    reason = wording.first_line(text) or "no reason was given"
    loop = ", in a loop" if _IN_LOOP in text else ""
    since = f"; {counted}" if counted else ""
    advice = "torch goes on after a graph break, but not inside of a loop, a with block or a try block"
    told = _hint(text)
    return Finding(
        rule="runs_eagerly",
        severity="medium",
        title=f"{wording.place(function, file, line)} is not compiled and runs eagerly: {reason}{loop}{since}",
        seconds_lost=seconds(row["duration_s"] for row in rows),
        evidence=ids(rows),
        suggestion=f"{advice}: take that call out of it, or put what is inside into a function of its own, which is "
        f"then compiled by itself. torch.compile(fullgraph=True) raises instead.{told}",
        function=function,
        file=file,
        line=line,
        count=len(rows),
        details=(reason,),
    )


def _hint(text: str) -> str:
    found = _HINT.search(text)
    return f" torch's hint: {wording.one_line(found[1], 240)}" if found else ""


def _failure_advice(rows: list[Row]) -> str:
    text = first(rows, "fail_reason") or ""
    if marked := _MARKED.search(text):
        return (
            f"{wording.one_line(marked[1], 300)} The code needs the size as a number: without the mark each size is "
            "compiled on its own."
        )
    if _is_break(rows):
        return f"A graph break, and torch.compile(fullgraph=True) allows none: take that call out.{_hint(text)}"
    return (
        "The exception is torch's or the backend's own. To find the step that fails, compile with "
        'backend="eager", then backend="aot_eager".'
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
        suggestion=_failure_advice(rows),
        function=function,
        file=file,
        line=line,
        count=len(rows),
        details=(error,),
    )
