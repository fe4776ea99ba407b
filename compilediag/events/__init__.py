"""The typed events: one frozen dataclass per kind; every field is a documented column of a table.

A source or a decoder makes an event, a session stores it, and it is one row of its table. A column is declared once,
here: `docs/tables.md`, the SQL schema, the DataFrames, redaction, export, coverage and the row types of the JavaScript
are derived from the declaration. Missing is None (NA in a DataFrame), never 0 or "".

`time_ns` is when the event began (Unix time in nanoseconds). Sources leave `rank` and `pid` None: the recorder writes
those of its process.

To add a table: declare its events here, add the class to `KINDS`, increase `SCHEMA_VERSION`, and add a property to
`TableProperties` in `storage/data.py`. Nothing else names tables one by one.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Protocol, TypedDict, TypeVar, cast

from ..formatting import format_milliseconds

# What every event has, and what makes a field a column

NS_PER_S = 1_000_000_000

#: What a column can hold of the user's: a path; the name of a guarded value, as users write it ("source") or as torch
#: does ("torch_source"); a name of code, such as that of a function ("name"); the key of a cache, which can be a path;
#: the configuration of a kernel, of which names and numbers are shown ("numbers"); code; or a text that can quote
#: values ("content").
UserData = Literal["path", "source", "torch_source", "name", "key", "numbers", "code", "content"]


class ColumnSpec(TypedDict):
    """What is declared of a column; the arguments of `column` say what each part means."""

    dtype: str
    doc: str
    unit: str | None
    user_data: UserData | None
    sources: tuple[str, ...]
    #: The Python type of the values of a column of JSON: "list[str]"; None for other columns.
    shape: str | None


def describe_column(
    dtype: str, doc: str, unit: str | None = None, user_data: UserData | None = None, sources: tuple[str, ...] = ()
) -> ColumnSpec:
    """The declaration of a column; see `column`."""
    return {"dtype": dtype, "doc": doc, "unit": unit, "user_data": user_data, "sources": sources, "shape": None}


def column(
    dtype: str, doc: str, unit: str | None = None, user_data: UserData | None = None, sources: tuple[str, ...] = ()
) -> Any:
    """A field that is a column.

    `dtype` is "string", "Int64", "float64", "boolean" or "json" (a list or dict). `unit` is the unit of a number:
    "s", "ms", "us" or "bytes". `user_data` says what the cells can hold of the user's, None if nothing that a redacted
    report must leave out: it replaces paths and keys, removes keys of containers from sources, keeps names and numbers,
    and drops code, content, and all that is not what its column declares. `sources` names the sources that fill the
    column.
    """
    return field(default=None, metadata={**describe_column(dtype, doc, unit, user_data, sources)})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What every event has. `kind` and `table` belong to the class; `event_id` is None until it is read from a file."""

    kind: ClassVar[str]
    table: ClassVar[str]
    #: The columns that a DataFrame of this kind begins with, behind `compile_id`; the others follow as declared.
    shown_first: ClassVar[tuple[str, ...]] = ()

    time_ns: int
    compile_id: str | None = None
    compile_key: str | None = None
    duration_s: float | None = None
    rank: int | None = None
    pid: int | None = None
    event_id: int | None = None

    @property
    def title(self) -> str:
        """One line that names this event in a list of all events."""
        return self.kind

    @property
    def end_ns(self) -> int:
        """When it ended; an event without a duration ends when it begins."""
        return self.time_ns + round((self.duration_s or 0) * NS_PER_S)


_STEP = "the program's own step in which it began, see cd.step(); NA without one"
_THREAD = "thread that compiled it: Python's identifier, as %(thread)d of logging; NA in TORCH_TRACE logs"

