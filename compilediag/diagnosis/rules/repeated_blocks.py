"""Identical blocks compiled one by one, where one compile of a block would do for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...decode.records.compilation_metrics import CPU_CHECK
from ...events import Compile, KernelCompile, Phase, Rows
from ...formatting import format_amount, format_function, format_line, format_seconds, format_share
from ..compile_cost import CompileCost
from ..evidence import get_ids, get_place, group_by, sum_seconds
from .break_even import MADE

#: Less is not worth another structure of the program.
WORTH_CHANGING_S = 1.0
#: So many equal compiles of one function are reported.
MANY_COMPILES = 3
#: Phases that a process pays once, whatever it compiles.
ONCE = ("inductor_codecache_torch_key", CPU_CHECK)
REGIONAL = (
    "torch compiles the first block and uses its code for the others. Fusion across blocks is lost, and each block is "
    "a compiled call of its own: 0.2 to 0.7 ms of host time per block and step, so measure a step if it is short."
)
SHARED = (
    "Each torch.compile(..., isolate_recompiles=True) has entries of its own, and torch._dynamo.reset() drops all of "
    "them. To share one entry among modules of one class, compile each with module.compile(), without "
    "isolate_recompiles, and do not reset between them."
)
_HEADER = "precompiled header"
#: What is counted of blocks.
NUMBERS = ("count", "ops", "graph_ops")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\[\d+\])*")


class BlockCompile(NamedTuple):
    """A compile of a graph of identical blocks: its rows, forward first, and the s that regional compilation saves."""

    forward: Compile
    blocks: dict[str, Any]
    rows: Sequence[Compile]
    saved_s: float

    @property
    def subject(self) -> tuple[object, ...]:
        """What compiles of the same function and blocks have in common."""
        return (*get_place(self.forward), self.blocks["class"], self.blocks["count"])


def find_repeated_blocks(data: Rows) -> list[CompileCost]:
    """The functions whose graphs consist of identical blocks, and what regional compilation saves of their compiles."""
    compiles = group_by(data.rows(Compile), lambda row: row.compile_key)
    phases = group_by(data.rows(Phase), lambda row: row.compile_key)
    kernels = group_by(data.rows(KernelCompile), lambda row: row.compile_key)
    found = (
        _find_blocks(rows, phases.get(key, ()), kernels.get(key, ()))
        for key, rows in compiles.items()
        if key is not None
    )
    groups = group_by((one for one in found if one is not None), lambda one: one.subject)
    return [_report_blocks(group) for group in groups.values()]


def _find_blocks(
    rows: Sequence[Compile], phases: Iterable[Phase], kernels: Iterable[KernelCompile]
) -> BlockCompile | None:
    usable = (row for row in rows if row.blocks and row.outcome in MADE and not _is_loaded(row))
    forward = next((row for row in usable if _are_complete(row.blocks or {})), None)
    blocks = forward.blocks if forward is not None else None
    if forward is None or blocks is None:
        return None
    saved = estimate_saving(rows, blocks, phases, kernels)
    return BlockCompile(forward, blocks, rows, saved) if saved >= WORTH_CHANGING_S else None


def _are_complete(blocks: dict[str, Any]) -> bool:
    """True for the blocks of a graph as sources record them; a file can have anything."""
    numbers = [blocks.get(name) for name in NUMBERS]
    has_numbers = all(isinstance(number, (int, float)) and number > 0 for number in numbers)
    return has_numbers and all(isinstance(blocks.get(name), str) for name in ("class", "path"))


def _report_blocks(compiles: Sequence[BlockCompile]) -> CompileCost:
    forward, blocks = compiles[0].forward, compiles[0].blocks
    rows, saved = [row for one in compiles for row in one.rows], sum(one.saved_s for one in compiles)
    total = sum_seconds(row.duration_s for row in rows)
    number, share = int(blocks["count"]), blocks["count"] * blocks["ops"] / blocks["graph_ops"]
    what = f"{number} identical blocks of class {format_line(blocks['class'], 60)} ({format_share(share)} of the graph)"
    times = f", {len(compiles)} times," if len(compiles) > 1 else ""
    return CompileCost(
        kind="repeated_blocks",
        seconds=saved,
        what=f"{format_function(*get_place(forward))}: {what} are compiled one by one{times} in "
        f"{format_seconds(total)}; compiling one block saves about {format_seconds(saved)}",
        advice=REGIONAL,
        evidence=get_ids(rows),
        code=_write_code(str(blocks["path"])),
        details=(f"first block: {format_line(blocks['path'], 100)}",),
        place=get_place(forward),
    )


def _is_loaded(row: Compile) -> bool:
    """True if a cache had the graph: nothing was compiled then."""
    return row.backend == "inductor" and row.inductor_s is None


def estimate_saving(
    rows: Sequence[Compile], blocks: dict[str, Any], phases: Iterable[Phase], kernels: Iterable[KernelCompile]
) -> float:
    """s that compiling one of the identical blocks saves: (N - 1)/N of the time that grows with the graph.

    That is without what a process pays once, and without waiting for kernels: Inductor compiles equal kernels once. The
    time in which kernels were compiled beside the code generation of the other blocks becomes a wait. Measured on an
    H100 with 12 blocks, the estimate was 34 % above to 14 % below what was saved (docs/compile_time.md).
    """
    kernels = list(kernels)
    once = sum_seconds(phase.duration_s for phase in phases if phase.name in ONCE)
    once += sum_seconds(kernel.duration_s for kernel in kernels if kernel.name == _HEADER)
    waited = sum_seconds(row.triton_s for row in rows)
    grows = sum_seconds(row.duration_s for row in rows) - waited - once
    hidden = max(0.0, _measure_union(kernel for kernel in kernels if kernel.name != _HEADER) - waited)
    count, share = int(blocks["count"]), float(blocks["count"] * blocks["ops"] / blocks["graph_ops"])
    return max(0.0, grows * share * (count - 1) / count - hidden)


def _measure_union(kernels: Iterable[KernelCompile]) -> float:
    """s in which at least one of the kernels was being compiled."""
    seconds, reached = 0.0, 0
    for kernel in sorted(kernels, key=lambda row: row.time_ns):
        begin = max(kernel.time_ns, reached)
        seconds += max(0, kernel.end_ns - begin) / 1e9
        reached = max(reached, kernel.end_ns)
    return seconds


def _write_code(path: str) -> str:
    """The lines that compile each block in place."""
    blocks = re.sub(r"\[\d+\]$", "", name_module(path))
    # A file can contain any text, and users paste these lines into their program.
    blocks = blocks if _PATH.fullmatch(blocks) else "blocks_of_your_model"
    return f"for block in {blocks}:\n    block.compile()\n# and call the model itself, without torch.compile around it"


def name_module(path: str) -> str:
    """torch's path of a module as Python code: `L['self'].layers.0` is `model.layers[0]`."""
    text = re.sub(r"^[LG]\[['\"]self['\"]\]", "model", path)
    text = re.sub(r"^[LG]\[['\"](\w+)['\"]\]", r"\1", text)
    text = re.sub(r"(?:\._modules)?\[['\"]([A-Za-z_]\w*)['\"]\]", r".\1", text)
    return re.sub(r"\.(\d+)(?=\.|$|\[)|(?:\._modules)?\[['\"](\d+)['\"]\]", lambda m: f"[{m[1] or m[2]}]", text)


