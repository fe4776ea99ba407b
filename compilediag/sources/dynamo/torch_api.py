"""Private names of torch's Dynamo, its stances, `aot_compile` and the structured trace, and of what all groups of
sources ask of the compile that runs.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import functools
import logging
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..hooks.torch_names import (
    HookPoint,
    TorchName,
    caller_frames,
    declare_parameters,
    fields,
    find_frame,
    hook_points,
    is_frame_of,
)

CONVERT = "torch._dynamo.convert_frame"
EVAL_FRAME = "torch._C._dynamo.eval_frame"
EVAL_FRAMES = "torch._dynamo.eval_frame"
UTILS = "torch._dynamo.utils"
PGO = "torch._dynamo.pgo"
OUTPUT_GRAPH = "torch._dynamo.output_graph"
PACKAGE = "torch._dynamo.package"
GUARDS = "torch._dynamo.guards"

#: See every timed phase, and what torch announces at one point of time.
EVENT_START, EVENT_END, INSTANT_EVENT = hook_points(
    UTILS, "ChromiumEventLogger", "log_event_start", "log_event_end", "log_instant_event"
)
#: Called with each finished CompilationMetrics. `record_compilation_metrics`, which calls it, cannot be watched: each
#: thread's metrics context holds a reference to it from the thread's first compile on.
METRICS_RECORDED = HookPoint(UTILS, "add_compilation_metrics_to_chromium")
#: torch 2.15: traces and lowers what `torch.compiler.precompile.capture` captures, without Dynamo and its metrics.
PRECOMPILED = HookPoint("torch._precompile", "PrecompiledModule._compile", required=False)
#: Called when all entries of a frame failed, with the entries and the frame.
ALL_ENTRIES_FAILED = HookPoint(CONVERT, "get_and_maybe_log_recompilation_reasons")
#: Created once per graph break.
GRAPH_BREAK = HookPoint("torch._dynamo.output_graph", "GraphCompileReason.__post_init__")
#: Traces a function: the one that is compiled, and each one that is inlined, in its caller's call of this.
FUNCTION_TRACED = HookPoint("torch._dynamo.symbolic_convert", "InstructionTranslatorBase.run")
#: Called when the trace of a frame is complete, before its graph goes to the backend, which `run` calls.
TRACE_COMPLETE = HookPoint(OUTPUT_GRAPH, "OutputGraph.mark_bytecode_tracing_stop")
#: Called first when no entry of a frame's code fits. What converts the frame is not itself watched: torch counts the
#: frames above it to leave its own out of logs.
CONVERSION_STARTS = HookPoint(CONVERT, "increment_frame")
#: Created with the result of a conversion; holds the new entry if there is one.
CONVERSION_RESULT = HookPoint("torch._dynamo.types", "ConvertFrameReturn.__init__")
#: Called with the number of entries and the compile id; returns whether a limit is reached, and which.
LIMIT_CHECK = HookPoint(CONVERT, "exceeds_recompile_limit")
#: Drops an entry when an object that its guards refer to is gone.
ENTRY_INVALIDATED = HookPoint(GUARDS, "CheckFunctionManager.invalidate")
#: Drop all entries of a code object; both modules call their own reference.
RESET_CODE = (HookPoint("torch._dynamo", "reset_code"), HookPoint("torch._dynamo.eval_frame", "reset_code"))
#: Packages of compiled code on disk: written, read (raises if that fails), looked up (None if there is none).
PACKAGE_WRITTEN = HookPoint(PACKAGE, "DiskDynamoStore.write")
PACKAGE_READ = HookPoint(PACKAGE, "DynamoStore.load_cache_entry")
PACKAGE_LOOKED_UP = HookPoint(PACKAGE, "DiskDynamoCache.load")
#: The profile of an earlier run is read, that of this run is written.
PROFILE_READ = HookPoint(PGO, "get_local_code_state")
PROFILE_WRITTEN = HookPoint(PGO, "write_local_impl")
PROFILE_PATH = TorchName(PGO, "code_state_path")

#: Captures a function for `aot_compile` and strict export, in a compile context of its own.
CAPTURE = HookPoint(CONVERT, "_fullgraph_capture_frame")
AOT_COMPILE = TorchName("torch._dynamo.aot_compile", "aot_compile_fullgraph")
TRACED_FUNCTION = TorchName(CONVERT, "get_traced_fn")
#: The region of `torch.compile(isolate_recompiles=True)` that runs in this thread, and the entries of one. Since 2.13.
REGION = TorchName(EVAL_FRAME, "get_eval_frame_isolate_recompiles_id", required=False)
REGION_ENTRIES = TorchName(EVAL_FRAME, "_get_cache_entries_for_region", required=False)

#: Sets a stance, wherever a program does so; the stance that is set.
SET_STANCE = HookPoint("torch._dynamo.decorators", "_set_stance")
STANCE = TorchName(EVAL_FRAMES, "_stance")
#: Called at each compiled call; what it does depends on the stance.
CALLBACK_OF_STANCE = HookPoint(EVAL_FRAMES, "_callback_from_stance")
#: Called before torch raises under `fail_on_recompile`, and at each conversion.
TENSOR_SEARCH = HookPoint(CONVERT, "has_tensor_in_frame")
#: Calls what converts a frame. What it raises leaves the compiled call; a setting can suppress what that raises.
CONVERSION = HookPoint(CONVERT, "CatchErrorsWrapper.__call__")
#: The code of the wrapper of a function that is not compiled, but what it calls is.
DISABLING_WRAPPER = TorchName("torch._dynamo.decorators", "_nonrecursive_disable_wrapper_code")
#: Called by the stances that compile the second call, with how often the function was called.
EXAMPLE_INPUTS = HookPoint(EVAL_FRAMES, "_get_or_add_example_inputs")
#: Finds the first guard that fails: of an entry at a recompile, and of code that was compiled ahead of time.
GUARDS_COMPARED = HookPoint(GUARDS, "GuardManagerWrapper.check_verbose")

#: The limit that `torch.compile(recompile_limit=...)` was given, on objects of this class. Since 2.13.
OWN_LIMIT = TorchName(CONVERT, "ConvertFrameAssert._recompile_limit", required=False)

COMPILE_CONTEXT = TorchName("torch._guards", "CompileContext.try_get")
CACHE_ENTRIES = TorchName(EVAL_FRAME, "_debug_get_cache_entry_list")
COMPILED_CODES = TorchName(CONVERT, "input_codes")
FRAME_CALLBACK = TorchName(EVAL_FRAME, "get_eval_frame_callback")
SET_STRATEGY = TorchName(EVAL_FRAME, "set_code_exec_strategy")
FRAME_STRATEGY = TorchName("torch._dynamo.types", "FrameExecStrategy")
FRAME_ACTION = TorchName("torch._dynamo.types", "FrameAction")
#: What counting calls needs.
FOR_CALLS = (CACHE_ENTRIES, COMPILED_CODES, FRAME_CALLBACK, SET_STRATEGY, FRAME_STRATEGY, FRAME_ACTION)

#: The logger of the structured trace. It feeds any handler, without a variable set.
TRACE_LOGGER = TorchName("torch._logging._internal", "trace_log")
#: Names of files -> torch's numbers for them, which count from 0 in the order of the table.
FILE_NAMES = TorchName("torch._logging.structured", "INTERN_TABLE")
TRACING_CONTEXT = TorchName("torch._guards", "TracingContext.extract_stack")
#: The function that writes a record.
WRITER = "trace_structured"
#: The function that writes the records of a guard, and how many frames further in we run at most.
_GUARD_WRITER, _NEAR = "_log_guard", 40
#: Record -> its field -> the variable that torch makes it from, in the function that gives the record's fields.
_VARIABLES = {
    "create_symbol": {"symbol": "sympy_expr", "val": "val", "vr": "range_str", "source": "source"},
    "create_unbacked_symbol": {"symbol": "symbol", "vr": "vr"},
    "symbolic_shape_specialization": {"symbol": "a", "value": "tgt", "reason": "msg", "user_stack": "user_tb"},
    "guard_added_fast": {"expr": "g"},
}

_READ = (
    *fields("torch._guards", "CompileContext", "compile_id"),
    *fields(FUNCTION_TRACED.module, "InstructionTranslatorBase", "f_code", "parent", "lineno", "output"),
    *fields("torch._dynamo.types", "GuardedCode", "code", "guard_manager", "compile_id"),
    *fields("torch._dynamo.types", "ConvertFrameReturn", "guarded_code", "apply_to_code"),
    *fields("torch._dynamo.output_graph", "GraphCompileReason", "reason", "user_stack", "graph_break"),
    *fields(CONVERT, "ConvertFrameBox", "error_on_graph_break"),
    *fields(GUARDS, "CheckFunctionManager", "guard_manager"),
    *fields(GUARDS, "GuardManagerWrapper", "cache_entry"),
    *fields(UTILS, "CompilationMetrics", "compile_id", "is_forward", "fail_type", "fail_reason", "start_time_us"),
    *fields(EVAL_FRAMES, "DynamoStance", "stance", "skip_guard_eval_unsafe"),
    *fields("torch._dynamo.aot_compile", "AOTCompiledFunction", "_artifacts"),
    *fields("torch._dynamo.aot_compile", "CompileArtifacts", "original_code"),
    *fields("torch.fx.experimental.symbolic_shapes", "ShapeEnv", "var_to_sources"),
)

#: Operations of nodes that compute something.
_CALLS = ("call_function", "call_method", "call_module")
#: torch's replacement for the guards of an entry whose object is gone.
DELETED_GUARDS = TorchName(GUARDS, "DeletedGuardManagerWrapper")
#: How torch begins the reason of a break at a branch on data; its log gets a longer text.
JUMP = "generic_jump"

#: What the hooks read.
declare_parameters(
    {
        EVENT_START: "self event_name time_ns metadata",
        EVENT_END: "self event_name time_ns metadata start_time_ns",
        INSTANT_EVENT: "self event_name time_ns metadata",
        METRICS_RECORDED: "c",
        PRECOMPILED: "self",
        ALL_ENTRIES_FAILED: "cache_entries|cache_entry frame backend skip_logging",
        GRAPH_BREAK: "self",
        FUNCTION_TRACED: "self",
        TRACE_COMPLETE: "self",
        CONVERSION_RESULT: "self",
        LIMIT_CHECK: "cache_size compile_id",
        ENTRY_INVALIDATED: "self obj_str",
        PACKAGE_WRITTEN: "self cache_entry path",
        PACKAGE_READ: "self key",
        PACKAGE_LOOKED_UP: "self fn",
        PROFILE_READ: "cache_key",
        PROFILE_WRITTEN: "cache_key pickled_code",
        CALLBACK_OF_STANCE: "callback",
        TENSOR_SEARCH: "frame",
        CONVERSION: "self frame",
        EXAMPLE_INPUTS: "frame",
        GUARDS_COMPARED: "self x",
    }
)


def current_compile_id() -> Any:
    """torch's id of the compile that runs in this thread: one object per attempt; None outside of a compile.

    torch restores the same object for the lazy backward of a compile, in whatever thread that runs.
    """
    # As COMPILE_CONTEXT.get_loaded()(), but this runs at most hooks.
    context = sys.modules[COMPILE_CONTEXT.module].CompileContext.try_get()
    return None if context is None else context.compile_id


def compiling_code() -> tuple[types.CodeType, Any] | None:
    """The code object that Dynamo compiles in this thread and its backend, from the frame of `_compile`.

    The start of a compile is announced without the function's name; a few frames up it is a local variable.
    """
    frame = find_frame(12, CONVERT, "_compile")
    local = {} if frame is None else frame.f_locals
    code = local.get("code")
    return (code, local.get("compiler_fn")) if isinstance(code, types.CodeType) else None


def compiling_graph() -> Any:
    """The graph that Dynamo hands to the backend in this thread, from the frame that does so; None if not found."""
    frame = find_frame(12, OUTPUT_GRAPH, "call_user_compiler")
    return None if frame is None else getattr(frame.f_locals.get("gm"), "graph", None)


def is_call(node: Any) -> bool:
    """True for a node that computes something."""
    return node.op in _CALLS


#: A module around a call, as torch writes it: its path in the program, and its class.
Module = tuple[str, Any]
#: A call of a graph: the modules around it, outermost first, and what makes two calls the same.
ModuleOp = tuple[tuple[Module, ...], tuple[object, ...]]
#: A call of a graph: the stack in which it was traced, as text, the paths of the modules around it, outermost first,
#: and what is called.
TracedOp = tuple[str | None, tuple[str, ...], str | int]


def read_ops(graph: Any) -> tuple[list[ModuleOp], list[TracedOp]]:
    """The calls of a graph, in both forms.

    A size that is a symbol counts as any: comparing symbols would add guards.
    """
    of_modules: list[ModuleOp] = []
    traced: list[TracedOp] = []
    for node in filter(is_call, graph.nodes):
        modules = tuple((node.meta.get("nn_module_stack") or {}).values())
        target = None if node.op == "call_module" else node.target
        shape = getattr(node.meta.get("example_value"), "shape", ())
        of_modules.append((modules, (node.op, target, tuple(size if type(size) is int else None for size in shape))))
        # The graph keeps a function alive, so its number is its own.
        called = node.target if isinstance(node.target, str) else id(node.target)
        traced.append((node.meta.get("stack_trace"), tuple(path for path, _ in modules), called))
    return of_modules, traced


def backend_name(compiler_fn: Callable[..., Any] | None) -> str | None:
    """The name of a backend, under the wrappers that torch puts around it."""
    for _ in range(8):
        inner = getattr(compiler_fn, "_torchdynamo_orig_backend", None) or getattr(
            compiler_fn, "_torchdynamo_orig_callable", None
        )
        if inner is None:
            break
        compiler_fn = inner
    name = getattr(compiler_fn, "compiler_name", None) or getattr(compiler_fn, "__name__", None)
    return name if isinstance(name, str) else None


def jump_text() -> str | None:
    """The text that torch logs for the break at a branch on data in this thread: with explanation and hints."""
    for frame in caller_frames(12):
        if frame.f_code.co_name == "jump_graph_break":
            error = frame.f_locals.get("exc")
            return None if error is None else str(error)
    return None


def cache_entries(entries: Any) -> list[Any]:
    """The earlier entries in look-up order: torch 2.13 passes a list, 2.11 the first of a linked chain."""
    if isinstance(entries, (list, tuple)):
        return list(entries)
    chain = []
    while entries is not None:
        chain.append(entries)
        entries = entries.next
    return chain


def entries_of(code: types.CodeType) -> list[Any]:
    """The compiled entries of a code object, of all regions."""
    return list(CACHE_ENTRIES.get_loaded()(code))


@functools.cache
def _has_regions() -> bool:
    return REGION.exists() and REGION_ENTRIES.exists()


def current_region() -> int | None:
    """The region of `isolate_recompiles` that this thread runs in; None outside of one, and before torch 2.13."""
    number = REGION.get_loaded()() if _has_regions() else -1
    return None if number < 0 else int(number)


def looked_up_entries(code: types.CodeType) -> list[Any]:
    """The entries that torch compares with a call: those of the thread's region and those of no region."""
    if not _has_regions():
        return entries_of(code)
    region, of_region = current_region(), REGION_ENTRIES.get_loaded()
    return [*(() if region is None else of_region(code, region)), *of_region(code, -1)]