# A compile, its phases and texts, and what ended or repeated it; what vLLM compiles. vLLM cuts the graph of a model at
# some operators, such as attention, and compiles each other piece once for every range of sizes (numbers of tokens)
# that it expects, before it serves requests.


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
        "float64",
        "one evaluation of all guards, measured once by torch with cold caches: more than a call pays",
        unit="us",
    )
    guard_check_us: float | None = column(
        "float64",
        "one check of all guards that holds, with warm caches, as a call pays it; NA unless calls=True, and in "
        "TORCH_TRACE logs",
        unit="us",
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
    loop: dict[str, Any] | None = column(
        "json",
        "the Python loop whose unrolled operations make up most of the graph: file, line, function, count (how often "
        "its body is in the graph), ops of each, graph_ops, body and module (the function that it calls, and the path "
        "of its module); NA if none is unrolled 16 times, and in TORCH_TRACE logs",
        user_data="content",
    )
    step: int | None = column("Int64", _STEP + "; torch's recompile user context sets it too")
    thread: int | None = column("Int64", _THREAD)

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
class TracedFunction(Event):
    """What Dynamo took to trace one function at one place: the compiled function, or one that is inlined."""

    kind: ClassVar[str] = "trace_function"
    table: ClassVar[str] = "trace_functions"
    shown_first: ClassVar[tuple[str, ...]] = ("function", "line", "count", "own_s", "total_s", "call_line")

    function: str | None = column(
        "string", "name of the code object that was traced", sources=("tracing",), user_data="name"
    )
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    call_line: int | None = column("Int64", "line of the caller that calls it; NA for the compiled function")
    count: int | None = column(
        "Int64", "times that it was traced there: again where an analysis began again, a generator for each value"
    )
    own_s: float | None = column("float64", "tracing it, without the functions that it calls", unit="s")
    total_s: float | None = column("float64", "tracing it and the functions that it calls", unit="s")
    stack: str | None = column(
        "string", "key of the function and its callers up to the compiled function, the same in any session"
    )
    caller: str | None = column("string", "key of its caller; NA for the compiled function")

    @property
    def title(self) -> str:
        return self.function or self.kind


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


# A recompile and the guards that failed

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
    "all_passed",
    "other",
)

