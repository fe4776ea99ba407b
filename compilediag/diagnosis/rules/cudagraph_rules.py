"""Functions that run without CUDA graphs, capture them again and again, or lose what they gave back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from .. import wording
from ..finding import Finding, severity_of
from ..rows import Row, first, ids, rows_of, seconds
from .cudagraph_advice import FAILED, GRADIENT, OVERWRITTEN, PATHS, SIZES, STUCK, rerecord_words, skip_advice
from .cudagraph_functions import COLUMNS

#: Sizes that a function may be captured for before that is told, and from which it is of more than low severity.
FEW_SIZES, MANY_SIZES = 3, 8
#: Places in the tree of graphs at which a function may be captured before that is told.
FEW_PATHS = 4
#: Captures again that are usual: a first step differs from the next ones.
USUAL_AGAIN = 1


def graph_findings(tables: Any) -> list[Finding]:
    """Of the graphs that torch.compile captures; those of the user's own are told in the table alone."""
    rows = rows_of(tables, "cudagraphs", (*COLUMNS, "sizes"))
    again = _grouped(rows, "rerecord", lambda row: (*_function(row), row["mismatch"], row["input"]))
    given_up = {_function(row) for row in rows if row["action"] == "limit"}
    return [
        *(_skip(group) for group in _grouped(rows, "skip", lambda row: (*_function(row), row["reason"], *_line(row)))),
        *(_again(group) for group in again if len(group) > USUAL_AGAIN and _function(group[0]) not in given_up),
        *(_sizes(group) for group in _by_size(rows)),
        *(_paths(group) for group in _by_path(rows)),
        *(_limit(group) for group in _grouped(rows, "limit", _function)),
        *(_stuck(group) for group in _grouped(rows, "stuck", _function)),
        *(_overwritten(group) for group in _grouped(rows, "overwritten", lambda row: (*_function(row), *_line(row)))),
        *(_failed(group) for group in _grouped(rows, "failed", lambda row: (*_function(row), row["reason"]))),
    ]


def _function(row: Row) -> tuple[Any, ...]:
    return (row["function"], row["file"], row["line"], row["mode"])


def _line(row: Row) -> tuple[Any, ...]:
    return (row["user_file"], row["user_line"])


def _grouped(rows: Iterable[Row], action: str, key: Callable[[Row], tuple[Any, ...]]) -> list[list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["action"] == action:
            groups[key(row)].append(row)
    return list(groups.values())


def _finding(rule: str, severity: str, what: str, rows: list[Row], suggestion: str, **more: Any) -> Finding:
    """`what`: what became of the function, after its name."""
    function, file, line, mode = (first(rows, name) for name in ("function", "file", "line", "mode"))
    who = wording.place(function, file, line) + (", backward," if mode == "backward" else "")
    place = {"function": function, "file": file, "line": line}
    user = {name: first(rows, name) for name in ("user_file", "user_line", "user_code")}
    usual = {"seconds_lost": 0.0, "evidence": ids(rows), "count": len(rows), **place, **user}
    return Finding(rule=rule, severity=severity, title=f"{who} {what}", suggestion=suggestion, **{**usual, **more})


def _skip(rows: list[Row]) -> Finding:
    reason = wording.first_line(first(rows, "reason") or "no reason was given")
    advice = skip_advice(first(rows, "reason"))
    what = f"runs without CUDA graphs: {reason}"
    suggestion = advice or "PyTorch's page on CUDAGraph Trees lists what can't be captured."
    return _finding("cudagraph_skip", "medium", what, rows, suggestion, details=(reason,))


def _again(rows: list[Row]) -> Finding:
    lost = seconds(row["duration_ms"] for row in rows) / 1e3
    why, advice = rerecord_words(first(rows, "mismatch"))
    told = why or wording.first_line(first(rows, "reason") or "the reason is not known")
    which = first(rows, "input")
    named = f" ({wording.one_line(which, 80)})" if which else ""
    spent = f", {wording.spent(lost)}" if lost else ""
    return _finding(
        "cudagraph_rerecord",
        severity_of(lost, len(rows)),
        f"was captured again {wording.times(len(rows))}{spent}: {told}{named}",
        rows,
        advice or "What was recorded says no more of it.",
        seconds_lost=lost,
        details=tuple(dict.fromkeys(row["input"] for row in rows if row["input"]))[:64],
    )


def _by_size(rows: Iterable[Row]) -> list[list[Row]]:
    """The captures of functions that were captured for more than a few sizes."""
    sized = [row for row in rows if row["sizes"] is not None]
    groups = _grouped(sized, "record", _function)
    return [group for group in groups if len({row["sizes"] for row in group}) > FEW_SIZES]


def _sizes(rows: list[Row]) -> Finding:
    sizes = list(dict.fromkeys(row["sizes"] for row in rows))
    lost = seconds(row["duration_ms"] for row in rows[1:]) / 1e3
    return _finding(
        "cudagraph_sizes",
        "medium" if len(sizes) >= MANY_SIZES else severity_of(lost, 1, "medium"),
        f"was captured for {len(sizes)} sizes, {wording.spent(lost)} after the first: {wording.listed(sizes)}",
        rows,
        SIZES,
        seconds_lost=lost,
        count=len(sizes),
        details=tuple(wording.one_line(text, 80) for text in sizes[:64]),
    )


def _by_path(rows: Iterable[Row]) -> list[list[Row]]:
    """The captures of one graph at more than a few places: after other graphs each time."""
    groups = _grouped(rows, "record", lambda row: (row["pid"], row["function_id"], *_function(row), row["sizes"]))
    return [group for group in groups if len({row["parent_id"] for row in group}) > FEW_PATHS]


def _paths(rows: list[Row]) -> Finding:
    lost = seconds(row["duration_ms"] for row in rows[1:]) / 1e3
    what = f"was captured {wording.times(len(rows))} without a change of its inputs, each time after other graphs"
    return _finding(
        "cudagraph_paths", severity_of(lost, len(rows), "medium"), what, rows, PATHS, seconds_lost=lost, count=len(rows)
    )


def _limit(rows: list[Row]) -> Finding:
    why, advice = rerecord_words(first(rows, "mismatch"))
    told = why or wording.first_line(first(rows, "reason") or "the reason is not known")
    raising = (
        "If all those captures are meant, raise torch._inductor.config.triton.cudagraph_unexpected_rerecord_limit."
    )
    what = f"was captured again too often: from there on it runs without CUDA graphs: {told}"
    return _finding("cudagraph_limit", "high", what, rows, f"{advice} {raising}".strip())


def _stuck(rows: list[Row]) -> Finding:
    count = max(row["count"] or 1 for row in rows)
    what = f"ran in its warm-up {wording.times(count)} and was never captured"
    reason = first(rows, "reason")
    return _finding(
        "cudagraph_stuck",
        "medium",
        f"{what}: {wording.first_line(reason)}" if reason else what,
        rows,
        STUCK,
        count=count,
    )


def _overwritten(rows: list[Row]) -> Finding:
    is_gradient = "gradient" in (first(rows, "reason") or "")
    what = "gave back a gradient" if is_gradient else "gave back a tensor"
    return _finding(
        "cudagraph_overwritten",
        "high",
        f"{what} that a later run has overwritten, used {wording.times(len(rows))} after that",
        rows,
        GRADIENT if is_gradient else OVERWRITTEN,
    )


def _failed(rows: list[Row]) -> Finding:
    reason = wording.first_line(first(rows, "reason") or "no reason was given")
    return _finding(
        "cudagraph_failed", "high", f"could not be captured {wording.times(len(rows))}: {reason}", rows, FAILED
    )
