"""Replays, only if they were asked for: how often each CUDA graph is replayed, and how often a call goes without one.

Here our code is on the path of every call. Counts are written at most once a second, and when the watch ends.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import Any

from .._compat import graphs
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from .rows import action, known_function

INTERVAL_S = 1.0


@dataclass
class _Count:
    """Calls of one kind. Hooks only add, so that the writer's thread can take what is there without a lock."""

    known: dict[str, Any]
    calls: int = 0
    taken: int = 0
    since_ns: int = field(default_factory=time.time_ns)

    def take(self) -> dict[str, Any] | None:
        """What was counted since the last time, as columns; None if nothing was."""
        now, since_ns = self.calls, self.since_ns
        count = now - self.taken
        self.taken, self.since_ns = now, time.time_ns()
        return {**self.known, "time_ns": since_ns, "count": count} if count else None


class _Thread(threading.local):
    """The call of a compiled graph that one thread is in: how deep, and whether it was seen to be something else."""

    def __init__(self) -> None:
        self.depth = 0
        self.seen = False


class Replays(Source):
    name = "replays"
    on_request = True

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._thread = _Thread()
        self._counts: list[_Count] = []
        self._of: weakref.WeakKeyDictionary[Any, dict[Any, _Count]] = weakref.WeakKeyDictionary()
        self._due = 0.0

    @classmethod
    def probe(cls) -> None:
        graphs.cuda_graph()
        graphs.need_cuda()

    def patches(self) -> list[Patch]:
        return [Patch(graphs.cuda_graph(), "replay", self._replayed, self.guarded)]

    def late_patches(self) -> dict[str, Any]:
        return {graphs.TREES: self._in_trees}

    def _in_trees(self) -> list[Patch]:
        manager = graphs.tree_manager()
        return [
            Patch(manager, "_run", self._ran, self.guarded, self._runs),
            Patch(manager, "execute_node", self._executed, self.guarded),
            Patch(manager, "run_eager", self._captured, self.guarded),
            Patch(manager, "record_function", self._captured, self.guarded),
        ]

    def open(self) -> None:
        self.recorder.counters.append(self)

    def close(self) -> None:
        self.recorder.release(self)

    def _runs(self, args: Args, kwargs: Kwargs) -> None:
        thread = self._thread
        if thread.depth == 0:
            thread.seen = False
        thread.depth += 1

    def _ran(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """One call is done; torch begins some of them twice, one inside the other."""
        thread = self._thread
        thread.depth = max(0, thread.depth - 1)
        if thread.depth == 0 and not thread.seen and error is None:
            manager, _, function_id = args
            self._count(manager, function_id, "eager", manager, function_id, None)

    def _captured(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._thread.seen = True

    def _executed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._thread.seen = True
        if error is None:
            manager, node, _ = args
            self._count(node, None, "replays", manager, node.wrapped_function.id, node.id.id)

    def _replayed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """A graph of the user's own: within a call of a tree it is the tree's."""
        if self._thread.depth == 0 and error is None:
            counts = self._of.setdefault(args[0], {})
            if None not in counts:
                backend = "user" if graphs.capturing_for() == "user" else "no_trees"
                known = {"action": "replays", "backend": backend, "device": graphs.current_device()}
                counts[None] = self._new(known)
            counts[None].calls += 1

    def _count(self, owner: Any, key: Any, action: str, manager: Any, function_id: Any, graph_id: int | None) -> None:
        counts = self._of.setdefault(owner, {})
        if key not in counts:
            known = known_function(manager, function_id, self.recorder.frames)
            counts[key] = self._new({**known, "action": action, "graph_id": graph_id})
        counts[key].calls += 1

    def _new(self, known: dict[str, Any]) -> _Count:
        count = _Count(known)
        self._counts.append(count)
        return count

    def tick(self, final: bool = False) -> None:
        """Hand over what was counted since, if it is time to. The writer's thread asks."""
        now = time.monotonic()
        if not final and now < self._due:
            return
        self._due = now + INTERVAL_S
        for count in list(self._counts):
            known = count.take()
            if known is not None:
                self.emit(action, None, (), known)

    def forked(self) -> None:
        """In a child: what was counted so far is its parent's to write."""
        for count in self._counts:
            count.take()
