"""A compile, its phases and texts, and what ended or repeated it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile(Event):
    kind: ClassVar[str] = "compile"
    table: ClassVar[str] = "compiles"

    function: str | None = column("string", "name of the compiled code object", sources=("compiles",))
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    trigger: str | None = column("string", "what asked for it: dynamo, lazy_backward or compiled_autograd")
    is_recompile: bool | None = column("boolean", "true if the code object had entries and all failed")
    attempt: int | None = column("Int64", "attempts that were needed, less one: each graph break or restart adds one")
    outcome: str | None = column(
        "string", "ok, failed, skipped (runs eagerly from here on) or empty (nothing to compile in the frame)"
    )
    dynamo_s: float | None = column(
        "float64", "s, the whole frame as torch's entire_frame_compile_time_s: holds aot_s", unit="s"
    )
    aot_s: float | None = column("float64", "s in the backend, AOTAutograd and below: holds inductor_s", unit="s")
    inductor_s: float | None = column("float64", "s in Inductor: holds codegen_s", unit="s")
    codegen_s: float | None = column("float64", "s generating, building and loading code", unit="s")
    triton_s: float | None = column("float64", "s compiling triton kernels", unit="s")
    guard_count: int | None = column("Int64", "guards of the new entry")
    guard_latency_us: float | None = column(
        "float64", "us, one evaluation of all guards, measured by torch once", unit="us"
    )
    graph_ops: int | None = column("Int64", "calls in the graph")
    graph_nodes: int | None = column("Int64", "nodes of the graph")
    graph_inputs: int | None = column("Int64", "inputs of the graph")
    cache_size: int | None = column("Int64", "entries of this code object before this compile")
    backend: str | None = column("string", "name of the torch.compile backend")
    fail_type: str | None = column("string", "class of the exception that ended it")
    fail_reason: str | None = column("string", "message of that exception", user_data="content")
    limit: str | None = column("string", "recompile_limit or accumulated_recompile_limit, if this compile hit it")
    restart_reasons: list[str] | None = column("json", "why the analysis of the frame began again", user_data="content")
    user_file: str | None = column("string", "file of the user's line at which it failed", user_data="path")
    user_line: int | None = column("Int64", "that line's number")
    stack: str | None = column("string", "key of the call stack that ends in the compiled frame, see stacks")

    @property
    def title(self) -> str:
        return f"{self.function or '?'} {self.outcome or ''}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBreak(Event):
    kind: ClassVar[str] = "graph_break"
    table: ClassVar[str] = "graph_breaks"

    reason: str | None = column(
        "string", "what could not be traced, in one line", sources=("graph_breaks",), user_data="content"
    )
    break_id: str | None = column("string", "torch's id of this kind of break (GBxxxx)")
    explanation: str | None = column("string", "torch's explanation", user_data="content")
    hints: list[str] | None = column("json", "torch's hints", user_data="content")
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "that line's number")
    user_code: str | None = column("string", "that line's text", user_data="code")

    @property
    def title(self) -> str:
        return self.reason or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Event):
    kind: ClassVar[str] = "phase"
    table: ClassVar[str] = "phases"

    name: str | None = column("string", "torch's name of the phase", sources=("phases",))
    parent: str | None = column("string", "the phase around it")
    depth: int | None = column("Int64", "phases around it")

    @property
    def title(self) -> str:
        return self.name or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact(Event):
    kind: ClassVar[str] = "artifact"
    table: ClassVar[str] = "artifacts"

    name: str | None = column(
        "string", "torch's name: dynamo_output_graph, inductor_output_code, ...", sources=("trace",)
    )
    size: int | None = column("Int64", "bytes of its text", unit="bytes")
    digest: str | None = column("string", "key of the kept text; NA if the session's payload budget was spent")
    stack: str | None = column("string", "key of the call stack that wrote it, if it was outside of any compile")

    @property
    def title(self) -> str:
        return self.name or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicDecision(Event):
    kind: ClassVar[str] = "dynamic_decision"
    table: ClassVar[str] = "dynamic_decisions"

    source: str | None = column(
        "string", "the input or attribute that torch made dynamic by itself", sources=("dynamic",), user_data="source"
    )
    dim: str | None = column("string", "the dimension, or scalar")
    reason: str | None = column("string", "torch's reason", user_data="content")
    cached: str | None = column("string", "what it was", user_data="content")
    new: str | None = column("string", "what it is now", user_data="content")

    @property
    def title(self) -> str:
        return f"{self.source} made dynamic: {self.cached} -> {self.new}"
