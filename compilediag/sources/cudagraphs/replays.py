"""Replays, only if requested: how often each CUDA graph is replayed, and how often a call runs without one.

Here our code is on the path of every call. Counts are written at most once a second, and when the watch ends.
"""

from __future__ import annotations

import linecache
import sys
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

from ...events import CudaGraphAction
from ...system import clock
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.source import Source, hook
from ..hooks.threads import PerThread
from . import torch_api
from .trees import describe_function, make_action

INTERVAL_S = 1.0


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


class Replays(Source):
    name = "replays"
    on_request = True

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._call: PerThread[RunningCall] = PerThread(RunningCall)
        self._counts: list[ReplayCount] = []
        self._of: weakref.WeakKeyDictionary[Any, dict[Any, ReplayCount]] = weakref.WeakKeyDictionary()
        self._due = 0.0

    @classmethod
    def probe(cls) -> None:
        super().probe()
        torch_api.require_cuda()

    def open(self) -> None:
        self.recorder.counters.append(self)

    def close(self) -> None:
        self.recorder.release(self)

    def _before_run(self, args: Args, kwargs: Kwargs) -> None:
        call = self._call.get()
        if call.depth == 0:
            call.is_seen = False
        call.depth += 1

    @hook(torch_api.FUNCTION_RUN, before=_before_run, late=True)
    def _ran(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        """One call is done; torch starts some of them twice, one inside the other."""
        call = self._call.get()
        call.depth = max(0, call.depth - 1)
        if call.depth == 0 and not call.is_seen and error is None:
            manager, function_id = args[0], args[2]
            self._count(manager, function_id, "eager", manager, function_id, None)

    @hook(torch_api.WARMED_UP, torch_api.RECORDED, late=True)
    def _on_captured(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._call.get().is_seen = True

    @hook(torch_api.REPLAYED_IN_TREE, late=True)
    def _replayed_in_tree(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._call.get().is_seen = True
        if error is None:
            manager, node, _ = args
            self._count(node, None, "replays", manager, node.wrapped_function.id, node.id.id)

    @hook(torch_api.REPLAYED)
    def _on_replayed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A replay outside a call of a tree is of a graph that the tree does not own."""
        if self._call.get().depth == 0 and error is None:
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

    def tick(self, final: bool = False) -> None:
        """Hand over what was counted since the last time, if it is due. Called by the writer's thread."""
        now = time.monotonic()
        if not final and now < self._due:
            return
        self._due = now + INTERVAL_S
        for count in list(self._counts):
            known = count.take()
            if known is not None:
                self.emit(make_action, None, (), known)

    def reset_after_fork(self) -> None:
        """In a forked child: drop the counts so far, which the parent writes."""
        for count in self._counts:
            count.take()


class UserCaptures(Source):
    """CUDA graphs that the user's own code captures: torch.cuda.graph, CUDAGraph.capture_begin and capture_end."""

    name = "captures"

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: The captures that a thread is in: id of the graph -> what is known of it.
        self._running: PerThread[dict[int, dict[str, Any]]] = PerThread(dict)

    @classmethod
    def probe(cls) -> None:
        super().probe()
        torch_api.require_cuda()

    def _before_start(self, args: Args, kwargs: Kwargs) -> None:
        capturer = torch_api.find_capturer()
        if capturer == "trees":
            return
        file, line = torch_api.user_line() or (None, None)
        self._running.get()[id(args[0])] = {
            "begin_ns": time.perf_counter_ns(),
            "known": {
                "time_ns": clock.now_ns(),
                "backend": "user" if capturer == "user" else "no_trees",
                "user_file": file,
                "user_line": line,
                "device": torch_api.current_device(),
            },
        }

    @hook(torch_api.CAPTURE_STARTS, before=_before_start)
    def _on_started(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        if error is not None and (begun := self._running.get().pop(id(args[0]), None)):
            self.emit(_make_row, begun["known"], "failed", describe_error(error))

    def _before_end(self, args: Args, kwargs: Kwargs) -> None:
        begun = self._running.get().get(id(args[0]))
        if begun is not None:
            begun["known"]["nodes"] = torch_api.count_nodes()
            begun["broken"] = sys.exc_info()[1]

    @hook(torch_api.CAPTURE_ENDS, before=_before_end)
    def _on_ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        begun = self._running.get().pop(id(args[0]), None)
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
