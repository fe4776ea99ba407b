"""The plan as a page gets it: with its patch, the lines of the cells and files that it changes, and the evidence of
each step, which are the compiles of the function that it recompiled.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any, cast

from ..decode.guards.path import format_expression
from ..diagnosis.evidence import Evidence, get_place, group_by, sum_seconds
from ..diagnosis.plan import Plan
from ..diagnosis.plan.changed_sources import ChangedSource, make_patch
from ..events import Compile, GuardFailure, Recompile, Rows
from ..formatting import format_function, format_line
from .page_rows import to_ms
from .page_types import PageChangedSource, PageEvidence, PagePlan, PageStepCompile

#: Compiles and values that the evidence of a step lists.
MAX_COMPILES, MAX_NAMES = 20, 3
#: Characters of a value.
MAX_VALUE = 40


def make_plan_page(plan: Plan, data: Rows, try_command: str, has_sources: bool) -> PagePlan:
    """The plan with its sources. `data` has the rows that may be shown; without `has_sources`, the user's code is
    left out.
    """
    searched = str(plan.searched.get("patch") or "") if plan.searched else ""
    sources = plan.changed_sources() if has_sources else ()
    evidence = Evidence.of(data)
    found: dict[str, Any] = plan.to_dict()
    for values, step in zip(found["steps"], plan.steps, strict=True):
        values["proof"] = _list_compiles(evidence, frozenset(step.evidence))
    return cast(
        PagePlan,
        {
            **found,
            "patch": searched or make_patch(sources) if has_sources else None,
            "sources": [_describe_source(source) for source in sources],
            "try_command": try_command if has_sources else "",
        },
    )


def _describe_source(source: ChangedSource) -> PageChangedSource:
    """The texts are those of cells, which a page can replace."""
    is_cell = source.cell is not None
    return {
        "place": source.place,
        "cell": source.cell,
        "lines": list(source.lines),
        "before": source.before if is_cell else None,
        "after": source.after if is_cell else None,
    }


def _list_compiles(evidence: Evidence, own: Set[int]) -> PageEvidence | None:
    """The compiles of the function whose recompiles took most time; None if they are not known."""
    recompiles = [row for row in evidence.rows(Recompile) if row.event_id in own]
    if not recompiles:
        return None
    places = group_by(recompiles, lambda row: (row.rank, row.pid, *get_place(row)))
    place, rows = max(places.items(), key=lambda item: sum_seconds(row.lost_s for row in item[1]))
    recompiled = evidence.by_compile(Recompile)
    compiles = [
        (key, found)
        for key, found in evidence.by_compile(Compile).items()
        if key is not None and (found[0].rank, found[0].pid, *get_place(found[0])) == place
    ]
    failures = evidence.by_compile(GuardFailure)
    names = dict.fromkeys(format_expression(row.guard_source) for row in rows if row.guard_source)
    shown = list(names)[:MAX_NAMES]
    first_values = {format_expression(row.guard_source): row.expected for row in rows[::-1] if row.guard_source}
    listed = [
        _describe_compile(parts, recompiled.get(key, ()), failures.get(key, ()), shown, own)
        for key, parts in compiles[:MAX_COMPILES]
    ]
    if listed and listed[0]["change"] is None:
        listed[0]["values"] = [_shorten(first_values.get(name)) for name in shown]
    return {
        "function": format_function(*place[2:]),
        "names": shown,
        "compiles": listed,
        "hidden": max(0, len(compiles) - MAX_COMPILES),
    }


def _describe_compile(
    parts: Sequence[Compile],
    recompiles: Sequence[Recompile],
    failures: Sequence[GuardFailure],
    names: Sequence[str],
    own: Set[int],
) -> PageStepCompile:
    came = {format_expression(row.guard_source): row.actual for row in failures if row.guard_source}
    recompile, change = (recompiles[-1] if recompiles else None), None
    if recompile is not None:
        name = format_expression(recompile.guard_source or "") or "a guard"
        came.setdefault(name, recompile.actual)
        change = f"{format_line(name, 80)}: {_shorten(recompile.expected)} → {_shorten(recompile.actual)}"
    return {
        "event": None if recompile is None else recompile.event_id,
        "time": to_ms(parts[0].time_ns),
        "values": [_shorten(came.get(name)) for name in names],
        "change": change,
        "is_own": recompile is not None and recompile.event_id in own,
        "seconds": sum_seconds(row.duration_s for row in parts),
    }


def _shorten(value: str | None) -> str:
    return "" if value is None else format_line(value, MAX_VALUE)
