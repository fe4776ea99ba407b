"""What is not captured in a CUDA graph, and why: graphs that torch skips, parts of a graph that it leaves out.

Most skips are announced by one function, of which four modules hold references. Others only raise a counter, and
some not even that: they show in the flag that is on before `CompiledFxGraph` is built or finished, and off after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ... import clock
from ...decode.records.cudagraph_messages import parse_limit, parse_skip
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink
from ..hooks.source import Source
from ..hooks.thread_state import PerThread
from ..hooks.torch_names import HookPoint
from . import torch_api
from .rows import describe_function, input_names, make_action

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
    name = "cudagraph_skips"
    needs = (torch_api.SKIPS[0], torch_api.GRAPH_BUILT, torch_api.GRAPH_FINISHED)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._per_thread: PerThread[SkipThread] = PerThread(SkipThread)

    @property
    def _thread(self) -> SkipThread:
        return self._per_thread.get()

    def patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.GRAPH_BUILT, self._on_built, self._before_graph),
            self.watch(torch_api.GRAPH_FINISHED, self._on_finished, self._before_graph),
        ]

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        skips = {point.module: functools.partial(self._skip_patches, point) for point in torch_api.SKIPS}
        return {**skips, torch_api.SCHEDULER: lambda: [self.watch(torch_api.GRAPH_PARTITIONED, self._on_partitioned)]}

    def _skip_patches(self, point: HookPoint) -> list[Patch]:
        return [self.watch(point, self._on_announced)]

    def _current_key(self) -> str | None:
        return self.context.keys.current()[1]

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

    def _before_graph(self, args: Args, kwargs: Kwargs) -> None:
        """Before a graph is built or finished: the flag before and after shows whether it is captured."""
        options = torch_api.graph_options(args, kwargs)
        known = getattr(args[0], "fx_kwargs", options)  # A graph from a cache has more than the call that loads it.
        wanted = bool(options.get("cudagraphs"))
        self._thread.begun.append({"skips": self._thread.skips, "wanted": wanted, "mode": _mode(known)})

    def _on_built(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A skip that torch counts without a message, since nothing of the graph is on a GPU."""
        begun, graph = self._thread.begun.pop(), args[0]
        reason = graph.disabled_cudagraphs_reason if error is None and graph.cudagraph_info is None else None
        if reason and begun["wanted"] and begun["skips"] == self._thread.skips:
            self._emit_silent(reason, begun["mode"], counted=True)

    def _on_finished(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
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


def _mode(options: dict[str, Any]) -> str:
    if options.get("is_backward"):
        return "backward"
    return "inference" if options.get("is_inference") else "forward"


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