def converted_frame(depth: int = 8) -> Any:
    """The frame whose conversion has just begun in this thread; None if it is not found."""
    frame = find_frame(depth, CONVERT, "__call__")
    return None if frame is None else frame.f_locals.get("frame")


def converted_code(depth: int = 8) -> types.CodeType | None:
    """The code object of `converted_frame`."""
    return getattr(converted_frame(depth), "f_code", None)


def entry_guards(check: Any) -> Any:
    """The guards of the entry that a CheckFunctionManager belongs to; None if the entry was dropped."""
    guards = getattr(check, "guard_manager", None)
    return None if type(guards).__name__ == DELETED_GUARDS.name else guards


def is_dead(entry: Any) -> bool:
    """True for an entry that torch dropped because an object that its guards refer to is gone."""
    return getattr(entry.guard_manager, "invalidation_reason", None) is not None


def entry_number(entry: Any) -> int:
    """The place of an entry among the compiles of its frame."""
    return entry.compile_id.frame_compile_id or 0


def leave_alone(code: types.CodeType) -> None:
    """Dynamo runs this code of ours as it is, also where it would compile everything that is called."""
    action = FRAME_ACTION.get_loaded()
    SET_STRATEGY.get_loaded()(code, FRAME_STRATEGY.get_loaded()(action.SKIP, action.DEFAULT))