_LOOKALIKE = "another object or class of `actual` that looks the same as the expected one; NA for any other value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recompile(Event):
    kind: ClassVar[str] = "recompile"
    table: ClassVar[str] = "recompiles"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "line",
        "guard_source",
        "guard_kind",
        "expected",
        "actual",
        "lost_s",
        "user_line",
        "user_code",
    )

    function: str | None = column(
        "string", "name of the compiled code object", sources=("recompiles",), user_data="name"
    )
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    region: int | None = column("Int64", "region of its compile: only entries of the same region are compared")
    closest_compile_id: str | None = column(
        "string", "id of the compared entry: the one with the fewest failing guards"
    )
    closest_compile_key: str | None = column("string", "compile key of that entry")
    guard_source: str | None = column(
        "string", "the guarded value, as the user would write it: x.size()[0], self.n", user_data="source"
    )
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "value that the compared entry requires", user_data="content")
    actual: str | None = column("string", "value at this call", user_data="content")
    lookalike: str | None = column("string", _LOOKALIKE, user_data="content")
    user_file: str | None = column("string", "file of the line that created the guard", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    reason: str | None = column("string", "torch's text for the compared entry", user_data="content")
    entries_checked: int | None = column("Int64", "earlier entries of the function, none of which fits the call")
    entries_analyzed: int | None = column(
        "Int64",
        "of these, those whose failing guards were searched for: full takes the likeliest 8; lean takes all if there "
        "are at most 8, else the latest",
    )
    guards_failed: int | None = column("Int64", "failing guards found in the analyzed entries together")
    lost_s: float | None = column("float64", "duration of its compile, backward included", unit="s")
    step: int | None = column("Int64", _STEP)
    thread: int | None = column("Int64", _THREAD)

    @property
    def title(self) -> str:
        return f"{self.function or '?'}: {self.guard_source or self.guard_kind}: {self.expected} -> {self.actual}"


#: What a `refused_by` column can name: the stances of `torch.compiler.set_stance`, code compiled ahead of time, and
#: `session.end_warmup("raise")`.
REFUSED_BY = (
    "eager_on_recompile",
    "fail_on_recompile",
    "force_eager",
    "eager_then_compile",
    "aot_eager_then_compile",
    "skip_guard_eval_unsafe",
    "aot_compile",
    "end_warmup",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCall(Event):
    """Calls that no compiled code fits, and that torch did not compile: because of a stance, or of `aot_compile`.

    The guards that failed are in `guard_failures`, under the same compile key, which no compile has.
    """

    kind: ClassVar[str] = "refused_call"
    table: ClassVar[str] = "refused_calls"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "line",
        "refused_by",
        "ran",
        "count",
        "guard_source",
        "expected",
        "actual",
    )

    function: str | None = column(
        "string", "name of the code object that was called", sources=("refusals",), user_data="name"
    )
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    refused_by: str | None = column(
        "string",
        "the stance of torch.compiler.set_stance, aot_compile for code that was compiled ahead of time, or end_warmup",
    )
    ran: str | None = column(
        "string", "eager, aot_eager (compiled with that backend instead), raised, or unchecked (guards are skipped)"
    )
    count: int | None = column("Int64", "calls since the previous row of the same compile key; NA if not counted")
    guard_source: str | None = column(
        "string", "the guarded value that failed in the compared entry; NA if there is no entry", user_data="source"
    )
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "value that the compared entry requires", user_data="content")
    actual: str | None = column("string", "value at this call", user_data="content")
    reason: str | None = column("string", "text of that guard", user_data="content")
    entries_checked: int | None = column("Int64", "entries whose guards were evaluated")
    closest_compile_id: str | None = column(
        "string", "id of the compared entry: the one with the fewest failing guards"
    )
    closest_compile_key: str | None = column("string", "compile key of that entry")
    user_file: str | None = column("string", "file of the line that created the guard", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    set_file: str | None = column("string", "file of the user's line that set the stance", user_data="path")
    set_line: int | None = column("Int64", "number of that line")
    stack: str | None = column("string", "key of the call stack that ends in the function, see stacks")
    step: int | None = column("Int64", _STEP)

    @property
    def title(self) -> str:
        return f"{self.function or '?'} {self.ran or ''} ({self.refused_by})"


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardFailure(Event):
    kind: ClassVar[str] = "guard_failure"
    table: ClassVar[str] = "guard_failures"
    shown_first: ClassVar[tuple[str, ...]] = (
        "guard_source",
        "guard_kind",
        "expected",
        "actual",
        "is_first",
        "entry_compile_id",
        "user_line",
    )

    entry_compile_id: str | None = column("string", "compile id of the earlier entry", sources=("recompiles",))
    entry_compile_key: str | None = column("string", "compile key of that entry")
    guard_source: str | None = column("string", "the guarded value", user_data="source")
    guard_kind: str | None = column("string", "one of the guard kinds")
    expected: str | None = column("string", "value that the entry requires", user_data="content")
    actual: str | None = column("string", "value at this call", user_data="content")
    lookalike: str | None = column("string", _LOOKALIKE, user_data="content")
    is_first: bool | None = column("boolean", "true for the guard that torch itself reports first")
    fail_count: int | None = column("Int64", "times this guard's subtree has failed so far, by torch's own count")
    guard: str | None = column(
        "string",
        "text of the guard with torch's comment; rows of other entries leave out a comment that the compared entry has",
        user_data="code",
    )
    user_file: str | None = column("string", "file of the line that created the guard", user_data="path")
    user_line: int | None = column("Int64", "number of that line")

    @property
    def title(self) -> str:
        return f"{self.guard_source or self.guard_kind}: {self.expected} -> {self.actual}"


# A lookup or store in one of the compiler's caches

#: What a `cache` column can name.
CACHES = (
    "fx_graph",
    "aot_autograd",
    "autotune",
    "triton_bundle",
    "triton_template",
    "pgo",
    "dynamo_code",
    "py_code",
    "cpp_code",
    "cuda_code",
    "triton_code",
)
#: Those that hold whole compiled graphs. Others (a module's file, a kernel's binary) hold parts of those.
COMPILE_CACHES = ("fx_graph", "aot_autograd")

#: The sources that watch the caches of compiled graphs, and all that watch a cache.
COMPILE_CACHE_SOURCES = ("fx_graph_cache", "aot_autograd_cache", "remote_cache")
CACHE_SOURCES = (*COMPILE_CACHE_SOURCES, "dynamo_cache", "code_caches", "triton_bundle", "pgo")

#: Values of the `action` column of lookups. `write`: the file of a found entry is written again. `load`: an artifact of
#: `torch.compiler.load_cache_artifacts` becomes an entry.
CACHE_ACTIONS = ("look_up", "store", "write", "load", "clear")

#: Results of a lookup or a store. `written`: the file of the module was written again. `loaded`: the artifact is an
#: entry.
CACHE_OUTCOMES = (
    "hit",
    "miss",
    "guard_miss",
    "bypass",
    "disabled",
    "saved",
    "failed",
    "written",
    "loaded",
    "evicted",
    "cleared",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheLookup(Event):
    kind: ClassVar[str] = "cache_lookup"
    table: ClassVar[str] = "cache_lookups"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "cache",
        "action",
        "outcome",
        "tier",
        "saved_s",
        "reason",
        "key_diff",
    )

    function: str | None = column("string", "name of the code object whose compile looked it up", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    cache: str | None = column("string", "one of the caches", sources=CACHE_SOURCES)
    tier: str | None = column("string", "local (this machine's disk), remote (a server), memory (this process)")
    action: str | None = column(
        "string",
        "look_up, store, write (the file of a found entry is written again), load (an artifact of "
        "load_cache_artifacts) or clear",
    )
    outcome: str | None = column("string", "one of the cache outcomes")
    key: str | None = column("string", "the cache key", user_data="key")
    reason: str | None = column("string", "why it was bypassed, missed or failed", user_data="content")
    exception_type: str | None = column(
        "string", "class of the exception behind a bypass or a failure", user_data="name"
    )
    guard: str | None = column(
        "string", "for a guard miss: the guards of the cached entry that failed", user_data="code"
    )
    taken_s: float | None = column("float64", "duration of the compile whose result was saved", unit="s")
    saved_s: float | None = column("float64", "compile time that a hit saved, as torch reports it", unit="s")
    forward_saved_s: float | None = column("float64", "part of saved_s for the forward", unit="s")
    backward_saved_s: float | None = column("float64", "part of saved_s for the backward", unit="s")
    bytes: int | None = column("Int64", "size of what was read or written, if torch's call shows it", unit="bytes")
    kernels: int | None = column("Int64", "kernels that were generated for the entry, or that a bundle contains")
    counted_again: dict[str, int] | None = column(
        "json",
        "for a hit: torch's counters that increase as if the graph were compiled again -> by how much",
        user_data="numbers",
    )
    files: int | None = column("Int64", "files that a bundle of kernels was made from or unpacked to")
    forward_key: str | None = column(
        "string", "for an aot_autograd entry: the fx_graph key of its forward", user_data="key"
    )
    backward_key: str | None = column(
        "string", "for an aot_autograd entry: the fx_graph key of its backward", user_data="key"
    )
    nearest_key: str | None = column(
        "string", "the earlier key of the same function with the fewest differences", user_data="key"
    )
    nearest_session: str | None = column(
        "string",
        "when and where that key was seen, if it was in an earlier session; NA if it was in this one",
        user_data="content",
    )
    key_diff: list[str] | None = column(
        "json", "components that differ from nearest_key, as `name: old -> new`", user_data="content"
    )
    step: int | None = column("Int64", _STEP)

    @property
    def title(self) -> str:
        return f"{self.cache} {self.outcome}"


# A choice that was timed, a kernel that was built

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
    step: int | None = column("Int64", _STEP)

    @property
    def title(self) -> str:
        time = self.fail_reason or "no time" if self.time_ms is None else format_milliseconds(self.time_ms)
        return f"{self.op} {self.choice}: {time}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCompile(Event):
    kind: ClassVar[str] = "kernel_compile"
    table: ClassVar[str] = "kernels"
    shown_first: ClassVar[tuple[str, ...]] = ("name", "language", "outcome", "duration_s")

    name: str | None = column("string", "name of the kernel", sources=("code_caches", "triton_jit"), user_data="name")
    language: str | None = column("string", "triton, cpp, cuda or python")
    where: str | None = column("string", "what compiled it: process (this one), thread, subprocess, fork or spawn")
    worker_pid: int | None = column("Int64", "process that compiled it, if known")
    outcome: str | None = column("string", "compiled, cached (nothing to compile) or failed")
    fail_reason: str | None = column("string", "why it failed", user_data="content")
    step: int | None = column("Int64", _STEP)

    @property
    def title(self) -> str:
        return f"{self.name} {self.outcome}"


# What ran: calls of compiled code and of functions that run eagerly after all, and what became of CUDA graphs

#: What a `ran` column can name: a compiled entry, or the function itself, under torch.compile but not compiled.
RAN = ("compiled", "eager")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls(Event):
    """Calls of one entry, or of one function that torch gave up on, since its row before: sum them up."""

    kind: ClassVar[str] = "calls"
    table: ClassVar[str] = "calls"
    shown_first: ClassVar[tuple[str, ...]] = ("function", "line", "ran", "count", "total_s")

    function: str | None = column("string", "name of the code object that was compiled", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    ran: str | None = column(
        "string",
        "compiled (the entry of compile_id), or eager (the function itself, because torch gave up on it)",
        sources=("calls",),
    )
    count: int | None = column(
        "Int64", "calls that began since the previous row of this entry, or since `time` in its first row"
    )
    timed: int | None = column("Int64", "calls with a known duration; not those that raised, no generators")
    total_s: float | None = column(
        "float64", "time that these took on the host, callees included, compiles excluded", unit="s"
    )
    min_s: float | None = column("float64", "shortest call so far", unit="s")
    first_s: float | None = column("float64", "duration of the first timed call, in the row that counts it", unit="s")

    @property
    def title(self) -> str:
        return f"{self.function or '?'} ran {self.ran} {self.count}x"


#: What an `action` column of CUDA graphs can name. `replays` and `eager` (calls that ran without a graph) have a
#: count, and are there only if they were asked for; `limit`: too many re-records, from there the function runs
#: eagerly; `demoted`: torch copies an input before each replay from there on, because its address changed too often;
#: `stuck`: it runs in its warm-up again and again and is never captured; `invalidated`: outputs that were
#: alive when a later run took their memory; `overwritten`: torch's error when one of them was used after all.
CUDAGRAPH_ACTIONS = (
    "warmup",
    "record",
    "rerecord",
    "skip",
    "partition",
    "replays",
    "eager",
    "invalidated",
    "overwritten",
    "limit",
    "demoted",
    "stuck",
    "failed",
    "user_capture",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaGraphAction(Event):
    kind: ClassVar[str] = "cudagraph"
    table: ClassVar[str] = "cudagraphs"
    shown_first: ClassVar[tuple[str, ...]] = (
        "function",
        "line",
        "mode",
        "action",
        "sizes",
        "mismatch",
        "reason",
        "input",
    )

    action: str | None = column(
        "string", "one of the CUDA graph actions", sources=("cudagraphs", "cudagraph_skips", "captures")
    )
    function_id: int | None = column("Int64", "torch's number of the compiled graph")
    graph_id: int | None = column("Int64", "torch's number of the captured graph")
    parent_id: int | None = column("Int64", "the captured graph that ran before it on its path; NA at a root")
    function: str | None = column("string", "name of the code object that was compiled", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "first line of the code object")
    mode: str | None = column("string", "forward, backward or inference")
    backend: str | None = column(
        "string", "trees (mode=reduce-overhead), no_trees (the same without trees), cudagraphs (that backend) or user"
    )
    duration_ms: float | None = column("float64", "duration of the warm-up or capture", unit="ms")
    mismatch: str | None = column("string", "for a re-record: torch's name of the violated invariant")
    input: str | None = column(
        "string", "input that violated it: its position, and its name if known", user_data="content"
    )
    reason: str | None = column(
        "string", "torch's text: why it was skipped, re-recorded, or is not replayed", user_data="content"
    )
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    count: int | None = column("Int64", "number of times, for an action that is counted")
    counted: bool | None = column("boolean", "for a skip: true if torch's counter cudagraph_skips includes it")
    sizes: str | None = column(
        "string", "sizes of the inputs that can differ at the next call: 4x3, 8", user_data="content"
    )
    copied_inputs: int | None = column("Int64", "inputs that are copied to a fixed address before every replay")
    partitions: int | None = column("Int64", "parts into which the graph was split so that the others can be captured")
    captured_parts: int | None = column("Int64", "parts that are captured")
    nodes: int | None = column("Int64", "nodes of the captured graph")
    pool_bytes: int | None = column("Int64", "size of the graphs' memory pool afterwards", unit="bytes")
    device: str | None = column("string", "device of the graph")
    step: int | None = column("Int64", _STEP)

    @property
    def title(self) -> str:
        return f"{self.action} {self.function or ''}".strip()


# Where a compile was asked for, what became of its symbolic shapes, what an export met, collectives of a graph

#: What an `action` column of symbolic shapes can name. `created`: a size or number of an input became a symbol;
#: `unbacked`: a symbol without a value, as `.item()` gives; `specialized`: a symbol was given one value for good;
#: `guarded`: an expression has to hold for the compiled code; `suppressed`: torch evaluated an expression and made no
#: guard of it; `assumed`: a value that only data can tell was taken
#: from the example inputs; `undecided`: an expression that only data can decide, an error.
SHAPE_ACTIONS = ("created", "unbacked", "specialized", "guarded", "suppressed", "assumed", "undecided")

#: What a `problem` column of an export can name. `data_dependent`: a value that only data can tell was made constant;
#: `constraint`: sizes that were asked to be dynamic got a guard; the others are of a custom operator's fake kernel.
EXPORT_PROBLEMS = ("data_dependent", "constraint", "missing_fake_kernel", "mismatched_fake_kernel")


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFrame(Event):
    """A frame of a call stack. Stacks share their outer frames, so each frame is stored once, with its caller."""

    kind: ClassVar[str] = "stack_frame"
    table: ClassVar[str] = "stacks"
    shown_first: ClassVar[tuple[str, ...]] = ("function", "file", "line", "code")

    stack: str | None = column(
        "string", "key of the stack that ends in this frame, the same in any session", sources=("phases",)
    )
    caller: str | None = column("string", "key of the stack without this frame; NA for the outermost frame")
    function: str | None = column("string", "name of the code object", user_data="name")
    file: str | None = column("string", "file of the code object", user_data="path")
    line: int | None = column("Int64", "line that runs; first line of a compiled frame")
    code: str | None = column("string", "text of that line; NA for torch's code", user_data="code")
    call: str | None = column(
        "string", "text of the call that runs, whole; NA for torch's code and in logs", user_data="code"
    )
    parameters: list[str] | None = column(
        "json",
        "parameters of the function in the order of its signature: x, *args, k= (keyword only), **kwargs",
        user_data="name",
    )
    assigned: list[str] | None = column(
        "json", "those of them that were assigned again before that line", user_data="name"
    )

    @property
    def title(self) -> str:
        return self.function or self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolicShape(Event):
    kind: ClassVar[str] = "symbolic_shape"
    table: ClassVar[str] = "symbolic_shapes"

    action: str | None = column("string", "one of the shape actions", sources=("trace",))
    symbol: str | None = column("string", "torch's name of the symbol: s0, u0", user_data="name")
    source: str | None = column(
        "string",
        "what the symbol stands for: L['x'].size()[0]; for an expression, each symbol of it",
        user_data="torch_source",
    )
    expression: str | None = column(
        "string", "the expression that was guarded, assumed or left undecided", user_data="content"
    )
    symbols: dict[str, str] | None = column(
        "json", "each symbol of the expression -> what it stands for, as torch names it", user_data="content"
    )
    value: str | None = column(
        "string", "value when it was created, or the value that it was specialized to", user_data="content"
    )
    range: str | None = column("string", "values that it can have", user_data="content")
    reason: str | None = column("string", "torch's reason", user_data="content")
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    user_stack: str | None = column("string", "key of the user's stack")
    torch_stack: str | None = column("string", "key of torch's stack")

    @property
    def title(self) -> str:
        return f"{self.action}: {self.expression or self.symbol}" + (f" = {self.value}" if self.value else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportProblem(Event):
    kind: ClassVar[str] = "export_problem"
    table: ClassVar[str] = "export_problems"

    problem: str | None = column("string", "one of the export problems", sources=("trace",))
    op: str | None = column("string", "for a fake kernel: the operator", user_data="name")
    expression: str | None = column("string", "expression that had to be decided", user_data="content")
    result: str | None = column("string", "value that was assumed", user_data="content")
    reason: str | None = column("string", "torch's reason", user_data="content")
    symbols: dict[str, str] | None = column(
        "json", "each symbol of the expression -> what it is the size or value of", user_data="content"
    )
    values: dict[str, str] | None = column("json", "the user's locals and symbols at that line", user_data="content")
    derivation: list[str] | None = column(
        "json", "steps that led to the expression, first one first", user_data="content"
    )
    user_file: str | None = column("string", "file of the user's line", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    user_code: str | None = column("string", "text of that line", user_data="code")
    user_stack: str | None = column("string", "key of the user's stack")
    torch_stack: str | None = column("string", "key of torch's stack")

    @property
    def title(self) -> str:
        return f"{self.problem}: {self.op or self.expression}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective(Event):
    kind: ClassVar[str] = "collective"
    table: ClassVar[str] = "collectives"

    position: int | None = column("Int64", "position in its graph, from 0", sources=("trace",))
    op: str | None = column("string", "name of the collective operator", user_data="name")
    outputs: list[str] | None = column(
        "json", "one text per output: dtype, sizes and strides, if torch logged them", user_data="content"
    )
    estimate_us: float | None = column("float64", "duration that torch estimates, if it logged one", unit="us")

    @property
    def title(self) -> str:
        return f"{self.op} at {self.position}"


# The end of the warm-up, after which nothing should compile

#: What an `on_compile` column can name: count what compiles from there on, warn of it too, or raise before it compiles.
ON_COMPILE = ("count", "warn", "raise")


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupEnd(Event):
    """The warm-up of a process ended. What compiles later is an incident; see `Session.incidents`."""

    kind: ClassVar[str] = "warmup_end"
    table: ClassVar[str] = "warmup_ends"

    on_compile: str | None = column("string", "count, warn or raise: what happens when something compiles later")
    ended_by: str | None = column("string", "end_warmup (the program called it), or warmup_steps (it was asked for)")
    user_file: str | None = column("string", "file of the user's line that ended it", user_data="path")
    user_line: int | None = column("Int64", "number of that line")
    step: int | None = column("Int64", "the step that begins without a warm-up; NA without steps")

    @property
    def title(self) -> str:
        return "warm-up ended"


# Where a session comes from: the state of its sources, and the ranks of its job

#: What a `status` column of a source can name.
SOURCE_STATES = ("active", "off", "unavailable", "failed")
#: What a `reason_code` column of a source can name. The first four are no gap in the data: the user did not ask for
#: the source, the detail level leaves it out, this machine has nothing to watch, or the watch is over. `not_in_logs`:
#: TORCH_TRACE logs do not contain it; `unread_files`: parts of the session could not be read; `lost`: its file can't
#: be written any more.
SOURCE_REASONS = (
    "not_requested",
    "detail_level",
    "nothing_to_watch",
    "watch_ended",
    "not_started",
    "missing_api",
    "errors",
    "not_in_logs",
    "unread_files",
    "lost",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus(Event):
    """The state of one source, written when it changes and when the watch ends; the last one counts."""

    kind: ClassVar[str] = "source"
    table: ClassVar[str] = "sources"
    shown_first: ClassVar[tuple[str, ...]] = ("name", "status", "reason", "events", "overhead_s")

    name: str | None = column("string", "name of the source", user_data="name")
    status: str | None = column("string", "active, unavailable, failed or off")
    reason_code: str | None = column("string", "one of the source reasons: why it is not active")
    reason: str | None = column("string", "the same in words", user_data="content")
    events: int | None = column("Int64", "events that it recorded")
    dropped: int | None = column("Int64", "events or payloads that it could not keep")
    overhead_s: float | None = column("float64", "time that its hooks took inside the user's program", unit="s")

    @property
    def title(self) -> str:
        return f"{self.name} {self.status}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMember(Event):
    """A rank of a job that was read group by group: of each group, one rank has rows in the other tables."""

    kind: ClassVar[str] = "rank_member"
    table: ClassVar[str] = "rank_members"

    like: int | None = column("Int64", "the rank of its group whose rows are in the other tables")
    digest: str | None = column("string", "digest of what the rank compiled and why, equal within the group")
    compiles: int | None = column("Int64", "compiles of this rank")
    compile_s: float | None = column("float64", "seconds that this rank compiled", unit="s")
    step_s: list[float | None] | None = column(
        "json", "seconds of each compile of this rank, in order; null if it was not timed"
    )
    logs: list[str] | None = column("json", "the files that were read", user_data="content")

    @property
    def title(self) -> str:
        return f"rank {self.rank} like rank {self.like}"


# All kinds, and their columns

#: Version of all tables together; session files of another one are refused.
#: 2: autotune, cudagraphs and kernels; more columns of cache_lookups.
#: 3: stacks, symbolic shapes, export problems and collectives.
#: 4: compile keys.
#: 5: calls and parameters of stack frames; blocks of compiles.
#: 6: analyzed entries of recompiles; ranks of a job that was read group by group.
#: 7: refused calls; limits and regions of compiles, and what torch did about a failure; what vLLM compiles.
#: 8: what looks the same as the expected object; symbols of guarded expressions.
#: 9: steps and threads; the end of the warm-up.
#: 10: what Dynamo took to trace each function; loops that are unrolled.
SCHEMA_VERSION = 11
KINDS: tuple[type[Event], ...] = (
    Compile,
    Recompile,
    GuardFailure,
    RefusedCall,
    CacheLookup,
    AutotuneChoice,
    CudaGraphAction,
    KernelCompile,
    GraphBreak,
    Phase,
    TracedFunction,
    Artifact,
    DynamicDecision,
    StackFrame,
    SymbolicShape,
    ExportProblem,
    Collective,
    Calls,
    VllmConfig,
    VllmCompile,
    WarmupEnd,
    RankMember,
    SourceStatus,
)
BY_TABLE: dict[str, type[Event]] = {cls.table: cls for cls in KINDS}
WITH_DURATION = (Compile, Phase, KernelCompile, CacheLookup, VllmCompile)
DURATION = describe_column("float64", "duration", unit="s")


def columns(cls: type[Event]) -> dict[str, ColumnSpec]:
    """The columns of a kind beside the common ones, in order, by name.

    `duration_s` is a common field of all events but a column only of the tables that list it.
    """
    return _COLUMNS[cls.table]


def _read_columns(cls: type[Event]) -> dict[str, ColumnSpec]:
    found = {"duration_s": DURATION} if cls in WITH_DURATION else {}
    for declared in dataclasses.fields(cls):
        if declared.metadata:
            spec = found[declared.name] = cast(ColumnSpec, dict(declared.metadata))
            if spec["dtype"] == "json":
                spec["shape"] = str(declared.type).removesuffix(" | None")
    return found


#: By table: a reload of a module makes other classes.
_COLUMNS = {cls.table: _read_columns(cls) for cls in KINDS}


def list_sources(cls: type[Event]) -> tuple[str, ...]:
    """The names of the sources that fill a table."""
    return tuple(dict.fromkeys(source for column in columns(cls).values() for source in column["sources"]))


# Typed rows: the events of one kind, wherever they are kept

E = TypeVar("E", bound=Event)


class Rows(Protocol):
    """Anything that gives the events of a kind: a session's file, a list in memory, a redacted session."""

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`; each has one."""
        ...


class RowList:
    """Events in memory as rows. An event without an `event_id` is numbered by its place, from 1."""

    def __init__(self, events: Iterable[Event]):
        by_kind: dict[type[Event], list[Any]] = defaultdict(list)
        for number, event in enumerate(events, 1):
            numbered = event if event.event_id is not None else dataclasses.replace(event, event_id=number)
            by_kind[type(event)].append(numbered)
        lost = LostSeconds()
        lost.add_compiles(by_kind[Compile])
        lost.add_recompiles(by_kind[Recompile])
        by_kind[Recompile] = lost.recompiles
        by_kind[SourceStatus] = keep_last_states(by_kind[SourceStatus])
        self._by_kind = by_kind

    def rows(self, kind: type[E]) -> Sequence[E]:
        """The events of one kind in the order of their `event_id`."""
        return sorted(self._by_kind.get(kind, ()), key=lambda event: event.event_id)


class LostSeconds:
    """Gives recompiles what their compiles know as events come: `lost_s`, the seconds of all that have the recompile's
    key, and the step, if the recompile has none.

    These are the forward, the lazy backward and compiled autograd. `lost_s` stays None while none of them has ended.
    """

    def __init__(self) -> None:
        self.recompiles: list[Recompile] = []
        self._seconds: dict[str, float] = {}
        self._steps: dict[str, int] = {}
        self._places: dict[str, list[int]] = defaultdict(list)

    def add_compiles(self, compiles: Iterable[Compile]) -> None:
        """Take compiles that were not taken before."""
        changed: set[str] = set()
        for compile in compiles:
            key = compile.compile_key
            if key is not None and compile.step is not None:
                self._steps.setdefault(key, compile.step)
            if key is not None and compile.duration_s is not None:
                self._seconds[key] = self._seconds.get(key, 0.0) + compile.duration_s
                changed.add(key)
        for key in changed & self._places.keys():
            for place in self._places[key]:
                self.recompiles[place] = self._complete(self.recompiles[place], key)

    def add_recompiles(self, recompiles: Iterable[Recompile]) -> None:
        """Take recompiles that were not taken before. One that has `lost_s` already keeps it."""
        for recompile in recompiles:
            key = recompile.compile_key
            if recompile.lost_s is None and key is not None:
                self._places[key].append(len(self.recompiles))
                self.recompiles.append(self._complete(recompile, key) if key in self._seconds else recompile)
            else:
                self.recompiles.append(recompile)

    def _complete(self, recompile: Recompile, key: str) -> Recompile:
        step = self._steps.get(key) if recompile.step is None else recompile.step
        return dataclasses.replace(recompile, lost_s=self._seconds[key], step=step)


def keep_last_states(states: Iterable[SourceStatus]) -> list[SourceStatus]:
    """The last state of each source of each process."""
    last: dict[tuple[object, ...], SourceStatus] = {}
    for state in states:
        last[state.rank, state.pid, state.name] = state
    return list(last.values())


#: What has a rank. A rank that compiled nothing at all has its sources.
RANKED: tuple[type[Event], ...] = (Compile, Recompile, CacheLookup, GraphBreak, Phase, SourceStatus)


def list_ranks(data: Rows) -> list[int]:
    """The ranks that the session has rows of, in order."""
    loaded = {row.like for row in data.rows(RankMember) if row.like is not None}
    return sorted(loaded | {row.rank for kind in RANKED for row in data.rows(kind) if row.rank is not None})


def has_ranks(data: Rows) -> bool:
    """Return whether the job has at least two ranks, so that they can be compared."""
    return len(list_ranks(data)) > 1 or len(data.rows(RankMember)) > 1
