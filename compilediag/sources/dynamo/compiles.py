"""Compiles: torch's own metrics of every compile, forward, backward and compiled autograd, as they are recorded.

A capture of `torch.compiler.precompile` has no metrics, so it is timed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import clock
from ...decode.records.compilation_metrics import make_compile, read_static_sources
from ...events import Compile
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink, Made
from ..hooks.source import Source
from ..hooks.thread_state import PerThread
from ..hooks.torch_names import call_argument
from . import torch_api
from .ahead_of_time import find_compiled_ahead
from .failures import read_failure
from .stack_frames import add_call_stack, frames_outside

#: Fields of the metrics that are times but no parts of the compile.
_NO_PARTS = ("start_time_us", "end_time_us", "guard_latency_us")


class Compiles(Source):
    name = "compiles"
    needs = (torch_api.METRICS_RECORDED, torch_api.COMPILE_CONTEXT)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: Id and key of what `aot_compile` captured last in this thread.
        self._captured: PerThread[tuple[str | None, str | None]] = PerThread(lambda: (None, None))
        #: When the captures of `torch.compiler.precompile` began that a thread is in.
        self._begun: PerThread[list[int]] = PerThread(list)

    def patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.METRICS_RECORDED, self._on_recorded),
            *self.watch_if_present(torch_api.CAPTURE, _ignore, self._before_capture_ahead),
            *self.watch_if_present(torch_api.PRECOMPILED, self._on_captured, self._before_capture),
        ]

    def _before_capture_ahead(self, args: Args, kwargs: Kwargs) -> None:
        self._captured.set(self.context.keys.current())

    def _on_recorded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        metrics = call_argument(args, kwargs, 0, "c")
        if metrics.compile_id is None and metrics.co_name is None and self._add_compiled_ahead(metrics):
            return
        key = self.context.keys.match(metrics.compile_id)
        # Not a copy: the writer's thread adds the call stack to it.
        known = self.context.frames.get(key or "", {})
        if metrics.fail_type is not None:
            known.update(read_failure(metrics.fail_type) or {})
        self.emit(self._make_rows, metrics, known, key)

    def _add_compiled_ahead(self, metrics: Any) -> bool:
        """Hand over a compile of `aot_compile`; False if this is none."""
        found = find_compiled_ahead()
        if found is None:
            return False
        code, known = found
        known["compile_id"], key = self._captured.take()
        stacks = self.context.stacks
        around = frames_outside(None, torch_api.AOT_COMPILE.module)
        self.emit(add_call_stack, stacks, known, code, around, clock.now_ns())
        self.emit(self._make_rows, metrics, known, key)
        return True

    def _make_rows(self, metrics: Any, known: Mapping[str, Any], key: str | None) -> Made:
        if static := read_static_sources(vars(metrics)):
            self.recorder.facts.static_sources = static
        event = make_compile(_correct_times(vars(metrics)), known, key)
        return [] if event is None else [event]

    def _before_capture(self, args: Args, kwargs: Kwargs) -> None:
        self._begun.get().append(clock.now_ns())

    def _on_captured(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        time_ns = self._begun.get().pop()
        row = Compile(
            time_ns=time_ns,
            duration_s=(clock.now_ns() - time_ns) / 1e9,
            # torch has no CompileId object for it.
            compile_key=self.context.keys.assign(object()),
            trigger="precompile",
            is_recompile=False,
            outcome="ok" if error is None else "failed",
            fail_type=None if error is None else type(error).__name__,
            fail_reason=None if error is None else describe_error(error),
            **torch_api.describe_capture(args[0]),
        )
        self.emit_event(row)


def _ignore(args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
    """What is needed of the call was read before it."""


def _correct_times(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """torch's metrics with the times of the recording's clock: torch reads the wall clock, which may have been stepped.

    Durations that include the step are known only by being impossible.
    """
    start_us, end_us = metrics.get("start_time_us"), metrics.get("end_time_us")
    if start_us is None or end_us is None:
        return metrics
    start, end = clock.convert(start_us * 1000) // 1000, clock.convert(end_us * 1000) // 1000
    step, longest = (end_us - start_us) - (end - start), end - start
    if not step and start == start_us:
        return metrics
    corrected = {**metrics, "start_time_us": start, "end_time_us": end}
    for name, value in metrics.items():
        if name.endswith("_us") and name not in _NO_PARTS and isinstance(value, int):
            found = (each for each in (value, value - step) if 0 <= each <= longest)
            corrected[name] = next(found, None)
    return corrected
