"""Code that one graph contains many times: what compiling it once saves, and Python loops that Dynamo unrolls.

The identical blocks of a model are a cost of `costs.py`, found in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import UnionType
from typing import Any, NamedTuple

from ...decode.guards.path import parse_path
from ...decode.records.compilation_metrics import CPU_CHECK
from ...events import Compile, KernelCompile, Phase
from ...formatting import format_count, format_line, format_place, format_seconds, format_share
from ..evidence import Evidence, get_place, group_by, kept, sum_seconds
from ..finding import Finding, get_severity
from ..rule import Rule, list_changes, report

#: The first version of torch in which a nested compile region is traced once, however often it is called. In 2.11,
#: Dynamo traces it at each call, which takes longer than inlining it.
REGIONS_SINCE = (2, 13)
#: A Python loop whose iterations are most of a graph.
UNROLLED_LOOP = Rule(
    "unrolled_loop",
    title="{function}: the loop at {place} is unrolled, {number} iterations are {share} of the graph; compiling one of "
    "them saves about {seconds} of {total}",
    action="{advice}",
    worth_s=0.5,
    cost="nothing is fused across iterations any more, and in a loop that is not compiled each iteration is a compiled "
    "call",
    docs="trouble",
    cost_kind="unrolled_loop",
    cause="a Python loop that is unrolled",
    headline="Compiling one iteration of an unrolled loop saves about {seconds} of {session}",
)
RULES = (UNROLLED_LOOP,)
_COMPILE_BODY = "Compile {body} instead of the loop: torch.compile({name}), and run the loop without torch.compile."
_REGION = (
    "Or keep the loop compiled and decorate {body} with @torch.compiler.nested_compile_region, so that it is compiled "
    "once."
)

#: Phases that a process pays once, whatever it compiles.
ONCE = ("inductor_codecache_torch_key", CPU_CHECK)
_HEADER = "precompiled header"
#: What is counted of code that repeats.
NUMBERS = ("count", "ops", "graph_ops")


def estimate_saving(
    rows: Sequence[Compile], repeated: Mapping[str, Any], phases: Iterable[Phase], kernels: Iterable[KernelCompile]
) -> float:
    """s that compiling one of the identical parts saves: (N - 1)/N of the time that grows with the graph.

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
    count, share = int(repeated["count"]), float(repeated["count"] * repeated["ops"] / repeated["graph_ops"])
    return max(0.0, grows * share * (count - 1) / count - hidden)


def _measure_union(kernels: Iterable[KernelCompile]) -> float:
    """s in which at least one of the kernels was being compiled."""
    seconds, reached = 0.0, 0
    for kernel in sorted(kernels, key=lambda row: row.time_ns):
        begin = max(kernel.time_ns, reached)
        seconds += max(0, kernel.end_ns - begin) / 1e9
        reached = max(reached, kernel.end_ns)
    return seconds


class RepeatedCode(NamedTuple):
    """A compile of a graph that has the same code many times: its rows, forward first, what is recorded of that code,
    and the s that compiling it once saves.
    """

    forward: Compile
    code: Mapping[str, Any]
    rows: Sequence[Compile]
    saved_s: float


def find_repeated_code(
    evidence: Evidence, column: str, types: Mapping[str, type | UnionType], is_meant: Callable[[Compile], bool]
) -> list[RepeatedCode]:
    """The compiles of which `column` records code that repeats. `types` are those of its texts: a file can have
    anything there, and is then left out. `is_meant` is true for compiles in which that code was compiled.
    """

    def is_complete(code: Mapping[str, Any] | None) -> bool:
        numbers = [(code or {}).get(name) for name in NUMBERS]
        are_numbers = all(isinstance(value, int | float) and 0 < value < 1e9 for value in numbers)
        return are_numbers and all(isinstance((code or {}).get(name), kind) for name, kind in types.items())

    phases, kernels = evidence.by_compile(Phase), evidence.by_compile(KernelCompile)
    found = []
    for key, rows in evidence.by_compile(Compile).items():
        forward = next((row for row in rows if is_meant(row) and is_complete(getattr(row, column))), None)
        if key is not None and forward is not None:
            code = getattr(forward, column)
            saved_s = estimate_saving(rows, code, phases.get(key, ()), kernels.get(key, ()))
            found.append(RepeatedCode(forward, code, rows, saved_s))
    return found


# Unrolled loops

_LOOP = {"file": str, "line": int, "body": str | None, "module": str | None, "code": str | None}


@kept
def find_unrolled_loops(evidence: Evidence) -> list[Finding]:
    """One finding for each loop whose iterations took much of the compile time of a function."""
    found = find_repeated_code(evidence, "loop", _LOOP, lambda row: row.outcome == "ok")
    groups = group_by(found, lambda one: (*get_place(one.forward), one.code["file"], one.code["line"]))
    return [
        _report_loop(group, evidence.torch_version)
        for group in groups.values()
        if sum(one.saved_s for one in group) >= UNROLLED_LOOP.worth_s
    ]


def _report_loop(compiles: Sequence[RepeatedCode], version: tuple[int, int]) -> Finding:
    loop = max((one.code for one in compiles), key=lambda code: code["count"])
    saved = sum(one.saved_s for one in compiles)
    rows = [row for one in compiles for row in one.rows]
    module = parse_path(loop.get("module") or "")
    name = format_line(module.text if module is not None else loop.get("body") or "", 60)
    words = {"body": f"`{name}`" if name else "the body of the loop, as a function,", "name": name or "body"}
    advice = (_COMPILE_BODY, _REGION) if version >= REGIONS_SINCE else (_COMPILE_BODY,)
    texts = [text.format_map(words) for text in advice]
    facts = {
        "place": format_place(loop["file"], loop["line"]),
        "number": format_count(loop["count"]),
        "share": format_share(min(1.0, loop["count"] * loop["ops"] / loop["graph_ops"])),
        "seconds": format_seconds(saved),
        "total": format_seconds(sum_seconds(row.duration_s for row in rows)),
        "advice": " ".join(texts),
    }
    return report(
        UNROLLED_LOOP,
        rows,
        facts,
        seconds_lost=saved,
        severity=get_severity(saved, 1, "medium"),
        count=len(compiles),
        changes=list_changes(*texts),
        user_file=loop["file"],
        user_line=loop["line"],
        user_code=loop.get("code"),
    )
