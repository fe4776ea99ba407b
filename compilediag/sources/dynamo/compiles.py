"""Compiles: torch's own metrics of every compile, forward, backward and compiled autograd, as they are recorded.

A capture of `torch.compiler.precompile` has no metrics, so it is timed here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from ...decode.records.compilation_metrics import make_compile, read_static_sources
from ...events import Compile
from ...recording import Made, Recorder
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.source import Source
from ..hooks.thread_state import PerThread
from ..hooks.torch_names import call_argument
from . import torch_api
from .current_compile import compile_keys

#: A fact about the session: torch's setting of the same name.
STATIC_SOURCES = "static_sources"


class Compiles(Source):
    name = "compiles"
    needs = (torch_api.METRICS_RECORDED, torch_api.COMPILE_CONTEXT)

    def __init__(self, recorder: Recorder, detail: str):
        super().__init__(recorder, detail)
        #: When the captures began that a thread is in.
        self._begun: PerThread[list[int]] = PerThread(list)

    def patches(self) -> list[Patch]:
        captures = [torch_api.PRECOMPILED] if torch_api.PRECOMPILED.exists() else []
        return [
            self.watch(torch_api.METRICS_RECORDED, self._on_recorded),
            *(self.watch(point, self._on_captured, self._before_capture) for point in captures),
        ]

    def _on_recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        metrics = call_argument(args, kwargs, 0, "c")
        key = compile_keys(self.recorder).match(metrics.compile_id)
        # Not a copy: the writer's thread adds the call stack to it.
        self.emit(self._make_rows, metrics, self.recorder.frames.get(key or "", {}), key)

    def _make_rows(self, metrics: Any, known: Mapping[str, Any], key: str | None) -> Made:
        if static := read_static_sources(vars(metrics)):
            self.recorder.facts[STATIC_SOURCES] = static
        event = make_compile(vars(metrics), known, key)
        return [] if event is None else [event]

    def _before_capture(self, args: Args, kwargs: Kwargs) -> None:
        self._begun.get().append(time.time_ns())

    def _on_captured(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        time_ns = self._begun.get().pop()
        row = Compile(
            time_ns=time_ns,
            duration_s=(time.time_ns() - time_ns) / 1e9,
            # torch has no CompileId object for it.
            compile_key=compile_keys(self.recorder).assign(object()),
            trigger="precompile",
            is_recompile=False,
            outcome="ok" if error is None else "failed",
            fail_type=None if error is None else type(error).__name__,
            fail_reason=None if error is None else describe_error(error),
            **torch_api.describe_capture(args[0]),
        )
        self.emit_event(row)
