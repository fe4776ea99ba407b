"""A backward that was prepared although none ran: inference with gradients enabled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...events import Compile, Phase, Rows
from ...formatting import format_function, format_seconds
from ..compile_cost import CompileCost
from ..evidence import get_ids, get_place, group_by, sum_seconds
from .break_even import MADE

#: Phases that only a graph with a backward has.
JOINT = "aot_trace_joint_graph"
PARTITION = "min_cut_rematerialization_partition"
#: The backward's part of the joint graph: about as many operations as the forward has.
SHARE_OF_JOINT = 0.5
#: The phase in which a backward is compiled with the forward, so that none is seen when it runs.
EARLY_BACKWARD = "bw_compiler"
#: Backends whose early backward has that phase; with others it looks like one that never ran.
BACKENDS = ("inductor",)
WORTH_REPORTING_S = 0.1
ADVICE = (
    "If no gradients are needed here, call it under torch.no_grad() or torch.inference_mode(). torch then traces the "
    "forward alone, keeps no activations, and stores the graph in AOTAutogradCache, which it does for a graph with a "
    "backward only after the backward."
)


def find_unused_backwards(data: Rows) -> list[CompileCost]:
    """The functions whose joint graph was traced while gradients were enabled, and whose backward never ran."""
    phases = group_by(data.rows(Phase), lambda row: row.compile_key)
    compiles = group_by(data.rows(Compile), lambda row: row.compile_key)
    unused = [rows[0] for key, rows in compiles.items() if key is not None and _is_unused(rows, phases.get(key, ()))]
    return [
        cost
        for rows in group_by(unused, get_place).values()
        if (cost := _report(rows, phases)).seconds >= WORTH_REPORTING_S
    ]


def _is_unused(rows: Sequence[Compile], phases: Sequence[Phase]) -> bool:
    """A backward that torch compiles with the forward leaves no trace when it runs, so nothing is known of it."""
    is_early = any(EARLY_BACKWARD in (phase.name or "") for phase in phases)
    has_joint = any(phase.name == JOINT for phase in phases)
    if not has_joint or is_early or len(rows) > 1:
        return False
    return rows[0].trigger == "dynamo" and rows[0].outcome in MADE and rows[0].backend in BACKENDS


def _report(rows: Sequence[Compile], phases: dict[str | None, list[Phase]]) -> CompileCost:
    seconds = sum(_sum_backward(phases[row.compile_key]) for row in rows)
    return CompileCost(
        kind="unused_backward",
        seconds=seconds,
        what=f"{format_function(*get_place(rows[0]))}: {format_seconds(seconds)} went into a backward that never ran",
        advice=ADVICE,
        evidence=get_ids(rows),
        code="with torch.no_grad():\n    ...  # the call",
        place=get_place(rows[0]),
    )


def _sum_backward(phases: Iterable[Phase]) -> float:
    """s of the backward's part: half of the joint graph, and its partition into forward and backward."""
    rows = list(phases)
    joint = sum_seconds(phase.duration_s for phase in rows if phase.name == JOINT)
    return SHARE_OF_JOINT * joint + sum_seconds(phase.duration_s for phase in rows if phase.name == PARTITION)