def find_repeated_compiles(data: Rows) -> list[CompileCost]:
    """Functions whose same graph was compiled several times although no guard failed."""
    made = [row for row in data.rows(Compile) if row.outcome == "ok" and row.trigger == "dynamo" and row.graph_ops]
    fresh = [row for row in made if not row.is_recompile and row.compile_key is not None]
    paid = group_by(data.rows(Compile), lambda row: row.compile_key)
    groups = group_by(fresh, _get_graph)
    costs = (_report_compiles(rows, [paid[row.compile_key] for row in rows]) for rows in groups.values())
    return [cost for cost in costs if cost is not None]


def _get_graph(row: Compile) -> tuple[object, ...]:
    """What compiles of the same graph have in common."""
    return (row.rank, row.pid, *get_place(row), row.backend, row.graph_ops, row.graph_nodes, row.graph_inputs)


def _report_compiles(rows: Sequence[Compile], parts: Sequence[Sequence[Compile]]) -> CompileCost | None:
    again = sum_seconds(row.duration_s for part in parts[1:] for row in part)
    if len(rows) < MANY_COMPILES or again < WORTH_CHANGING_S:
        return None
    times = format_amount(len(rows), "time")
    return CompileCost(
        kind="repeated_compiles",
        seconds=again,
        what=f"{format_function(*get_place(rows[0]))}: a graph of the same size was compiled {times} although no "
        f"guard failed; all but the first took {format_seconds(again)}",
        advice=SHARED,
        evidence=get_ids(row for part in parts for row in part),
        place=get_place(rows[0]),
    )
