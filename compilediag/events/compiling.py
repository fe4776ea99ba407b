"""A compile, its phases and texts, and what ended or repeated it; what vLLM compiles.

vLLM cuts the graph of a model at some operators, such as attention, and compiles each other piece once for every range
of sizes (numbers of tokens) that it expects, before it serves requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from .base import Event, column


@dataclass(frozen=True, slots=True, kw_only=True)
class Compile(Event):
    kind: ClassVar[str] = "compile"
    table: ClassVar[str] = "compiles"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "line",
        "duration_s",
        "outcome",
        "is_recompile",
        "trigger",
        "backend",
        "guard_count",
        "graph_ops",
        "fail_reason",
    )

    function: str | None = column("string", "name of the compiled code object", sources=("compiles",), user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    trigger: str | None = column(
        "string",
        "what started it: dynamo, lazy_backward, compiled_autograd, aot_compile, or precompile "
        "(torch.compiler.precompile)",
    )
    is_recompile: bool | None = column("boolean", "true if the code object had entries and all failed")
    attempt: int | None = column("Int64", "number of restarts of the analysis: each graph break or restart adds one")
    outcome: str | None = column(
        "string", "ok, failed, skipped (runs eagerly from here on) or empty (nothing to compile in the frame)"
    )
    dynamo_s: float | None = column(
        "float64", "the whole frame (torch's entire_frame_compile_time_s); includes aot_s", unit="s"
    )
    aot_s: float | None = column("float64", "the backend, AOTAutograd and below; includes inductor_s", unit="s")
    inductor_s: float | None = column("float64", "Inductor; includes codegen_s", unit="s")
    codegen_s: float | None = column("float64", "generating, building and loading code", unit="s")
    triton_s: float | None = column("float64", "compiling Triton kernels", unit="s")
    guard_count: int | None = column("Int64", "guards of the new entry")
    guard_latency_us: float | None = column(
        "float64", "one evaluation of all guards, measured once by torch", unit="us"
    )
    graph_ops: int | None = column("Int64", "calls in the graph")
    graph_nodes: int | None = column("Int64", "nodes of the graph")
    graph_inputs: int | None = column("Int64", "inputs of the graph")
    cache_size: int | None = column("Int64", "entries of this code object before this compile")
    backend: str | None = column("string", "name of the torch.compile backend", user_data="name")
    fail_type: str | None = column("string", "class of the exception that ended it", user_data="name")
    fail_reason: str | None = column("string", "message of that exception", user_data="content")
    on_failure: str | None = column(
        "string",
        "what torch did about that exception: eager (runs the function uncompiled), fullgraph or error_on_graph_break "
        "(raised it because of that setting), raised (any other reason); NA in TORCH_TRACE logs",
    )
    limit: str | None = column("string", "recompile_limit or accumulated_recompile_limit, if this compile hit it")
    limit_value: int | None = column("Int64", "the number of entries that this limit allowed")
    limit_argument: bool | None = column(
        "boolean", "true if torch.compile(recompile_limit=...) set this limit; NA in TORCH_TRACE logs"
    )
    region: int | None = column(
        "Int64",
        "torch's number of the region, which is one torch.compile(isolate_recompiles=True) with entries of its own; NA "
        "outside of one, and in TORCH_TRACE logs",
    )
    restart_reasons: list[str] | None = column("json", "why the analysis of the frame began again", user_data="content")
    user_file: str | None = column("string", "file of the user's line at which it failed", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    stack: str | None = column("string", "key of the call stack that ends in the compiled frame, see stacks")
    blocks: dict[str, Any] | None = column(
        "json",
        "identical blocks that make up most of the graph: class, module, path of the first, count, ops of each, "
        "graph_ops; NA if no class has three, and in TORCH_TRACE logs",
        user_data="content",
    )

    @property
    def title(self) -> str:
        return f"{self.function or '?'} {self.outcome or ''}".strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBreak(Event):
    kind: ClassVar[str] = "graph_break"
    table: ClassVar[str] = "graph_breaks"
    shown_first: ClassVar[tuple[str, ...]] = ("reason", "user_line", "user_code", "hints")

    reason: str | None = column(
        "string", "what could not be traced, in one line", sources=("graph_breaks",), user_data="content"
    )
    break_id: str | None = column("string", "torch's id of this kind of break (GBxxxx)")
    explanation: str | None = column("string", "torch's explanation", user_data="content")
    hints: list[str] | None = column("json", "torch's hints", user_data="content")
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")

    @property
    def title(self) -> str:
        return self.reason or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase(Event):
    kind: ClassVar[str] = "phase"
    table: ClassVar[str] = "phases"
    shown_first: ClassVar[tuple[str, ...]] = ("name", "duration_s")

    name: str | None = column(
        "string", "torch's name of the phase, or VecISA.check_build", sources=("phases",), user_data="name"
    )
    parent: str | None = column("string", "enclosing phase", user_data="name")
    depth: int | None = column("Int64", "number of enclosing phases")

    @property
    def title(self) -> str:
        return self.name or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact(Event):
    kind: ClassVar[str] = "artifact"
    table: ClassVar[str] = "artifacts"

    name: str | None = column(
        "string", "torch's name: dynamo_output_graph, inductor_output_code, ...", sources=("trace",), user_data="name"
    )
    size: int | None = column("Int64", "size of its text in UTF-8", unit="bytes")
    digest: str | None = column("string", "key of the stored text; NA if the session's limit for texts was reached")
    stack: str | None = column("string", "key of the call stack that wrote it, if it was outside of any compile")

    @property
    def title(self) -> str:
        return self.name or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicDecision(Event):
    kind: ClassVar[str] = "dynamic_decision"
    table: ClassVar[str] = "dynamic_decisions"

    source: str | None = column(
        "string",
        "input or attribute that torch made dynamic automatically",
        sources=("dynamic",),
        user_data="torch_source",
    )
    dim: str | None = column("string", "the dimension, or scalar", user_data="name")
    reason: str | None = column("string", "torch's reason", user_data="content")
    cached: str | None = column("string", "previous value", user_data="content")
    new: str | None = column("string", "new value", user_data="content")

    @property
    def title(self) -> str:
        return f"{self.source} made dynamic: {self.cached} -> {self.new}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmConfig(Event):
    """How vLLM compiles one part of a model; one row for each time that it compiles one."""

    kind: ClassVar[str] = "vllm_config"
    table: ClassVar[str] = "vllm_configs"
    shown_first: ClassVar[tuple[str, ...]] = ("model", "part", "mode", "cudagraph_mode", "compile_sizes", "range_ends")

    model: str | None = column("string", "name or path of the model", user_data="path", sources=("trace",))
    part: str | None = column(
        "string", "part of the model: vLLM's prefix, such as backbone or eagle_head", user_data="name"
    )
    mode: str | None = column(
        "string", "vLLM's compilation mode: VLLM_COMPILE, DYNAMO_TRACE_ONCE, ...", user_data="name"
    )
    backend: str | None = column("string", "what compiles the pieces: inductor or eager", user_data="name")
    cudagraph_mode: str | None = column(
        "string", "which CUDA graphs vLLM captures: NONE, PIECEWISE, FULL, ...", user_data="name"
    )
    compile_sizes: list[int] | None = column("json", "sizes with a compile of their own")
    range_ends: list[int] | None = column("json", "largest sizes of the ranges; a range begins after the one before")
    splitting_ops: list[str] | None = column(
        "json", "operators at which the graph is cut; they are not compiled", user_data="name"
    )
    custom_ops: list[str] | None = column(
        "json", "vLLM's own operators that are switched on (+) or off (-)", user_data="name"
    )
    enabled_passes: list[str] | None = column(
        "json", "vLLM's passes over the graph that are switched on", user_data="name"
    )
    inductor_passes: list[str] | None = column("json", "other passes that the user added", user_data="name")
    inductor_partition: bool | None = column("boolean", "true if Inductor cuts the graph, after its passes")
    dynamic_shapes: str | None = column("string", "how sizes are made dynamic: BACKED, UNBACKED, ...", user_data="name")
    evaluates_guards: bool | None = column("boolean", "true if the guards on sizes are kept")
    origin: str | None = column("string", "fresh_compile or aot_cache_hit, if vLLM logged it", user_data="name")

    @property
    def title(self) -> str:
        return f"vLLM compiles {self.part or 'a model'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmCompile(Event):
    """The compile of one piece for one range of sizes."""

    kind: ClassVar[str] = "vllm_compile"
    table: ClassVar[str] = "vllm_compiles"
    shown_first: ClassVar[tuple[str, ...]] = ("part", "piece", "range_start", "range_end", "duration_s")

    part: str | None = column("string", "part of the model, see vllm_configs", sources=("trace",), user_data="name")
    piece: str | None = column(
        "string", "vLLM's name of the subgraph: submod_0; its graph is the text vllm_submod_0", user_data="name"
    )
    position: int | None = column("Int64", "position among the pieces that are compiled, from 0")
    pieces: int | None = column("Int64", "pieces that are compiled")
    range_start: int | None = column("Int64", "smallest size that it is compiled for")
    range_end: int | None = column("Int64", "largest size that it is compiled for")
    is_cudagraph_size: bool | None = column(
        "boolean", "true for a single size that vLLM marks as a CUDA graph capture size; false for a range"
    )
    graph_ops: int | None = column("Int64", "calls in its graph, before the passes")

    @property
    def title(self) -> str:
        return f"vLLM compiles {self.piece or '?'} for sizes {self.range_start} to {self.range_end}"