def get_setting(name: str) -> Any:
    """The value of one of Dynamo's settings that is in force in this thread."""
    return getattr(sys.modules["torch._dynamo.config"], name)


def compiles_frame(frame: types.FrameType) -> bool:
    """True for the frame of torch that compiles a function."""
    return is_frame_of(frame, CONVERT, "_compile")


def is_conversion(frame: types.FrameType) -> bool:
    """True for the frame that compiles a function, and for those that call it and decide what a failure means."""
    return compiles_frame(frame) or is_frame_of(frame, CONVERT, "__call__")


def traced_stack(error: BaseException | None) -> Sequence[Any]:
    """The frames that torch traced when an exception of its own ended that, outermost first; none for others."""
    return tuple(getattr(error, "real_stack", None) or ())


def traced_code(model: Any) -> types.CodeType | None:
    """The code of the function that torch traces for a function or a module; None if it finds none."""
    try:
        function, _ = TRACED_FUNCTION.get_loaded()(model)
    except (AttributeError, RuntimeError, TypeError):
        return None
    return getattr(function, "__code__", None)


def describe_capture(module: Any) -> dict[str, Any]:
    """function, file, line and backend of a capture of `torch.compiler.precompile`, from its `PrecompiledModule`."""
    function = getattr(module, "_fn", None)
    if function is not None and not isinstance(function, types.FunctionType):
        function = getattr(type(function), "forward", None)
    code = getattr(function, "__code__", None)
    return {
        "function": getattr(code, "co_name", None),
        "file": getattr(code, "co_filename", None),
        "line": getattr(code, "co_firstlineno", None),
        "backend": getattr(module, "_backend", None),
    }


