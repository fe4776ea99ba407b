"""Find ranks that diverge."""

from __future__ import annotations

from typing import Any

from ...decode.guards.path import Path, format_expression
from ...decode.rank_steps import Steps, find_steps, has_ranks
from ...events import Rows
from ..evidence import make_place_fields, sum_seconds
from ..finding import Finding
from ..rank_comparison import Divergence, find_divergences, make_graph_rows
from ..rule import Rule, report

#: Kinds of divergence that make ranks wait for each other; the others cost time alone.
WAITING = ("way", "guard", "outcome", "graph_breaks", "collectives", "graph")
COMPILER_COLLECTIVES = "TORCH_COMPILER_COLLECTIVES=1"

_DIVERGE = Rule(
    "ranks_diverge",
    title="Ranks diverge: {what}",
    action="{advice}",
    why="A rank that compiles alone makes the others wait at their next collective; different collectives hang.",
    docs="trouble",
)
CACHES = "ranks_differ_in_caches"
_CACHES_DIFFER = Rule(
    CACHES,
    title="Ranks differ: {what}",
    action="Let one rank fill the cache before the job, or keep it between runs (TORCHINDUCTOR_CACHE_DIR, a remote "
    "cache).",
    why="The first rank that compiles fills the cache; the others wait or compile as well.",
    severity="low",
    docs="trouble",
)
RULES = (_DIVERGE, _CACHES_DIFFER)


def find_rank_problems(data: Rows) -> list[Finding]:
    """At most one finding per session: where its ranks first diverge."""
    if not has_ranks(data):
        return []
    steps = find_steps(data)
    found = find_divergences(steps, is_live=getattr(data, "state", None) == "watching")
    first = next((one for one in found if one.kind in WAITING), None)
    if first is not None:
        return [_report_divergence(first, steps)]
    return [
        report(_CACHES_DIFFER, (), {"what": one.sentence}, **_get_fields(one)) for one in found if one.kind == "caches"
    ]


def _report_divergence(one: Divergence, steps: Steps) -> Finding:
    alone = [row for row in make_graph_rows(steps) if row.missing]
    return report(
        _DIVERGE,
        (),
        {"what": one.sentence, "advice": _advise(one)},
        severity="high" if one.kind in ("way", "collectives") else "medium",
        seconds_at_stake=sum_seconds(row.slowest_s for row in alone),
        details=tuple(value for value in (one.other_value, one.value) if value),
        source=one.guard_source,
        **_get_fields(one),
    )


def _get_fields(one: Divergence) -> dict[str, Any]:
    place = make_place_fields((one.function, one.file, one.line))
    return {"evidence": one.evidence, "count": 1, **place}


def _advise(one: Divergence) -> str:
    if one.guard_source and Path.of(one.guard_source).is_size:
        return (
            "Give all ranks the same sizes (pad, or drop the last batch), or mark the size dynamic on all ranks before "
            f"the first call. {COMPILER_COLLECTIVES} lets ranks agree on what is dynamic."
        )
    if one.guard_source:
        name = format_expression(one.guard_source)
        return f"Make `{name}` the same on all ranks, or keep it out of the compiled function."
    return "Call the same compiled functions in the same order on all ranks, with similar inputs."
