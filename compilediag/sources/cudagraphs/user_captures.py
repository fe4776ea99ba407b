"""CUDA graphs that the user's own code captures: torch.cuda.graph, CUDAGraph.capture_begin and capture_end."""

from __future__ import annotations

import linecache
import sys
import threading
import time
from typing import Any

from ...events import CudaGraphAction
from ...recording import Made
from .._compat import graphs
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.shield import told
from ..hooks.source import Source, made


class _Thread(threading.local):
    """The captures that one thread is in the middle of: id of the graph -> what is known of it."""

    def __init__(self) -> None:
        self.begun: dict[int, dict[str, Any]] = {}


class Captures(Source):
    name = "captures"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._thread = _Thread()

    @classmethod
    def probe(cls) -> None:
        graphs.cuda_graph()
        graphs.need_cuda()

    def patches(self) -> list[Patch]:
        owner = graphs.cuda_graph()
        return [
            Patch(owner, "capture_begin", self._begun, self.guarded, self._begins),
            Patch(owner, "capture_end", self._ended, self.guarded, self._ends),
        ]

    def _begins(self, args: Args, kwargs: Kwargs) -> None:
        whose = graphs.capturing_for()
        if whose == "trees":
            return
        file, line = graphs.user_line() or (None, None)
        self._thread.begun[id(args[0])] = {
            "begin_ns": time.perf_counter_ns(),
            "known": {
                "time_ns": time.time_ns(),
                "backend": "user" if whose == "user" else "no_trees",
                "user_file": file,
                "user_line": line,
                "device": graphs.current_device(),
            },
        }

    def _begun(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None and (begun := self._thread.begun.pop(id(args[0]), None)):
            self.emit(_event, begun["known"], "failed", told(error))

    def _ends(self, args: Args, kwargs: Kwargs) -> None:
        begun = self._thread.begun.get(id(args[0]))
        if begun is not None:
            begun["known"]["nodes"] = graphs.nodes_so_far()
            begun["broken"] = sys.exc_info()[1]

    def _ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        begun = self._thread.begun.pop(id(args[0]), None)
        if begun is None:
            return
        known = begun["known"]
        known["duration_ms"] = (time.perf_counter_ns() - begun["begin_ns"]) / 1e6
        broken = begun.get("broken") or error
        if broken is not None:
            self.emit(_event, known, "failed", told(broken))
            return
        known["pool_bytes"] = graphs.pool_bytes(args[0].pool())
        self.emit(_event, known, "user_capture" if known["backend"] == "user" else "record", None)


def _event(known: dict[str, Any], action: str, reason: str | None) -> Made:
    """Reading the user's line opens a file, so it is done here, in the writer's thread."""
    file, line = known["user_file"], known["user_line"]
    code = linecache.getline(file, line).strip() if file and line else ""
    return made(CudaGraphAction(action=action, reason=reason, user_code=code or None, **known))
