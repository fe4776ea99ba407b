"""What is not captured in a CUDA graph, and why: graphs that torch skips, parts of a graph that it leaves out.

Most skips are announced by one function, of which four modules hold references. Others only raise a counter, and
some not even that: they show in the flag that is on before `CompiledFxGraph` is built or finished, and off after it.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

from ...decode.records.cudagraph_messages import parse_limit, parse_skip
from .. import _compat
from .._compat import graphs
from ..dynamo.current_compile import whose
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from .rows import action, input_names, known_function

#: What can't be captured, operation by operation: torch's reason and the user's stack.
Cuts = list[tuple[str, str | None]]
TOO_SMALL = "fewer kernels than cudagraph_min_partition_size"


class _Thread(threading.local):
    """What one thread is in the middle of: the graphs that it builds, skips announced so far, cuts not yet told."""

    def __init__(self) -> None:
        self.begun: list[dict[str, Any]] = []
        self.skips = 0
        self.cuts: tuple[str | None, Cuts] = (None, [])


class CudaGraphSkips(Source):
    name = "cudagraph_skips"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._thread = _Thread()

    @classmethod
    def probe(cls) -> None:
        graphs.skips(graphs.SKIPPING[0])
        graphs.compiled_graph()

    def patches(self) -> list[Patch]:
        owner = graphs.compiled_graph()
        return [
            Patch(owner, "__init__", self._built, self.guarded, self._building),
            Patch(owner, "post_compile", self._finished, self.guarded, self._building),
        ]

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        skips = {name: functools.partial(self._announces, name) for name in graphs.SKIPPING}
        return {**skips, graphs.SCHEDULER: self._partitions}

    def _announces(self, module: str) -> list[Patch]:
        return [Patch(graphs.skips(module), graphs.SKIP, self._announced, self.guarded)]

    def _partitions(self) -> list[Patch]:
        return [Patch(graphs.scheduler(), "graph_partition", self._partitioned, self.guarded)]

    def _announced(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """torch says that it skips: at compile time, or at run time from within a tree."""
        self._thread.skips += 1
        message = args[0] if args else kwargs["msg"]
        tree = graphs.running_tree()
        if tree is None:
            mode = graphs.backend_mode()
            backend = "trees" if mode is None else "cudagraphs"
            begun = self._thread.begun
            self._told(_skip, (message, ()), backend, mode or (begun[-1]["mode"] if begun else None), counted=True)
        else:
            known = {"time_ns": time.time_ns(), "counted": True, **known_function(*tree, self.recorder.frames)}
            self.emit(action, _skip, (message, input_names(*tree)), known)

    def _building(self, args: Args, kwargs: Kwargs) -> None:
        """Before a graph is built or finished: both tell by the flag what became of it."""
        options = graphs.options(args, kwargs)
        known = getattr(args[0], "fx_kwargs", options)  # A graph from a cache knows more than the call that loads it.
        wanted = bool(options.get("cudagraphs"))
        self._thread.begun.append({"skips": self._thread.skips, "wanted": wanted, "mode": _mode(known)})

    def _built(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A skip that torch counts without a word, as nothing of the graph is on a GPU."""
        begun, graph = self._thread.begun.pop(), args[0]
        reason = graph.disabled_cudagraphs_reason if error is None and graph.cudagraph_info is None else None
        if reason and begun["wanted"] and begun["skips"] == self._thread.skips:
            self._silent(reason, begun["mode"], counted=True)

    def _finished(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        begun, graph = self._thread.begun.pop(), args[0]
        compile_id, cuts = self._thread.cuts
        self._thread.cuts = (None, [])
        if compile_id != _compat.current_compile_id():
            cuts = []  # Those of a compile that failed later on.
        parts = graph.counter_deltas.get("cudagraph_partitions")
        if parts:
            captured = len(graph.partition_maps or ())
            self._told(
                _cut, (cuts,), "trees", begun["mode"], action="partition", partitions=parts, captured_parts=captured
            )
        skipped = begun["wanted"] and not graphs.options(args, kwargs)["cudagraphs"]
        if error is not None or not skipped or begun["skips"] != self._thread.skips:
            return
        failed = graph.cudagraph_info.cudagraph_fail_reasons if graph.cudagraph_info is not None else None
        if graph.disabled_cudagraphs_reason:
            self._silent(graph.disabled_cudagraphs_reason, begun["mode"], counted=True)
        elif failed:
            self._silent(str(failed), begun["mode"], counted=False)
        elif graphs.policy_decides():
            self._silent("config.cudagraph_policy leaves it alone", begun["mode"], counted=True)
        else:
            self._silent("no part of the graph can be captured", begun["mode"], counted=False, cuts=cuts)

    def _partitioned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """Which operations can't be captured, and why: told when the compile is done."""
        if error is not None or not graphs.wanted():
            return
        scheduler, cuts = args[0], []
        for nodes, signature in zip(*result, strict=True):
            if signature.skip_cudagraph:
                reasons = ((scheduler.should_partition(node), node) for node in nodes)
                why, node = next(((why, node) for why, node in reasons if why), (TOO_SMALL, nodes[0]))
                cuts.append((why, graphs.node_stack(node)))
        self._thread.cuts = (_compat.current_compile_id(), cuts)

    def _silent(self, reason: str, mode: str | None, counted: bool, cuts: Cuts | None = None) -> None:
        self._told(_silent_skip, (reason, cuts or []), "trees", mode, action="skip", counted=counted)

    def _told(self, columns: Any, args: Args, backend: str, mode: str | None, **known: Any) -> None:
        known.update(time_ns=time.time_ns(), backend=backend, mode=mode, **whose(self.recorder))
        self.emit(action, columns, args, known)


def _mode(options: dict[str, Any]) -> str:
    if options.get("is_backward"):
        return "backward"
    return "inference" if options.get("is_inference") else "forward"


def _skip(message: str, names: tuple[str, ...]) -> dict[str, Any]:
    limit = parse_limit(message, names)
    return {"action": "skip", **parse_skip(message)} if limit is None else {"action": "limit", **limit}


def _cut(cuts: Cuts) -> dict[str, Any]:
    """reason and user's line of what can't be captured; of several the first line."""
    stack = next((stack for _, stack in cuts if stack), "")
    return parse_skip("; ".join(dict.fromkeys(why for why, _ in cuts)), stack)


def _silent_skip(reason: str, cuts: Cuts) -> dict[str, Any]:
    columns = parse_skip(reason)
    if not cuts:
        return columns
    cut = _cut(cuts)
    return {**cut, "reason": f"{columns['reason']}: {cut['reason']}"}
