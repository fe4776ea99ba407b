"""CUDA graphs of torch.compile: what is warmed up, what is recorded, what is recorded again and why.

All hooks are on what happens once: a warm-up, a recording. A replay enters nothing of ours.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from ...decode.records.cudagraph_messages import is_overwritten, parse_mismatch, parse_output_stack, parse_overwritten
from .. import _compat
from .._compat import graphs
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.shield import told
from ..hooks.source import Source
from .rows import action, changing_sizes, input_names, known_function, of_backend

#: A function that ran so often in its warm-up since it was last captured is stuck there; told again at each doubling.
STUCK = 4
INVALIDATED = "it was alive when a later run took its memory; to use it is an error from here on"
WARMING_UP = "it ran in its warm-up again, and was not captured"
PENDING = "outputs of earlier steps still need their backward, so that their memory can't be reused"


class _Thread(threading.local):
    """The runs that one thread is in the middle of."""

    def __init__(self) -> None:
        self.begun: list[dict[str, Any]] = []


class CudaGraphs(Source):
    name = "cudagraphs"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._thread = _Thread()
        #: Runs in warm-up since the last capture, of each function of each manager.
        self._eager: weakref.WeakKeyDictionary[Any, Counter[Any]] = weakref.WeakKeyDictionary()

    @classmethod
    def probe(cls) -> None:
        graphs.cuda_graph()
        graphs.need_cuda()

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        return {graphs.TREES: self._in_trees}

    def _in_trees(self) -> list[Patch]:
        manager = graphs.tree_manager()
        return [
            Patch(graphs.trees_module(), "cudagraphify_impl", self._wrapped, self.guarded),
            Patch(manager, "record_function", self._recorded, self.guarded, self._recording),
            Patch(manager, "run_eager", self._warmed, self.guarded, self._warming),
            Patch(manager, "dealloc_current_path_weakrefs", _nothing, self.guarded, self._invalidating),
            Patch(manager, "check_warn_on_unable_to_start_executing", self._checked, self.guarded, self._checking),
            Patch(graphs.cuda_graph(), "capture_end", _nothing, self.guarded, self._capture_ends),
        ]

    def _wrapped(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if "compile_id" not in kwargs:
            of_backend[args[0]] = _compat.current_compile_id()

    def _begin(self) -> dict[str, Any]:
        begun = {"began_ns": time.perf_counter_ns(), "time_ns": time.time_ns()}
        self._thread.begun.append(begun)
        return begun

    def _end(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What the call began with, and its times."""
        begun = self._thread.begun.pop()
        milliseconds = (time.perf_counter_ns() - begun["began_ns"]) / 1e6
        return begun, {"time_ns": begun["time_ns"], "duration_ms": milliseconds}

    # A recording

    def _recording(self, args: Args, kwargs: Kwargs) -> None:
        manager, inputs, function_id = args
        parent, begun = manager.current_node, self._begin()
        begun["known"] = {
            "parent_id": None if parent is None else parent.id.id,
            "sizes": changing_sizes(manager, function_id, inputs),
            "copied_inputs": graphs.copied_inputs(manager, function_id, inputs),
        }
        begun["broken"] = graphs.broken_invariant(manager, function_id, inputs)

    def _capture_ends(self, args: Args, kwargs: Kwargs) -> None:
        begun = self._thread.begun
        if begun and "known" in begun[-1]:
            begun[-1]["known"]["nodes"] = graphs.nodes_so_far()

    def _recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        begun, times = self._end()
        manager, _, function_id = args
        known = {**times, **begun["known"]}
        if error is not None:
            self._emit(manager, function_id, action="failed", reason=told(error), **known)
            return
        self._runs(manager).pop(function_id, None)
        known["graph_id"] = manager.current_node.id.id
        known["pool_bytes"] = graphs.pool_bytes(manager.cuda_graphs_thread_pool)
        broken = begun["broken"]
        if broken is None:
            self._emit(manager, function_id, action="record", **known)
        else:
            names = input_names(manager, function_id)
            self._emit(manager, function_id, _mismatch, (broken, names), action="rerecord", **known)

    # A warm-up

    def _warming(self, args: Args, kwargs: Kwargs) -> None:
        manager, inputs, function_id = args
        begun = self._begin()
        begun["again"] = function_id in manager.warmed_up_functions
        if not begun["again"]:
            begun["sizes"] = changing_sizes(manager, function_id, inputs)

    def _warmed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        begun, times = self._end()
        manager, _, function_id = args
        if error is not None:
            self._emit(manager, function_id, action="failed", reason=told(error), **times)
        elif not begun["again"]:
            self._emit(manager, function_id, action="warmup", sizes=begun["sizes"], **times)
        runs = self._runs(manager)
        runs[function_id] = count = runs[function_id] + 1
        if count >= STUCK and count & (count - 1) == 0:
            self._emit(manager, function_id, action="stuck", reason=WARMING_UP, count=count, **times)

    def _runs(self, manager: Any) -> Counter[Any]:
        return self._eager.setdefault(manager, Counter())

    def _checking(self, args: Args, kwargs: Kwargs) -> None:
        manager, function_id = args
        self._begin()["warned"] = function_id in manager.warned_functions

    def _checked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch warns once of a function that can be neither captured nor replayed."""
        begun, times = self._end()
        manager, function_id = args
        if not begun["warned"] and function_id in manager.warned_functions:
            self._emit(manager, function_id, action="stuck", reason=PENDING, time_ns=times["time_ns"])

    # Outputs that a later run takes the memory of

    def _invalidating(self, args: Args, kwargs: Kwargs) -> None:
        manager = args[0]
        for node, stacks in graphs.live_outputs(manager.current_node):
            told_of = (next(filter(None, stacks), ""),)
            count, graph_id = len(stacks), node.id.id if node.id.id >= 0 else None
            known = {"time_ns": time.time_ns(), "count": count, "graph_id": graph_id, "reason": INVALIDATED}
            function_id = node.wrapped_function.id
            self._emit(manager, function_id, parse_output_stack, told_of, action="invalidated", **known)

    def notice(self, error: BaseException) -> None:
        """torch's error at the use of such an output. C++ raises it, past all hooks."""
        if isinstance(error, RuntimeError) and is_overwritten(str(error)):
            known = {"action": "overwritten", "time_ns": time.time_ns()}
            self.emit(action, parse_overwritten, (str(error),), known)

    def _emit(self, manager: Any, function_id: Any, columns: Any = None, args: Args = (), **known: Any) -> None:
        self.emit(action, columns, args, {**known, **known_function(manager, function_id, self.recorder.frames)})


def _mismatch(broken: graphs.Broken, names: tuple[str, ...]) -> dict[str, Any]:
    """The columns of a re-record. Of an output that should be dead the line that made it is told."""
    invariant, text, alive = broken
    columns = parse_mismatch(text, names)
    return {**columns, **(parse_output_stack(alive[0]) if alive else {}), "mismatch": invariant}


def _nothing(args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
    """All that is to be seen was seen before the call."""
