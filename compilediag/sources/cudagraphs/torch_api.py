"""Private names of torch for creating, skipping and replaying CUDA graphs.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import sys
from collections.abc import Iterator
from typing import Any

from ...system.interrupts import pass_on
from ..hooks.torch_names import (
    HookPoint,
    NothingToWatch,
    TorchName,
    caller_frames,
    declare_parameters,
    fields,
    hook_points,
)

TREES = "torch._inductor.cudagraph_trees"
SCHEDULER = "torch._inductor.scheduler"
CONFIG = "torch._inductor.config"
#: Called at a skip. Each of these modules holds a reference of its own.
SKIPS = tuple(
    HookPoint(module, "log_cudagraph_skip_and_bump_counter")
    for module in (
        "torch._inductor.output_code",
        "torch._inductor.compile_fx",
        TREES,
        "torch._dynamo.backends.cudagraphs",
    )
)
#: Decide whether a graph is captured.
GRAPH_BUILT, GRAPH_FINISHED = hook_points("torch._inductor.output_code", "CompiledFxGraph", "__init__", "post_compile")
#: Cuts a graph into parts; `should_partition(node)` gives the reason.
GRAPH_PARTITIONED = HookPoint(SCHEDULER, "Scheduler.graph_partition")
CUT_REASON = TorchName(SCHEDULER, "Scheduler.should_partition")
#: The manager warms up, records and replays the graphs of one device and thread.
RECORDED, WARMED_UP, REPLAYED_IN_TREE, FUNCTION_RUN = hook_points(
    TREES, "CUDAGraphTreeManager", "record_function", "run_eager", "execute_node", "_run"
)
OUTPUTS_INVALIDATED, START_CHECKED = hook_points(
    TREES, "CUDAGraphTreeManager", "dealloc_current_path_weakrefs", "check_warn_on_unable_to_start_executing"
)
#: torch 2.15 counts how often the address of an input changed that an earlier graph makes.
ADDRESSES_COUNTED = HookPoint(TREES, "CUDAGraphTreeManager._update_cudagraph_managed_input_rerecord", required=False)
#: The program asks for one more warm-up of the function that runs in its warm-up now.
WARMUP_EXTENDED = HookPoint(TREES, "CUDAGraphTreeManager.mark_warmup_incomplete", required=False)
#: Called with the function to capture.
FUNCTION_WRAPPED = HookPoint(TREES, "cudagraphify_impl")
#: Every capture in Python.
CAPTURE_STARTS, CAPTURE_ENDS, REPLAYED = hook_points(
    "torch.cuda.graphs", "CUDAGraph", "capture_begin", "capture_end", "replay"
)
_READ = (
    *fields(TREES, "CUDAGraphTreeManager", "current_node", "roots", "ids_to_funcs", "id_to_compile_id", "id_to_mode"),
    *fields(TREES, "CUDAGraphTreeManager", "device_index", "warmed_up_functions", "warned_functions"),
    *fields(TREES, "CUDAGraphTreeManager", "cuda_graphs_thread_pool"),
    *fields(TREES, "CUDAGraphNode", "children", "check_invariants", "expected_dead_indices_before_graph"),
    *fields(TREES, "CUDAGraphNode", "path_stacktraces", "path_weakrefs", "outputs_weakrefs", "stack_traces", "id"),
    *fields(TREES, "CUDAGraphNode", "_path_from_root", "_is_cuda_graph_recorded_tensor", "wrapped_function"),
    *fields("torch._inductor.cudagraph_utils", "WrappedFunction", "model", "static_input_idxs", "placeholders"),
    *fields("torch._inductor.output_code", "CompiledFxGraph", "fx_kwargs", "cudagraph_info", "partition_maps"),
    *fields("torch._inductor.output_code", "CompiledFxGraph", "disabled_cudagraphs_reason", "counter_deltas"),
)
#: Of torch 2.15: the function that warms up; by parent and function, the inputs that are copied.
WARMING_UP = TorchName(TREES, "CUDAGraphTreeManager.active_warmup_function", required=False)
DEMOTED = TorchName(TREES, "CUDAGraphTreeManager.demoted_cudagraph_managed_idxs", required=False)
#: The name of an invariant that broke, torch's text on it, and where the outputs were created that are alive and
#: should not be.
Broken = tuple[str, str, list[str]]
#: cuStreamGetCaptureInfo's status of a capture that goes on and has not failed.
_CAPTURING = 1

#: What the hooks read.
declare_parameters(
    {
        GRAPH_BUILT: "self",
        GRAPH_FINISHED: "self",
        GRAPH_PARTITIONED: "self",
        RECORDED: "self new_inputs function_id",
        WARMED_UP: "self new_inputs function_id",
        REPLAYED_IN_TREE: "self node new_inputs",
        FUNCTION_RUN: "self new_inputs function_id",
        OUTPUTS_INVALIDATED: "self",
        START_CHECKED: "self function_id",
        CAPTURE_STARTS: "self",
        CAPTURE_ENDS: "self",
        REPLAYED: "self",
        **dict.fromkeys(SKIPS, "msg"),
    }
)


def require_cuda() -> None:
    """NothingToWatch if this torch cannot capture anything. Looking for a GPU would initialize the driver."""
    if not sys.modules["torch"].backends.cuda.is_built():
        raise NothingToWatch("this torch was built without CUDA")


def is_capture_wanted() -> bool:
    """True while torch is configured to capture what it compiles."""
    return bool(sys.modules[CONFIG].triton.cudagraphs)


def running_tree() -> tuple[Any, Any] | None:
    """The tree manager and the id of the function that it runs in this thread; None outside of a tree."""
    for frame in caller_frames(12):
        if frame.f_globals.get("__name__") == TREES and "function_id" in frame.f_code.co_varnames:
            local = frame.f_locals
            return (local["self"], local["function_id"]) if "self" in local and "function_id" in local else None
    return None


def find_capturer() -> str:
    """What captures: trees, torch (another place of its own), or user."""
    for frame in caller_frames(12):
        module = frame.f_globals.get("__name__") or ""
        if module == TREES:
            return "trees"
        if module.startswith(("torch._inductor.", "torch._dynamo.")):
            return "torch"
    return "user"


def backend_mode() -> str | None:
    """What the backend `cudagraphs` compiles when it skips: forward, backward or inference; None elsewhere."""
    for frame in caller_frames(6):
        if frame.f_code.co_name == "backward_cudagraphs":
            return "backward"
        if frame.f_code.co_name == "forward_cudagraphs":
            return "inference" if frame.f_locals.get("is_inference") else "forward"
    return None


def pool_bytes(pool: Any) -> int:
    """Bytes that the caching allocator holds in segments of a pool."""
    memory = sys.modules["torch.cuda.memory"]
    return int(sum(segment["total_size"] for segment in memory.memory_snapshot(pool, include_traces=False)))


@functools.cache
def _driver() -> Any:
    """CUDA's driver library, which is loaded where there is a GPU; None where it is not."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        return driver if driver.cuStreamGetCaptureInfo_v2 and driver.cuGraphGetNodes else None
    except (OSError, AttributeError) as error:
        pass_on(error)
        return None


