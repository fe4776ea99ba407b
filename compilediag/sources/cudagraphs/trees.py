"""CUDA graphs of torch.compile: what is warmed up, what is recorded, what is recorded again and why.

Hooks are on what happens once: a warm-up, a recording. Only if the user asks for replays, how often each graph is
replayed, and how often a call runs without one, our code is on the path of every call. Those counts are written at most
once a second, and when the watch ends.
"""

from __future__ import annotations

import linecache
import logging
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...decode.records.torch_messages import (
    describe_demotion,
    find_user_columns,
    is_overwritten,
    parse_limit,
    parse_mismatch,
    parse_overwritten,
    parse_size_limit,
    parse_skip,
)
from ...events import CudaGraphAction
from ...system import clock
from ...system.own_errors import describe_error
from ..compile_context import CompileContext, EventSink, Made, PerThread
from ..dynamo.stack_frames import find_user_line
from ..dynamo.torch_api import current_compile_id
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import Callback, CountingSource, Source, hook, hook_before
from . import torch_api

#: CompileId objects of the functions of the backend `cudagraphs`, which does not pass them on to the tree.
backend_ids: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
#: Inputs whose sizes are listed, of those that are not static.
MAX_SIZES = 8


def describe_function(manager: Any, function_id: Any, context: CompileContext) -> dict[str, Any]:
    """The columns that all events of a function of a tree share."""
    compile_id = manager.id_to_compile_id.get(function_id)
    model = manager.ids_to_funcs[function_id].model
    by_backend = compile_id is None and model in backend_ids
    compile_id = backend_ids[model] if by_backend else compile_id
    key = context.keys.guess(compile_id)
    return {
        "function_id": function_id.id,
        "compile_id": None if compile_id is None else str(compile_id),
        "compile_key": key,
        "backend": "cudagraphs" if by_backend else "trees",
        "mode": manager.id_to_mode[function_id].name.lower(),
        "device": f"cuda:{manager.device_index}",
        **context.function_columns(key),
    }


def input_names(manager: Any, function_id: Any) -> tuple[str, ...]:
    """The names of a function's inputs in the compiled graph, in order; torch may not know the last ones."""
    return tuple(placeholder.name for placeholder in manager.ids_to_funcs[function_id].placeholders)


def changing_sizes(manager: Any, function_id: Any, inputs: list[Any]) -> str | None:
    """`4x3, 8`: the sizes of the inputs that may differ at the next call; None if there are none."""
    static = set(manager.ids_to_funcs[function_id].static_input_idxs)
    sizes = [
        "x".join(map(str, i.shape)) or "scalar" for n, i in enumerate(inputs) if hasattr(i, "shape") and n not in static
    ]
    more = f" and {len(sizes) - MAX_SIZES} more" if len(sizes) > MAX_SIZES else ""
    return (", ".join(sizes[:MAX_SIZES]) + more) or None


def make_action(columns: Callable[..., dict[str, Any]] | None, args: tuple[Any, ...], known: dict[str, Any]) -> Made:
    """The row of an action: the columns known when it happened, and those that `columns(*args)` parses from texts."""
    parsed = columns(*args) if columns is not None else {}
    return CudaGraphAction(**{**known, **{k: v for k, v in parsed.items() if v is not None}})


#: Runs in warm-up since the last capture after which a function is stuck; reported again at each doubling.
STUCK = 4
INVALIDATED = "it was alive when a later run reused its memory; using it is an error from now on"
WARMING_UP = "it ran in its warm-up again and was not captured"
EXTENDED = "torch.compiler.cudagraph_mark_warmup_incomplete() asked for another warm-up"
PENDING = "outputs of earlier steps still need their backward, so their memory cannot be reused"


