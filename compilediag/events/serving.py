"""What vLLM writes to torch's structured trace when it compiles a model.

vLLM cuts the graph of a model at some operators, such as attention, and compiles each other piece once for every range
of sizes (numbers of tokens) that it expects, before it serves requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Event, column


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
