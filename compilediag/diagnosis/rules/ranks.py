"""Find ranks that diverge."""

from __future__ import annotations

from ...decode.guards.path import Path
from ...decode.rank_steps import Steps, find_steps, has_ranks
from ...events import Rows
from ...formatting import format_expression
from ..evidence import make_place_fields, sum_seconds
from ..finding import Finding
from ..ranks.divergence import Divergence, find_divergences
from ..ranks.rank_comparison import make_graph_rows

#: Kinds of divergence that make ranks wait for each other; the others cost time alone.
WAITING = ("way", "guard", "outcome", "graph_breaks", "collectives", "graph")
COMPILER_COLLECTIVES = "TORCH_COMPILER_COLLECTIVES=1"


def find_rank_problems(data: Rows) -> list[Finding]:
    """At most one finding per session: where its ranks first diverge."""
    if not has_ranks(data):
        return []
    steps = find_steps(data)
    found = find_divergences(steps, is_live=getattr(data, "state", None) == "watching")
    first = next((one for one in found if one.kind in WAITING), None)
    if first is not None:
        return [_report_divergence(first, steps)]
    return [_report_caches(one) for one in found if one.kind == "caches"]


def _report_divergence(one: Divergence, steps: Steps) -> Finding:
    alone = [row for row in make_graph_rows(steps) if row.missing]
    return Finding(
        rule="ranks_diverge",
        severity="high" if one.kind in ("way", "collectives") else "medium",
        title=f"Ranks diverge: {one.sentence}",
        seconds_lost=0.0,
        seconds_at_stake=sum_seconds(row.slowest_s for row in alone),
        suggestion=_advise(one),
        details=tuple(value for value in (one.other_value, one.value) if value),
        source=one.guard_source,
        evidence=one.evidence,
        **make_place_fields((one.function, one.file, one.line)),
    )


def _report_caches(one: Divergence) -> Finding:
    return Finding(
        rule="ranks_differ_in_caches",
        severity="low",
        title=f"Ranks differ: {one.sentence}",
        seconds_lost=0.0,
        suggestion="Let one rank fill the cache before the job, or keep it between runs (TORCHINDUCTOR_CACHE_DIR, a "
        "remote cache). The first rank that compiles fills the cache; the others wait or compile as well.",
        evidence=one.evidence,
        **make_place_fields((one.function, one.file, one.line)),
    )


def _advise(one: Divergence) -> str:
    waits = "A rank that compiles alone makes the others wait at their next collective; different collectives hang."
    if one.guard_source and Path.of(one.guard_source).is_size:
        return (
            "Give all ranks the same sizes (pad, or drop the last batch), or mark the size dynamic on all ranks before "
            f"the first call. {COMPILER_COLLECTIVES} lets ranks agree on what is dynamic. {waits}"
        )
    if one.guard_source:
        name = format_expression(one.guard_source)
        return f"Make `{name}` the same on all ranks, or keep it out of the compiled function. {waits}"
    return f"Call the same compiled functions in the same order on all ranks, with similar inputs. {waits}"
