"""The typed events: one frozen dataclass a kind, and nothing that is not in a documented column.

An event is made by a source or a decoder, kept by a session, and shown as one row of its table.
Each field is a column: its dtype and meaning stand here once, and `docs/tables.md`, the SQLite
schema and the DataFrames all come from them. Missing is None (NA in a DataFrame), never 0 or "".

`time_ns` is when the event began (Unix time in nanoseconds), so that `time_ns + duration_s` is its
end. `rank` and `pid` stay None where they are made: the recorder fills them in for its own process.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar

#: Kinds of guards that a `guard_kind` column can name.
GUARD_KINDS = (
    "tensor_size",
    "tensor_stride",
    "tensor_rank",
    "tensor_dtype",
    "tensor_device",
    "dispatch_keys",
    "requires_grad",
    "type",
    "value",
    "identity",
    "length",
    "dict_keys",
    "hasattr",
    "alias",
    "symbolic_shape",
    "global_state",
    "default_device",
    "mode_stack",
    "backend",
    "dead_reference",
    "other",
)


def column(dtype: str, doc: str) -> Any:
    """A field that is a column: `dtype` is "string", "Int64", "float64", "boolean" or "json" (a list or dict)."""
    return field(default=None, metadata={"dtype": dtype, "doc": doc})


@dataclass(slots=True, kw_only=True)
class Event:
    """What every event has. `kind` and `table` belong to the class."""

    kind: ClassVar[str]
    table: ClassVar[str]

    time_ns: int
    compile_id: str | None = None
    duration_s: float | None = None
    rank: int | None = None
    pid: int | None = None

    @property
    def title(self) -> str:
        """One line that names this event in a list of all events."""
        return self.kind


@dataclass(slots=True, kw_only=True)
class Compile(Event):
    kind: ClassVar[str] = "compile"
    table: ClassVar[str] = "compiles"

    function: str | None = column("string", "name of the compiled code object")
    file: str | None = column("string", "file of the code object")
    line: int | None = column("Int64", "first line of the code object")
    trigger: str | None = column("string", "what asked for it: dynamo, lazy_backward or compiled_autograd")
    is_recompile: bool | None = column("boolean", "true if the code object had entries and all failed")
    attempt: int | None = column("Int64", "attempts that were needed, less one: each graph break or restart adds one")
    outcome: str | None = column(
        "string", "ok, failed, skipped (runs eagerly from here on) or empty (nothing to compile in the frame)"
    )
    dynamo_s: float | None = column("float64", "s, the whole frame as torch's entire_frame_compile_time_s: holds aot_s")
    aot_s: float | None = column("float64", "s in the backend, AOTAutograd and below: holds inductor_s")
    inductor_s: float | None = column("float64", "s in Inductor: holds codegen_s")
    codegen_s: float | None = column("float64", "s generating, building and loading code")
    triton_s: float | None = column("float64", "s compiling triton kernels")
    guard_count: int | None = column("Int64", "guards of the new entry")
    guard_latency_us: float | None = column("float64", "us, one evaluation of all guards, measured by torch once")
    graph_ops: int | None = column("Int64", "calls in the graph")
    graph_nodes: int | None = column("Int64", "nodes of the graph")
    graph_inputs: int | None = column("Int64", "inputs of the graph")
    cache_size: int | None = column("Int64", "entries of this code object before this compile")
    backend: str | None = column("string", "name of the torch.compile backend")
    fail_type: str | None = column("string", "class of the exception that ended it")
    fail_reason: str | None = column("string", "message of that exception")
    limit: str | None = column("string", "recompile_limit or accumulated_recompile_limit, if this compile hit it")
    restart_reasons: list[str] | None = column("json", "why the analysis of the frame began again")

    @property
    def title(self) -> str:
        return f"{self.function or '?'} {self.outcome or ''}".strip()


@dataclass(slots=True, kw_only=True)
class Recompile(Event):
    kind: ClassVar[str] = "recompile"
    table: ClassVar[str] = "recompiles"

    function: str | None = column("string", "name of the compiled code object")
    file: str | None = column("string", "file of the code object")
    line: int | None = column("Int64", "first line of the code object")
    closest_compile_id: str | None = column("string", "the earlier entry that came nearest to fitting")
    guard_source: str | None = column("string", "what was guarded, as the user would write it: x.size()[0], self.n")
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "what the closest entry needs")
    actual: str | None = column("string", "what it is now")
    user_file: str | None = column("string", "file of the line that made the guard")
    user_line: int | None = column("Int64", "that line's number")
    user_code: str | None = column("string", "that line's text")
    reason: str | None = column("string", "torch's own text for the closest entry")
    entries_checked: int | None = column("Int64", "earlier entries whose guards were evaluated")
    guards_failed: int | None = column("Int64", "failing guards that were found, all entries together")
    lost_s: float | None = column("float64", "s that it cost: the duration of its compile, backward included")

    @property
    def title(self) -> str:
        return f"{self.function or '?'}: {self.guard_source or self.guard_kind}: {self.expected} -> {self.actual}"


@dataclass(slots=True, kw_only=True)
class GuardFailure(Event):
    kind: ClassVar[str] = "guard_failure"
    table: ClassVar[str] = "guard_failures"

    entry_compile_id: str | None = column("string", "compile id of the earlier entry")
    guard_source: str | None = column("string", "what was guarded")
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "what the entry needs")
    actual: str | None = column("string", "what it is now")
    is_first: bool | None = column("boolean", "true for the guard that torch itself met first")
    fail_count: int | None = column("Int64", "times this guard's subtree has failed so far, by torch's own count")
    guard: str | None = column("string", "the guard's own text")
    user_file: str | None = column("string", "file of the line that made the guard")
    user_line: int | None = column("Int64", "that line's number")

    @property
    def title(self) -> str:
        return f"{self.guard_source or self.guard_kind}: {self.expected} -> {self.actual}"


@dataclass(slots=True, kw_only=True)
class CacheLookup(Event):
    kind: ClassVar[str] = "cache_lookup"
    table: ClassVar[str] = "cache_lookups"

    cache: str | None = column("string", "fx_graph or aot_autograd")
    tier: str | None = column("string", "local or remote")
    outcome: str | None = column("string", "hit, miss, guard_miss, bypass, disabled, saved or failed")
    key: str | None = column("string", "the cache key")
    reason: str | None = column("string", "why it was bypassed, or how it missed")
    taken_s: float | None = column("float64", "s that the compile took whose result was then saved")
    saved_s: float | None = column("float64", "s of compile time that a hit saved, by torch's own account")
    nearest_key: str | None = column("string", "the earlier key of this session with the fewest differences")
    key_diff: list[str] | None = column("json", "components that differ from nearest_key, as `name: old -> new`")

    @property
    def title(self) -> str:
        return f"{self.cache} {self.outcome}"


@dataclass(slots=True, kw_only=True)
class GraphBreak(Event):
    kind: ClassVar[str] = "graph_break"
    table: ClassVar[str] = "graph_breaks"

    reason: str | None = column("string", "what could not be traced, in one line")
    break_id: str | None = column("string", "torch's id of this kind of break (GBxxxx)")
    explanation: str | None = column("string", "torch's explanation")
    hints: list[str] | None = column("json", "torch's hints")
    user_file: str | None = column("string", "file of the user's line")
    user_line: int | None = column("Int64", "that line's number")
    user_code: str | None = column("string", "that line's text")

    @property
    def title(self) -> str:
        return self.reason or self.kind


@dataclass(slots=True, kw_only=True)
class Phase(Event):
    kind: ClassVar[str] = "phase"
    table: ClassVar[str] = "phases"

    name: str | None = column("string", "torch's name of the phase")
    parent: str | None = column("string", "the phase around it")
    depth: int | None = column("Int64", "phases around it")

    @property
    def title(self) -> str:
        return self.name or self.kind


@dataclass(slots=True, kw_only=True)
class Artifact(Event):
    kind: ClassVar[str] = "artifact"
    table: ClassVar[str] = "artifacts"

    name: str | None = column("string", "torch's name: dynamo_output_graph, inductor_output_code, ...")
    size: int | None = column("Int64", "bytes of its text")
    digest: str | None = column("string", "key of the kept text; NA if the session's payload budget was spent")

    @property
    def title(self) -> str:
        return self.name or self.kind


@dataclass(slots=True, kw_only=True)
class DynamicDecision(Event):
    kind: ClassVar[str] = "dynamic_decision"
    table: ClassVar[str] = "dynamic_decisions"

    source: str | None = column("string", "the input or attribute that torch made dynamic by itself")
    dim: str | None = column("string", "the dimension, or scalar")
    reason: str | None = column("string", "torch's reason")
    cached: str | None = column("string", "what it was")
    new: str | None = column("string", "what it is now")

    @property
    def title(self) -> str:
        return f"{self.source} made dynamic: {self.cached} -> {self.new}"


@dataclass(slots=True, kw_only=True)
class SourceStatus(Event):
    """The state of one source, written when it changes and when the watch ends; the last one counts."""

    kind: ClassVar[str] = "source"
    table: ClassVar[str] = "sources"

    name: str | None = column("string", "name of the source")
    status: str | None = column("string", "active, unavailable, failed or off")
    reason: str | None = column("string", "why it is not active")
    events: int | None = column("Int64", "events that it recorded")
    dropped: int | None = column("Int64", "events or payloads that it could not keep")
    overhead_s: float | None = column("float64", "s that its hooks took inside the user's program")

    @property
    def title(self) -> str:
        return f"{self.name} {self.status}"


KINDS: tuple[type[Event], ...] = (
    Compile,
    Recompile,
    GuardFailure,
    CacheLookup,
    GraphBreak,
    Phase,
    Artifact,
    DynamicDecision,
    SourceStatus,
)
BY_TABLE: dict[str, type[Event]] = {cls.table: cls for cls in KINDS}


def columns(cls: type[Event]) -> dict[str, dict[str, str]]:
    """The columns of a kind beside the common ones: name -> {"dtype", "doc"}, in order.

    `duration_s` is a common field of all events but a column only of the tables that list it.
    """
    own = {f.name: dict(f.metadata) for f in dataclasses.fields(cls) if f.metadata}
    return {**({"duration_s": dict(DURATION)} if cls in WITH_DURATION else {}), **own}


DURATION = {"dtype": "float64", "doc": "s from begin to end"}
WITH_DURATION = (Compile, Phase)
