"""CUDA graphs that the user's own code captures: torch.cuda.graph, CUDAGraph.capture_begin and capture_end."""

from __future__ import annotations

import linecache
import sys
import time
from typing import Any

from ... import clock
from ...events import CudaGraphAction
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.source import Source
from ..hooks.thread_state import PerThread
from . import torch_api


class UserCaptures(Source):
    name = "captures"
    needs = (torch_api.CAPTURE_STARTS, torch_api.CAPTURE_ENDS)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: The captures that a thread is in: id of the graph -> what is known of it.
        self._running: PerThread[dict[int, dict[str, Any]]] = PerThread(dict)

    @classmethod
    def probe(cls) -> None:
        super().probe()
        torch_api.require_cuda()

    def patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.CAPTURE_STARTS, self._on_started, self._before_start),
            self.watch(torch_api.CAPTURE_ENDS, self._on_ended, self._before_end),
        ]

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

    def _on_started(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None and (begun := self._running.get().pop(id(args[0]), None)):
            self.emit(_make_row, begun["known"], "failed", describe_error(error))

    def _before_end(self, args: Args, kwargs: Kwargs) -> None:
        begun = self._running.get().get(id(args[0]))
        if begun is not None:
            begun["known"]["nodes"] = torch_api.count_nodes()
            begun["broken"] = sys.exc_info()[1]

    def _on_ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
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
    return (CudaGraphAction(action=action, reason=reason, user_code=code or None, **known),)