@dataclass(frozen=True)
class AheadEntry:
    """Code that was compiled ahead of time, as if it was an entry."""

    guard_manager: Any
    compile_id: None = None


def is_refusing(depth: int = 8) -> bool:
    """True in the callback of the stance `fail_on_recompile`."""
    return find_frame(depth, EVAL_FRAMES, "fail_callback") is not None


def is_about_to_compile() -> bool:
    """True while what converts a frame looks for tensors: if there are any, it compiles next."""
    frames = list(caller_frames(20))
    places = [at for at, frame in enumerate(frames) if frame.f_globals.get("__name__") == CONVERT]
    if not places or is_refusing(20):
        return False
    around = frames[places[-1] + 1 : places[-1] + 2]
    return not any(frame.f_code is DISABLING_WRAPPER.get_loaded() for frame in around)


def find_forward(function: Any) -> tuple[Any, tuple[types.CodeType, ...]]:
    """What a call of a function runs with the same arguments, and the code of torch in between, outermost first.

    For the bound method that calls a module that is its `forward`; None if the module has hooks, which can change the
    arguments.
    """
    cls = sys.modules["torch"].nn.Module
    if not isinstance(function, types.MethodType) or function.__func__ is not cls.__call__:
        return function, ()
    module: Any = function.__self__
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    forward = None if any(getattr(module, kind, None) for kind in kinds) else module.forward
    return forward, (cls._wrapped_call_impl.__code__, cls._call_impl.__code__)