class CudaGraphs(Source):
    name = "cudagraphs"
    checks = (torch_api.require_cuda,)
    #: What is known of the runs that a thread is in.
    _running = PerThread[list[dict[str, Any]]](list)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._filter = Callback(self, self._read_warning)
        #: Runs in warm-up since the last capture, of each function of each manager.
        self._eager: weakref.WeakKeyDictionary[Any, Counter[Any]] = weakref.WeakKeyDictionary()

    def open(self) -> None:
        torch_api.trees_logger().addFilter(self._filter)

    def close(self) -> None:
        torch_api.trees_logger().removeFilter(self._filter)

    @hook(torch_api.FUNCTION_WRAPPED, late=True)
    def _on_wrapped(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if "compile_id" not in kwargs:
            backend_ids[args[0]] = current_compile_id()

    def _begin(self) -> dict[str, Any]:
        begun = {"began_ns": time.perf_counter_ns(), "time_ns": clock.now_ns()}
        self._running.append(begun)
        return begun

    def _end(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was known when the call began, and its times."""
        begun = self._running.pop()
        milliseconds = (time.perf_counter_ns() - begun["began_ns"]) / 1e6
        return begun, {"time_ns": begun["time_ns"], "duration_ms": milliseconds}

    # A recording

    @hook_before(torch_api.RECORDED)
    def _before_recording(self, args: Args, kwargs: Kwargs) -> None:
        manager, inputs, function_id = args
        parent, begun = manager.current_node, self._begin()
        begun["known"] = {
            "parent_id": None if parent is None else parent.id.id,
            "sizes": changing_sizes(manager, function_id, inputs),
            "copied_inputs": torch_api.count_copied_inputs(manager, function_id, inputs),
        }
        begun["broken"] = torch_api.find_broken_invariant(manager, function_id, inputs)

    @hook_before(torch_api.CAPTURE_ENDS)
    def _before_capture_end(self, args: Args, kwargs: Kwargs) -> None:
        begun = self._running
        if begun and "known" in begun[-1]:
            begun[-1]["known"]["nodes"] = torch_api.count_nodes()

    @hook(torch_api.RECORDED, late=True)
    def _on_recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        begun, times = self._end()
        manager, _, function_id = args
        known = {**times, **begun["known"]}
        if error is not None:
            self._emit(manager, function_id, action="failed", reason=describe_error(error), **known)
            return
        self._runs(manager).pop(function_id, None)
        known["graph_id"] = manager.current_node.id.id
        known["pool_bytes"] = torch_api.pool_bytes(manager.cuda_graphs_thread_pool)
        broken = begun["broken"]
        if broken is None:
            self._emit(manager, function_id, action="record", **known)
        else:
            names = input_names(manager, function_id)
            self._emit(manager, function_id, _parse_rerecord, (broken, names), action="rerecord", **known)

    # A warm-up

    @hook_before(torch_api.WARMED_UP)
    def _before_warm_up(self, args: Args, kwargs: Kwargs) -> None:
        manager, inputs, function_id = args
        begun = self._begin()
        begun["again"] = function_id in manager.warmed_up_functions
        if not begun["again"]:
            begun["sizes"] = changing_sizes(manager, function_id, inputs)

    @hook(torch_api.WARMED_UP, late=True)
    def _warmed_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        begun, times = self._end()
        manager, _, function_id = args
        if error is not None:
            self._emit(manager, function_id, action="failed", reason=describe_error(error), **times)
        elif not begun["again"]:
            reason = begun.get("extended")
            self._emit(manager, function_id, action="warmup", sizes=begun["sizes"], reason=reason, **times)
        runs = self._runs(manager)
        runs[function_id] = count = runs[function_id] + 1
        if count >= STUCK and count & (count - 1) == 0:
            reason = begun.get("extended", WARMING_UP)
            self._emit(manager, function_id, action="stuck", reason=reason, count=count, **times)

    @hook(torch_api.WARMUP_EXTENDED, late=True)
    def _warmup_extended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Outside of a warm-up the call has no effect."""
        running = self._running
        if running and getattr(args[0], torch_api.WARMING_UP.name, None) is not None:
            running[-1]["extended"] = EXTENDED

    def _runs(self, manager: Any) -> Counter[Any]:
        return self._eager.setdefault(manager, Counter())

    @hook_before(torch_api.START_CHECKED)
    def _before_start_check(self, args: Args, kwargs: Kwargs) -> int | None:
        """When a check begins of a function that torch has not warned of."""
        manager, function_id = args
        return None if function_id in manager.warned_functions else clock.now_ns()

    @hook(torch_api.START_CHECKED, late=True)
    def _start_checked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, began_ns: int | None) -> None:
        """torch warns once of a function that can be neither captured nor replayed."""
        manager, function_id = args
        if began_ns is not None and function_id in manager.warned_functions:
            self._emit(manager, function_id, action="stuck", reason=PENDING, time_ns=began_ns)

    # Limits of torch 2.15 after which it goes on in another way

    @hook_before(torch_api.ADDRESSES_COUNTED)
    def _before_count(self, args: Args, kwargs: Kwargs) -> tuple[int, set[int]]:
        return clock.now_ns(), torch_api.demoted_inputs(*args[:3])

    @hook(torch_api.ADDRESSES_COUNTED, late=True)
    def _addresses_counted(
        self, args: Args, kwargs: Kwargs, result: Any, error: Raised, begun: tuple[int, set[int]] | None
    ) -> None:
        if begun is None:
            return
        manager, parent, function_id = args[:3]
        fresh = torch_api.demoted_inputs(manager, parent, function_id) - begun[1]
        if fresh:
            columns = (sorted(fresh), input_names(manager, function_id))
            limit = int(manager.ids_to_funcs[function_id].cudagraph_managed_input_rerecord_limit)
            known = {"count": limit, "time_ns": begun[0]}
            self._emit(manager, function_id, describe_demotion, columns, action="demoted", **known)

    def _read_warning(self, record: logging.LogRecord) -> None:
        """Only the log says that new sizes of a function run eagerly."""
        limit = parse_size_limit(record.getMessage()) if "rerecord_limit" in str(record.msg) else None
        if limit is not None:
            key = self.context.keys.guess(limit["compile_id"])
            known = {"action": "limit", "backend": "trees", "compile_key": key, "time_ns": clock.now_ns(), **limit}
            self.emit(make_action, None, (), {**known, **self.context.function_columns(key)})

    # Outputs whose memory a later run reuses

    @hook_before(torch_api.OUTPUTS_INVALIDATED, late=True)
    def _before_invalidation(self, args: Args, kwargs: Kwargs) -> None:
        manager = args[0]
        for node, stacks in torch_api.live_outputs(manager.current_node):
            stack = next(filter(None, stacks), "")
            count, graph_id = len(stacks), node.id.id if node.id.id >= 0 else None
            known = {"time_ns": clock.now_ns(), "count": count, "graph_id": graph_id, "reason": INVALIDATED}
            function_id = node.wrapped_function.id
            self._emit(manager, function_id, find_user_columns, (stack,), action="invalidated", **known)

    def notice(self, error: BaseException) -> None:
        """torch's error at the use of such an output. C++ raises it, so no hook sees it."""
        if isinstance(error, RuntimeError) and is_overwritten(str(error)):
            known = {"action": "overwritten", "time_ns": clock.now_ns()}
            self.emit(make_action, parse_overwritten, (str(error),), known)

    def _emit(self, manager: Any, function_id: Any, columns: Any = None, args: Args = (), **known: Any) -> None:
        self.emit(make_action, columns, args, {**known, **describe_function(manager, function_id, self.context)})


def _parse_rerecord(broken: torch_api.Broken, names: tuple[str, ...]) -> dict[str, Any]:
    """The columns of a re-record, with the line that created an output that should be dead."""
    invariant, text, alive = broken
    columns = parse_mismatch(text, names)
    return {**columns, **(find_user_columns(alive[0]) if alive else {}), "mismatch": invariant}


#: The operations that cannot be captured: torch's reason and the user's stack of each.
Cuts = list[tuple[str, str | None]]
TOO_SMALL = "fewer kernels than cudagraph_min_partition_size"


class SkipThread:
    """What one thread does: the graphs that it builds, skips announced so far, cuts that have no row yet."""

    def __init__(self) -> None:
        self.begun: list[dict[str, Any]] = []
        self.skips = 0
        #: The compile key, and what cannot be captured in its graph.
        self.cuts: tuple[str | None, Cuts] = (None, [])


class CudaGraphSkips(Source):
    """What is not captured in a CUDA graph, and why: graphs that torch skips, parts of a graph that it leaves out.

    Most skips are announced by one function, of which four modules hold references. Others only raise a counter, and
    some not even that: they show in the flag that is on before `CompiledFxGraph` is built or finished, and off after
    it.
    """

    name = "cudagraph_skips"
    needs = torch_api.SKIPS[:1]
    _thread = PerThread(SkipThread)

    def _current_key(self) -> str | None:
        return self.context.keys.current()[1]

    @hook(*torch_api.SKIPS, late=True)
    def _on_announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch says that it skips: at compile time, or at run time from within a tree."""
        self._thread.skips += 1
        message = args[0] if args else kwargs["msg"]
        tree = torch_api.running_tree()
        if tree is None:
            mode = torch_api.backend_mode()
            backend = "trees" if mode is None else "cudagraphs"
            begun = self._thread.begun
            self._emit_skip(
                _parse_announced, (message, ()), backend, mode or (begun[-1]["mode"] if begun else None), counted=True
            )
        else:
            known = {"time_ns": clock.now_ns(), "counted": True, **describe_function(*tree, self.context)}
            self.emit(make_action, _parse_announced, (message, input_names(*tree)), known)

    @hook_before(torch_api.GRAPH_BUILT, torch_api.GRAPH_FINISHED)
    def _before_graph(self, args: Args, kwargs: Kwargs) -> None:
        """Before a graph is built or finished: the flag before and after shows whether it is captured."""
        options = torch_api.graph_options(args, kwargs)
        known = getattr(args[0], "fx_kwargs", options)  # A graph from a cache has more than the call that loads it.
        wanted = bool(options.get("cudagraphs"))
        mode = "backward" if known.get("is_backward") else "inference" if known.get("is_inference") else "forward"
        self._thread.begun.append({"skips": self._thread.skips, "wanted": wanted, "mode": mode})

    @hook(torch_api.GRAPH_BUILT)
    def _on_built(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        """A skip that torch counts without a message, since nothing of the graph is on a GPU."""
        begun, graph = self._thread.begun.pop(), args[0]
        reason = graph.disabled_cudagraphs_reason if error is None and graph.cudagraph_info is None else None
        if reason and begun["wanted"] and begun["skips"] == self._thread.skips:
            self._emit_silent(reason, begun["mode"], counted=True)

    @hook(torch_api.GRAPH_FINISHED)
    def _on_finished(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        begun, graph = self._thread.begun.pop(), args[0]
        key, cuts = self._thread.cuts
        self._thread.cuts = (None, [])
        if key != self._current_key():
            cuts = []  # They belong to a compile that failed later.
        parts = graph.counter_deltas.get("cudagraph_partitions")
        if parts:
            captured = len(graph.partition_maps or ())
            self._emit_skip(
                _parse_cuts,
                (cuts,),
                "trees",
                begun["mode"],
                action="partition",
                partitions=parts,
                captured_parts=captured,
            )
        skipped = begun["wanted"] and not torch_api.graph_options(args, kwargs)["cudagraphs"]
        if error is not None or not skipped or begun["skips"] != self._thread.skips:
            return
        failed = graph.cudagraph_info.cudagraph_fail_reasons if graph.cudagraph_info is not None else None
        if graph.disabled_cudagraphs_reason:
            self._emit_silent(graph.disabled_cudagraphs_reason, begun["mode"], counted=True)
        elif failed:
            self._emit_silent(str(failed), begun["mode"], counted=False)
        elif torch_api.has_policy():
            self._emit_silent("config.cudagraph_policy leaves it out", begun["mode"], counted=True)
        else:
            self._emit_silent("no part of the graph can be captured", begun["mode"], counted=False, cuts=cuts)

    @hook(torch_api.GRAPH_PARTITIONED, late=True)
    def _on_partitioned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Which operations cannot be captured, and why; the row is written when the compile is done."""
        if error is not None or not torch_api.is_capture_wanted():
            return
        scheduler, cuts = args[0], []
        for nodes, signature in zip(*result, strict=True):
            if signature.skip_cudagraph:
                reasons = ((scheduler.should_partition(node), node) for node in nodes)
                why, node = next(((why, node) for why, node in reasons if why), (TOO_SMALL, nodes[0]))
                cuts.append((why, torch_api.node_stack(node)))
        self._thread.cuts = (self._current_key(), cuts)

    def _emit_silent(self, reason: str, mode: str | None, counted: bool, cuts: Cuts | None = None) -> None:
        self._emit_skip(_parse_silent_skip, (reason, cuts or []), "trees", mode, action="skip", counted=counted)

    def _emit_skip(self, columns: Any, args: Args, backend: str, mode: str | None, **known: Any) -> None:
        known.update(time_ns=clock.now_ns(), backend=backend, mode=mode, **self.context.current_columns())
        self.emit(make_action, columns, args, known)


def _parse_announced(message: str, names: tuple[str, ...]) -> dict[str, Any]:
    limit = parse_limit(message, names)
    return {"action": "skip", **parse_skip(message)} if limit is None else {"action": "limit", **limit}


def _parse_cuts(cuts: Cuts) -> dict[str, Any]:
    """reason and user's line of what cannot be captured; of several the first line."""
    stack = next((stack for _, stack in cuts if stack), "")
    return parse_skip("; ".join(dict.fromkeys(why for why, _ in cuts)), stack)


def _parse_silent_skip(reason: str, cuts: Cuts) -> dict[str, Any]:
    columns = parse_skip(reason)
    if not cuts:
        return columns
    cut = _parse_cuts(cuts)
    return {**cut, "reason": f"{columns['reason']}: {cut['reason']}"}


# Replays


@dataclass
class ReplayCount:
    """Calls of one kind. Hooks only add, so the writer's thread needs no lock."""

    known: dict[str, Any]
    calls: int = 0
    taken: int = 0
    since_ns: int = field(default_factory=clock.now_ns)

    def take(self) -> dict[str, Any] | None:
        """The count since the last `take`, as columns; None if it is 0."""
        now, since_ns = self.calls, self.since_ns
        count = now - self.taken
        self.taken, self.since_ns = now, clock.now_ns()
        return {**self.known, "time_ns": since_ns, "count": count} if count else None


@dataclass(slots=True)
class RunningCall:
    """The call of a compiled graph that one thread is in. `is_seen`: it is a replay or a capture, not an eager call."""

    depth: int = 0
    is_seen: bool = False


class Replays(CountingSource):
    name = "replays"
    checks = (torch_api.require_cuda,)
    on_request = True
    _call = PerThread(RunningCall)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._counts: list[ReplayCount] = []
        self._of: weakref.WeakKeyDictionary[Any, dict[Any, ReplayCount]] = weakref.WeakKeyDictionary()

    @hook_before(torch_api.FUNCTION_RUN)
    def _before_run(self, args: Args, kwargs: Kwargs) -> None:
        call = self._call
        if call.depth == 0:
            call.is_seen = False
        call.depth += 1

    @hook(torch_api.FUNCTION_RUN, late=True)
    def _ran(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        """One call is done; torch starts some of them twice, one inside the other."""
        call = self._call
        call.depth = max(0, call.depth - 1)
        if call.depth == 0 and not call.is_seen and error is None:
            manager, function_id = args[0], args[2]
            self._count(manager, function_id, "eager", manager, function_id, None)

    @hook(torch_api.WARMED_UP, torch_api.RECORDED, late=True)
    def _on_captured(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._call.is_seen = True

    @hook(torch_api.REPLAYED_IN_TREE, late=True)
    def _replayed_in_tree(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._call.is_seen = True
        if error is None:
            manager, node, _ = args
            self._count(node, None, "replays", manager, node.wrapped_function.id, node.id.id)

    @hook(torch_api.REPLAYED)
    def _on_replayed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A replay outside a call of a tree is of a graph that the tree does not own."""
        if self._call.depth == 0 and error is None:
            counts = self._of.setdefault(args[0], {})
            if None not in counts:
                backend = "user" if torch_api.find_capturer() == "user" else "no_trees"
                known = {"action": "replays", "backend": backend, "device": torch_api.current_device()}
                counts[None] = self._new(known)
            counts[None].calls += 1

    def _count(self, owner: Any, key: Any, action: str, manager: Any, function_id: Any, graph_id: int | None) -> None:
        counts = self._of.setdefault(owner, {})
        if key not in counts:
            known = describe_function(manager, function_id, self.context)
            counts[key] = self._new({**known, "action": action, "graph_id": graph_id})
        counts[key].calls += 1

    def _new(self, known: dict[str, Any]) -> ReplayCount:
        count = ReplayCount(known)
        self._counts.append(count)
        return count

    def take_counts(self) -> list[tuple[Any, ...]]:
        taken = [count.take() for count in list(self._counts)]
        return [(make_action, None, (), known) for known in taken if known is not None]


#: Frames in which the user's line is looked for.
USER_DEPTH = 60


class UserCaptures(Source):
    """CUDA graphs that the user's own code captures: torch.cuda.graph, CUDAGraph.capture_begin and capture_end."""

    name = "captures"
    checks = (torch_api.require_cuda,)
    #: The captures that a thread is in: id of the graph -> what is known of it.
    _running = PerThread[dict[int, dict[str, Any]]](dict)

    @hook_before(torch_api.CAPTURE_STARTS)
    def _before_start(self, args: Args, kwargs: Kwargs) -> None:
        capturer = torch_api.find_capturer()
        if capturer == "trees":
            return
        file, line = find_user_line(USER_DEPTH)
        self._running[id(args[0])] = {
            "begin_ns": time.perf_counter_ns(),
            "known": {
                "time_ns": clock.now_ns(),
                "backend": "user" if capturer == "user" else "no_trees",
                "user_file": file,
                "user_line": line,
                "device": torch_api.current_device(),
            },
        }

    @hook(torch_api.CAPTURE_STARTS)
    def _on_started(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        if error is not None and (begun := self._running.pop(id(args[0]), None)):
            self.emit(_make_row, begun["known"], "failed", describe_error(error))

    @hook_before(torch_api.CAPTURE_ENDS)
    def _before_end(self, args: Args, kwargs: Kwargs) -> None:
        begun = self._running.get(id(args[0]))
        if begun is not None:
            begun["known"]["nodes"] = torch_api.count_nodes()
            begun["broken"] = sys.exc_info()[1]

    @hook(torch_api.CAPTURE_ENDS)
    def _on_ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        begun = self._running.pop(id(args[0]), None)
        if begun is None:
            return
        known = begun["known"]
        known["duration_ms"] = (time.perf_counter_ns() - begun["begin_ns"]) / 1e6
        broken = begun.get("broken") or error
        if broken is not None:
            self.emit(_make_row, known, "failed", describe_error(broken))
            return
        known["pool_bytes"] = torch_api.pool_bytes(args[0].pool())
        self.emit(_make_row, known, "user_capture" if known["backend"] == "user" else "record", None)


def _make_row(known: dict[str, Any], action: str, reason: str | None) -> Made:
    """To read the user's line a file is opened, so this runs in the writer's thread."""
    file, line = known["user_file"], known["user_line"]
    code = linecache.getline(file, line).strip() if file and line else ""
    return CudaGraphAction(action=action, reason=reason, user_code=code or None, **known)
