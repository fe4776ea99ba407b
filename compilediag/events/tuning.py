"""A choice that was timed, a kernel that was built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..formatting import format_milliseconds
from .base import Event, column

#: What a `stage` column can name. `precompile`: it got no further. `fusion`: timed again with what was fused to it.
#: `cached`: taken as it was known, from a cache or an earlier stage. `profile`: timed again for a tool that asked.
TUNING_STAGES = ("benchmark", "prescreen", "precompile", "fusion", "profile", "coordinate_descent", "combo", "cached")


@dataclass(frozen=True, slots=True, kw_only=True)
class AutotuneChoice(Event):
    kind: ClassVar[str] = "autotune_choice"
    table: ClassVar[str] = "autotune"
    shown_first: ClassVar[tuple[str, ...]] = (
        "op",
        "choice",
        "time_ms",
        "is_winner",
        "function",
        "inputs",
        "choice_kind",
        "parameters",
        "stage",
        "fail_reason",
    )

    run_id: str | None = column(
        "string",
        "the tuning that this choice was part of; unique in a process",
        sources=("select_algorithm", "triton_heuristics", "triton_autotune"),
    )
    tuner: str | None = column("string", "select_algorithm, triton_heuristics or triton_autotune")
    stage: str | None = column("string", "one of the tuning stages")
    function: str | None = column(
        "string", "name of the code object that was compiled; NA outside of torch.compile", user_data="name"
    )
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    op: str | None = column(
        "string",
        "what is tuned: mm, addmm, bmm, convolution, or the name of a kernel; unnamed kernel if torch timed it before "
        "it named it",
        user_data="name",
    )
    inputs: list[str] | None = column(
        "json", "one text per input: dtype, sizes, strides and device", user_data="content"
    )
    choice: str | None = column("string", "name of the choice", user_data="numbers")
    choice_kind: str | None = column("string", "extern, triton, cutlass, cpp, subgraph or other")
    parameters: dict[str, Any] | None = column(
        "json", "its parameters: tile sizes, num_warps, num_stages", user_data="numbers"
    )
    time_ms: float | None = column(
        "float64", "duration of one call, as the tuner measured it; NA if it failed", unit="ms"
    )
    is_winner: bool | None = column("boolean", "true for the selected choice; NA if none is selected yet")
    fail_reason: str | None = column("string", "why it has no time", user_data="content")
    device: str | None = column("string", "device that it was timed on")
    benchmark_s: float | None = column("float64", "time to benchmark all choices of the run", unit="s")
    precompile_s: float | None = column(
        "float64", "time to compile all choices of the run before the benchmark", unit="s"
    )
    compile_s: float | None = column(
        "float64", "part of precompile_s for this choice; NA if it was not compiled then", unit="s"
    )
    threads: int | None = column("Int64", "threads or processes that compiled them")
    in_subprocess: bool | None = column("boolean", "true if it was timed in another process")
    tuner_pid: int | None = column("Int64", "that process; it changes when a process dies and is replaced")
    from_cache: str | None = column(
        "string", "cache that the time comes from: memory, local or remote; NA if it was measured now"
    )

    @property
    def title(self) -> str:
        time = self.fail_reason or "no time" if self.time_ms is None else format_milliseconds(self.time_ms)
        return f"{self.op} {self.choice}: {time}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCompile(Event):
    kind: ClassVar[str] = "kernel_compile"
    table: ClassVar[str] = "kernels"
    shown_first: ClassVar[tuple[str, ...]] = ("name", "language", "outcome", "duration_s")

    name: str | None = column("string", "name of the kernel", sources=("code_caches",), user_data="name")
    language: str | None = column("string", "triton, cpp, cuda or python")
    where: str | None = column("string", "what compiled it: process (this one), thread, subprocess, fork or spawn")
    worker_pid: int | None = column("Int64", "process that compiled it, if known")
    outcome: str | None = column("string", "compiled, cached (nothing to compile) or failed")
    fail_reason: str | None = column("string", "why it failed", user_data="content")

    @property
    def title(self) -> str:
        return f"{self.name} {self.outcome}"