def refused_ahead() -> types.CodeType | None:
    """The function that was compiled ahead of time and whose guards are compared in this thread; None if none is."""
    for frame in caller_frames(8):
        if frame.f_globals.get("__name__") == AOT_COMPILE.module:
            artifacts = getattr(frame.f_locals.get("self"), "_artifacts", None)
            return getattr(artifacts, "original_code", None)
    return None


def trace_logger() -> logging.Logger:
    TRACE_LOGGER.owner()
    return logging.getLogger("torch.__trace")


def record_asked_for() -> tuple[str, Callable[[], Any], Callable[[], Any]] | None:
    """The record for which torch asks, two frames up, whether anybody listens: its name, and the functions that give
    its metadata and its payload. None where something else asks.
    """
    caller = sys._getframe(2)
    if caller.f_code.co_name != WRITER:
        return None
    local = caller.f_locals
    name, metadata, payload = local.get("name"), local.get("metadata_fn"), local.get("payload_fn")
    return (name, metadata, payload) if isinstance(name, str) and callable(metadata) and callable(payload) else None


def build_record(metadata: Callable[[], Any], table: dict[str, int]) -> tuple[Any, dict[int, str]]:
    """A record's fields as torch would log them, and the names that its numbers stand for.

    The names that it added to `table` are removed again: a log that starts later has to contain each name once, at
    its first use.
    """
    before = len(table)
    try:
        record = metadata()
        return record, dict(enumerate(table))
    finally:
        while len(table) > before:
            table.popitem()


def read_variables(kind: str, metadata: Callable[[], Any]) -> dict[str, Any] | None:
    """What a record would be built from, field by field, and the user's stack. None if torch keeps it elsewhere: then
    `build_record` gives the record as torch does.

    torch's own way takes 2 ms per record, to look up the lines of all its frames: a quarter of the compile if shapes
    are dynamic.
    """
    names = _VARIABLES.get(kind)
    if names is None or not isinstance(metadata, types.FunctionType):
        return None
    cells = dict(zip(metadata.__code__.co_freevars, metadata.__closure__ or (), strict=True))
    if not cells.keys() >= {*names.values()}:
        return None
    found = {field: cells[name].cell_contents for field, name in names.items()}
    if kind == "symbolic_shape_specialization":
        env = cells["self"].cell_contents if "self" in cells else None
        found["sources"] = list(getattr(env, "var_to_sources", {}).get(found["symbol"], ()))
    else:
        found["user_stack"] = TRACING_CONTEXT.get_loaded()()
    return found


def find_guard_prefix() -> str | None:
    """What torch's log says before a guard: "eval", or "eval [guard suppressed]" where it made no guard.

    torch's short record of a guard leaves this out; the function that writes it is on the stack.
    """
    logging_frames = (frame for frame in caller_frames(_NEAR) if frame.f_code.co_name == _GUARD_WRITER)
    found = next((frame.f_locals.get("prefix") for frame in logging_frames), None)
    return found if isinstance(found, str) else None