def count_nodes() -> int | None:
    """Nodes of the graph that the current stream captures now, before the capture ends: afterwards torch throws
    the graph away and keeps its executable form only. None if CUDA does not say.
    """
    driver = _driver()
    if driver is None:
        return None
    stream = ctypes.c_void_p(sys.modules["torch"].cuda.current_stream().cuda_stream)
    status, number, graph = ctypes.c_int(), ctypes.c_uint64(), ctypes.c_void_p()
    asked = driver.cuStreamGetCaptureInfo_v2(
        stream, ctypes.byref(status), ctypes.byref(number), ctypes.byref(graph), None, None
    )
    if asked != 0 or status.value != _CAPTURING or not graph.value:
        return None
    count = ctypes.c_size_t()
    return count.value if driver.cuGraphGetNodes(graph, None, ctypes.byref(count)) == 0 else None


def node_stack(node: Any) -> str | None:
    """The user's stack of a scheduler's node; None if torch does not know it."""
    inner = node.node
    origin = inner.get_origin_node() if inner is not None else None
    return None if origin is None else origin.meta.get("stack_trace")


def has_policy() -> bool:
    """True if a policy of the user's own, which torch 2.13 knows, says which graphs are captured."""
    return getattr(sys.modules[CONFIG], "cudagraph_policy", None) is not None


def current_device() -> str:
    return f"cuda:{sys.modules['torch'].cuda.current_device()}"


def graph_options(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options that a graph is compiled with, wherever in a call they are passed: `cudagraphs` is the flag that
    says whether it is to be captured, as it is now.
    """
    passed = (value for value in (*args, *kwargs.values()) if isinstance(value, dict) and "cudagraphs" in value)
    return next(passed, {})


def count_copied_inputs(manager: Any, function_id: Any, inputs: list[Any]) -> int:
    """How many inputs are copied in before every replay: those that are neither static nor made by an earlier graph
    of the same tree.
    """
    static, node = set(manager.ids_to_funcs[function_id].static_input_idxs), manager.current_node
    tensor = sys.modules["torch"].Tensor
    for place, value in enumerate(inputs):
        if node is not None and isinstance(value, tensor) and node._is_cuda_graph_recorded_tensor(value):
            static.add(place)
    parent = None if node is None else node.id
    return len(inputs) - len(static - demoted_inputs(manager, parent, function_id))


def demoted_inputs(manager: Any, parent: Any, function_id: Any) -> set[int]:
    """The inputs that torch 2.15 copies before each replay although an earlier graph makes them, by position."""
    return set(getattr(manager, DEMOTED.name, {}).get(parent, {}).get(function_id, ()))


def trees_logger() -> logging.Logger:
    """The logger on which torch 2.15 says, once, that a function has been captured for too many sizes."""
    return logging.getLogger(f"{TREES}.__cudagraphs")


def find_broken_invariant(manager: Any, function_id: Any, inputs: list[Any]) -> Broken | None:
    """Why no earlier recording of a function fits these inputs here; None if this is the first.

    Of several recordings, the one with the fewest differences is reported. The list is copied: on success, which is
    not to be expected here, torch would empty it.
    """
    node = manager.current_node
    earlier = (manager.roots if node is None else node.children).get(function_id)
    if not earlier:
        return None
    found = []
    for child in reversed(earlier):
        status, text = child.check_invariants(list(inputs))
        alive = [
            (child.path_stacktraces[depth] or {output: None})[output] or ""
            for depth, output in child.expected_dead_indices_before_graph
            if _is_live(child.path_weakrefs[depth][output])
        ]
        found.append((status.name, text(), alive))
    return min(found, key=lambda broken: broken[1].count("input name: ") or len(broken[2]))


def live_outputs(last: Any) -> Iterator[tuple[Any, list[str | None]]]:
    """The nodes of a path that have outputs which are alive, and the stacks of what made these; `last` is its end."""
    for node in last._path_from_root:
        outputs = zip(node.outputs_weakrefs, node.stack_traces or (), strict=False)
        alive = [stack for output, stack in outputs if _is_live(output)]
        if alive:
            yield node, alive


def _is_live(output: Any) -> bool:
    return output is not None and output() is not None
