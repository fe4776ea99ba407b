"""CUDA graphs of torch.compile: what is warmed up, what is recorded, what is recorded again and why.

All hooks are on what happens once: a warm-up, a recording. A replay calls nothing of ours.
"""

from __future__ import annotations

import logging
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from ... import clock
from ...decode.records.cudagraph_messages import (
    describe_demotion,
    is_overwritten,
    parse_mismatch,
    parse_output_stack,
    parse_overwritten,
    parse_size_limit,
)
from ..dynamo.torch_api import current_compile_id
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink
from ..hooks.source import Source
from ..hooks.thread_state import PerThread
from . import torch_api
from .rows import backend_ids, changing_sizes, describe_function, input_names, make_action

#: Runs in warm-up since the last capture after which a function is stuck; reported again at each doubling.
STUCK = 4
INVALIDATED = "it was alive when a later run reused its memory; using it is an error from now on"
WARMING_UP = "it ran in its warm-up again and was not captured"
EXTENDED = "torch.compiler.cudagraph_mark_warmup_incomplete() asked for another warm-up"
PENDING = "outputs of earlier steps still need their backward, so their memory cannot be reused"


class CudaGraphs(Source):
    name = "cudagraphs"
    needs = (torch_api.CAPTURE_ENDS,)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: What is known of the runs that a thread is in.
        self._running: PerThread[list[dict[str, Any]]] = PerThread(list)
        #: Runs in warm-up since the last capture, of each function of each manager.
        self._eager: weakref.WeakKeyDictionary[Any, Counter[Any]] = weakref.WeakKeyDictionary()

    @classmethod
    def probe(cls) -> None:
        super().probe()
        torch_api.require_cuda()

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        return {torch_api.TREES: self._tree_patches}

    def open(self) -> None:
        torch_api.trees_logger().addFilter(self._filter)

    def close(self) -> None:
        torch_api.trees_logger().removeFilter(self._filter)

    def _tree_patches(self) -> list[Patch]:
        return [
            *self.watch_if_present(torch_api.ADDRESSES_COUNTED, self._addresses_counted, self._before_count),
            *self.watch_if_present(torch_api.WARMUP_EXTENDED, self._warmup_extended),
            self.watch(torch_api.FUNCTION_WRAPPED, self._on_wrapped),
            self.watch(torch_api.RECORDED, self._on_recorded, self._before_recording),
            self.watch(torch_api.WARMED_UP, self._warmed_up, self._before_warm_up),
            self.watch(torch_api.OUTPUTS_INVALIDATED, _ignore, self._before_invalidation),
            self.watch(torch_api.START_CHECKED, self._start_checked, self._before_start_check),
            self.watch(torch_api.CAPTURE_ENDS, _ignore, self._before_capture_end),
        ]

    def _on_wrapped(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if "compile_id" not in kwargs:
            backend_ids[args[0]] = current_compile_id()

    def _begin(self) -> dict[str, Any]:
        begun = {"began_ns": time.perf_counter_ns(), "time_ns": clock.now_ns()}
        self._running.get().append(begun)
        return begun

    def _end(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was known when the call began, and its times."""
        begun = self._running.get().pop()
        milliseconds = (time.perf_counter_ns() - begun["began_ns"]) / 1e6
        return begun, {"time_ns": begun["time_ns"], "duration_ms": milliseconds}

    # A recording

    def _before_recording(self, args: Args, kwargs: Kwargs) -> None:
        manager, inputs, function_id = args
        parent, begun = manager.current_node, self._begin()
        begun["known"] = {
            "parent_id": None if parent is None else parent.id.id,
            "sizes": changing_sizes(manager, function_id, inputs),
            "copied_inputs": torch_api.count_copied_inputs(manager, function_id, inputs),
        }
        begun["broken"] = torch_api.find_broken_invariant(manager, function_id, inputs)

    def _before_capture_end(self, args: Args, kwargs: Kwargs) -> None:
        begun = self._running.get()
        if begun and "known" in begun[-1]:
            begun[-1]["known"]["nodes"] = torch_api.count_nodes()

    def _on_recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
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

    def _before_warm_up(self, args: Args, kwargs: Kwargs) -> None:
        manager, inputs, function_id = args
        begun = self._begin()
        begun["again"] = function_id in manager.warmed_up_functions
        if not begun["again"]:
            begun["sizes"] = changing_sizes(manager, function_id, inputs)

    def _warmed_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
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

    def _warmup_extended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Outside of a warm-up the call has no effect."""
        running = self._running.get()
        if running and torch_api.is_warming_up(args[0]):
            running[-1]["extended"] = EXTENDED

    def _runs(self, manager: Any) -> Counter[Any]:
        return self._eager.setdefault(manager, Counter())

    def _before_start_check(self, args: Args, kwargs: Kwargs) -> None:
        manager, function_id = args
        self._begin()["warned"] = function_id in manager.warned_functions

    def _start_checked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch warns once of a function that can be neither captured nor replayed."""
        begun, times = self._end()
        manager, function_id = args
        if not begun["warned"] and function_id in manager.warned_functions:
            self._emit(manager, function_id, action="stuck", reason=PENDING, time_ns=times["time_ns"])

    # Limits of torch 2.15 after which it goes on in another way

    def _before_count(self, args: Args, kwargs: Kwargs) -> None:
        self._begin()["demoted"] = torch_api.demoted_inputs(*args[:3])

    def _addresses_counted(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        begun, times = self._end()
        manager, parent, function_id = args[:3]
        fresh = torch_api.demoted_inputs(manager, parent, function_id) - begun["demoted"]
        if fresh:
            columns = (sorted(fresh), input_names(manager, function_id))
            known = {"count": torch_api.demotion_limit(manager, function_id), "time_ns": times["time_ns"]}
            self._emit(manager, function_id, describe_demotion, columns, action="demoted", **known)

    def _filter(self, record: logging.LogRecord) -> bool:
        """A log filter that keeps every record. Only the log says that new sizes of a function run eagerly."""
        try:
            self.run_shielded(self._read_warning, record)
        except RecursionError as error:
            self.escaped.append(error)
        except BaseException as error:
            self.handle_escaped(error)
        return True

    def _read_warning(self, record: logging.LogRecord) -> None:
        limit = parse_size_limit(record.getMessage()) if "rerecord_limit" in str(record.msg) else None
        if limit is not None:
            key = self.context.keys.guess(limit["compile_id"])
            known = {"action": "limit", "backend": "trees", "compile_key": key, "time_ns": clock.now_ns(), **limit}
            self.emit(make_action, None, (), {**known, **self.context.function_columns(key)})

    # Outputs whose memory a later run reuses

    def _before_invalidation(self, args: Args, kwargs: Kwargs) -> None:
        manager = args[0]
        for node, stacks in torch_api.live_outputs(manager.current_node):
            stack = next(filter(None, stacks), "")
            count, graph_id = len(stacks), node.id.id if node.id.id >= 0 else None
            known = {"time_ns": clock.now_ns(), "count": count, "graph_id": graph_id, "reason": INVALIDATED}
            function_id = node.wrapped_function.id
            self._emit(manager, function_id, parse_output_stack, (stack,), action="invalidated", **known)

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
    return {**columns, **(parse_output_stack(alive[0]) if alive else {}), "mismatch": invariant}


def _ignore(args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
    """Only the state before the call matters."""
