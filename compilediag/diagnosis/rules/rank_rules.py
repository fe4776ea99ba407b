"""A finding of ranks that went different ways."""

from __future__ import annotations

from typing import Any

from ..finding import Finding
from ..ranks.divergence import Divergence, divergences, ranks_of, sequences
from ..ranks.rank_tables import graph_rows
from ..rows import seconds

#: Kinds of divergence that let ranks wait for each other, and those that cost time alone.
WAITING = ("way", "guard", "outcome", "graph_breaks", "collectives", "graph")
COMPILER_COLLECTIVES = "TORCH_COMPILER_COLLECTIVES=1"


def rank_findings(tables: Any) -> list[Finding]:
    """At most one finding a session: where its ranks first went different ways."""
    if len(ranks_of(tables)) < 2:
        return []
    steps = sequences(tables)
    found = divergences(steps, live=getattr(tables, "state", None) == "watching")
    parted = next((one for one in found if one.kind in WAITING), None)
    if parted is not None:
        return [_parted(parted, steps)]
    return [_caches(one) for one in found if one.kind == "caches"]


def _parted(one: Divergence, steps: dict[int, list[Any]]) -> Finding:
    alone = [row for row in graph_rows(steps) if row.missing]
    return Finding(
        rule="ranks_diverge",
        severity="high" if one.kind in ("way", "collectives") else "medium",
        title=f"Ranks part: {one.sentence}",
        seconds_lost=0.0,
        seconds_at_stake=seconds(row.slowest_s for row in alone),
        suggestion=_advice(one),
        details=tuple(value for value in (one.other_value, one.value) if value),
        source=one.guard_source,
        **_place(one),
    )


def _caches(one: Divergence) -> Finding:
    return Finding(
        rule="ranks_differ_in_caches",
        severity="low",
        title=f"Ranks differ: {one.sentence}",
        seconds_lost=0.0,
        suggestion="The first that compiles fills the cache, the others wait or compile as well: fill it by one rank "
        "before the job, or keep it from run to run (TORCHINDUCTOR_CACHE_DIR, a remote cache).",
        **_place(one),
    )


def _advice(one: Divergence) -> str:
    waits = (
        "A rank that compiles alone lets the others wait at their next collective; ranks with other collectives hang."
    )
    if one.guard_source and ".size()" in one.guard_source:
        return (
            f"{waits} Give all ranks the same sizes (pad, drop the last batch), or mark the size dynamic on all of "
            f"them before the first call. {COMPILER_COLLECTIVES} lets ranks agree on what is dynamic."
        )
    if one.guard_source:
        return f"{waits} Make `{one.guard_source}` the same on all ranks, or keep it out of the compiled function."
    return f"{waits} Let all ranks call the same compiled functions in the same order, with inputs alike."


def _place(one: Divergence) -> dict[str, Any]:
    return {"function": one.function, "file": one.file, "line": one.line, "evidence": one.evidence}
