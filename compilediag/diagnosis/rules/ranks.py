"""Find ranks that diverge."""

from __future__ import annotations

from typing import Any

from ...decode.guards.path import Path, format_expression
from ...decode.rank_steps import find_steps
from ...events import has_ranks
from ..evidence import Evidence, make_place_fields, sum_seconds
from ..finding import Finding
from ..rank_comparison import ColdRank, Divergence, find_cold_ranks, find_divergences, make_graph_rows
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
_COLD = Rule(
    "ranks_cold_caches",
    title="Caches of ranks differ: {what}",
    action="Before the job, fill the caches on every machine with a warm-up script (`compilediag plan --warmup "
    "warmup.py --distributed`), or let all ranks read one folder or remote cache.",
    why="The others wait for it at their next collective, and the job ends if that takes longer than the timeout of "
    "the process group (10 minutes with NCCL, 30 with Gloo, unless init_process_group got another one).",
    docs="trouble",
)
_CACHES_DIFFER = Rule(
    CACHES,
    title="Ranks differ: {what}",
    action="Let one rank fill the cache before the job, or keep it between runs (TORCHINDUCTOR_CACHE_DIR, a remote "
    "cache).",
    why="The first rank that compiles fills the cache; the others wait or compile as well.",
    severity="low",
    docs="trouble",
)
RULES = (_DIVERGE, _COLD, _CACHES_DIFFER)

#: Seconds that a rank compiles longer than another, from which on its cold caches are a finding of that severity.
COLD_S = (("high", 60.0), ("medium", 5.0))


def find_rank_problems(evidence: Evidence) -> list[Finding]:
    """Where the ranks first diverge, and the rank with the coldest caches."""
    if not has_ranks(evidence):
        return []
    steps = find_steps(evidence)
    divergences = find_divergences(steps, is_live=evidence.state == "watching")
    waiting = [one for one in divergences if one.kind in WAITING][:1]
    cold = find_cold_ranks(evidence)[:1]
    if not waiting and not cold:
        caches = (one for one in divergences if one.kind == "caches")
        return [report(_CACHES_DIFFER, (), {"what": one.sentence}, **_get_fields(one)) for one in caches]
    found = [
        report(
            _DIVERGE,
            (),
            {"what": first.sentence, "advice": _advise(first)},
            severity="high" if first.kind in ("way", "collectives") else "medium",
            seconds_at_stake=sum_seconds(row.slowest_s for row in make_graph_rows(steps) if row.missing),
            details=tuple(value for value in (first.other_value, first.value) if value),
            source=first.guard_source,
            **_get_fields(first),
        )
        for first in waiting
    ]
    for one in cold:
        severity = next((name for name, seconds in COLD_S if one.extra_s >= seconds), "low")
        known = {"severity": severity, "seconds_at_stake": one.extra_s, "count": one.missed}
        found.append(report(_COLD, (), {"what": one.sentence}, **_get_fields(one) | known))
    return found


def _get_fields(one: Divergence | ColdRank) -> dict[str, Any]:
    return {"evidence": one.evidence, "count": 1, **make_place_fields((one.function, one.file, one.line))}


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
