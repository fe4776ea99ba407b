"""In the process of a trial: what each call from outside into compiled code returned, and the end after some of them.

What a program prints is a weak oracle: many print nothing of what they compute. So each run of a trial keeps a digest
of what the outer calls returned, which another run is compared with. A run can be ended after a number of such calls:
edits and backends do not change that number, as they change the number of compiled frames. A change that compiles
something inside of a function, in place of the function, has the function observed all the same: in the copy that runs,
`OBSERVE` is called where it was compiled.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import json
import os
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..sources.hooks.torch_names import Unavailable
from ..system.files import write_file
from . import torch_api
from .fresh_process import CALLS_FILE, OBSERVE

#: Calls whose digest is kept, and tensors of each.
_MAX_CALLS, _MAX_TENSORS = 20_000, 64
#: A run that has taken so many seconds may end once nothing was compiled for so many calls.
_QUIET_S, _QUIET_CALLS = 60.0, 200


class StopRule:
    """When a run ends: after so many outer calls, at the first one after so many seconds, at the first one where an
    expression is true, or when nothing was compiled for so long that nothing more is expected.
    """

    def __init__(self, calls: int | None, seconds: float | None, until: str | None, when_quiet: bool):
        self._calls = calls
        self._seconds = seconds
        self._until = compile(until, "--until", "eval") if until is not None else None
        self._when_quiet = when_quiet
        self._begin = time.monotonic()
        self._graphs = self._last = self._longest_gap = 0

    def ends_before(self, caller: types.FrameType) -> bool:
        """True if the expression is true in the function that makes a call. It is false where it cannot be evaluated:
        other functions have other names.
        """
        if self._until is None:
            return False
        try:
            return bool(eval(self._until, caller.f_globals, caller.f_locals))
        except Exception:
            return False

    def ends_at(self, call: int) -> bool:
        """True if this call is the last one."""
        elapsed = time.monotonic() - self._begin
        if call == self._calls or (self._seconds is not None and elapsed > self._seconds):
            return True
        if not self._when_quiet:
            return False
        graphs = torch_api.counters()["stats"]["unique_graphs"]
        if graphs != self._graphs:
            self._longest_gap = max(self._longest_gap, call - self._last)
            self._graphs, self._last = graphs, call
        return elapsed > _QUIET_S and call - self._last > max(_QUIET_CALLS, 3 * self._longest_gap)


class CallObserver:
    """Observes the outer calls into functions that `torch.compile` made after `install`.

    Each is `[begin in ns of the wall clock, duration in ns, digest]`; the digest has one list for each tensor or number
    that the call returned. After the last call of `rule` it calls `end_process`, in the thread of that call.
    """

    def __init__(self, rule: StopRule, end_process: Callable[[], None]):
        self._rule = rule
        self._end_process = end_process
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._inside = threading.local()
        self._calls: list[tuple[int, int, list[Any]]] = []
        self._count = 0

    def install(self) -> None:
        """Observe what is compiled from now on. Unavailable if this torch has another way to compile."""
        context = torch_api.compile_context()
        skip_code: Callable[[types.CodeType], None] = torch_api.skip_code()
        compile_callable: Callable[[Any, Any], Any] = context.__call__
        observer = self

        def compile_observed(self: Any, fn: Any) -> Any:
            compiled = compile_callable(self, fn)
            return observer.wrap(compiled) if isinstance(compiled, types.FunctionType) else compiled

        context.__call__ = compile_observed
        setattr(builtins, OBSERVE, self.observe)
        # Called from a frame that is compiled, after a graph break, the wrapper itself would be compiled too.
        skip_code(self.wrap(_never_called).__code__)

    def wrap(self, compiled: Callable[..., Any]) -> types.FunctionType:
        """A function that calls what `torch.compile` made, and notes what an outer call returned."""

        @functools.wraps(compiled)
        def call_observed(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._inside, "is_inside", False) or os.getpid() != self._owner:
                return compiled(*args, **kwargs)
            if self._rule.ends_before(sys._getframe(1)):
                self._end_process()
            self._inside.is_inside = True
            begin, before = time.time_ns(), time.perf_counter_ns()
            try:
                result = compiled(*args, **kwargs)
                self._note(begin, before, result)
                return result
            finally:
                self._inside.is_inside = False

        if hasattr(compiled, torch_api.WRAPPER_ID):
            # torch looks through its own wrappers by this number: compiling what is compiled compiles the original.
            setattr(call_observed, torch_api.WRAPPER_ID, id(call_observed))
        return call_observed  # type: ignore[return-value]

    def observe(self, called: Any) -> Any:
        """A function or module whose calls are noted, as if it was compiled."""
        if not isinstance(called, torch.nn.Module):
            return self.wrap(called)
        torch_api.wrap_module(called, self.wrap)
        return called

    def _note(self, begin: int, before: int, result: Any) -> None:
        with contextlib.suppress(Exception):
            if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
                torch.cuda.synchronize()
        duration = time.perf_counter_ns() - before
        digest = make_digest(result) if self._count < _MAX_CALLS else []
        with self._lock:
            self._count += 1
            if self._count <= _MAX_CALLS:
                self._calls.append((begin, duration, digest))
            is_last = self._rule.ends_at(self._count)
        if is_last:
            self._end_process()

    def write(self, folder: Path) -> None:
        """Write the calls for the parent process."""
        with self._lock:
            content = json.dumps({"count": self._count, "calls": self._calls})
        write_file(folder / CALLS_FILE, content)


def _never_called() -> None:
    """Only its wrapper is used: all wrappers share one code object."""


def make_digest(result: Any) -> list[Any]:
    """A list for each tensor that a call returned: its shape, dtype, sum and norm; its value for a number or text."""
    digest: list[Any] = []
    with contextlib.suppress(Exception):
        for leaf in torch_api.tree_leaves()(result)[:_MAX_TENSORS]:
            if isinstance(leaf, torch.Tensor):
                digest.append([[*map(int, leaf.shape)], str(leaf.dtype), *_measure(leaf)])
            elif isinstance(leaf, (bool, int, float)):
                digest.append([type(leaf).__name__, float(leaf) if abs(leaf) < 1 << 63 else 0.0])
    return digest


def _measure(tensor: torch.Tensor) -> list[float]:
    """Sum and norm; nothing for a tensor that has no values of its own, or that is spread over processes."""
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout != torch.strided or tensor.is_meta:
        return []
    try:
        with torch.no_grad(), torch.autocast(tensor.device.type, enabled=False):
            values = torch.view_as_real(tensor.detach()) if tensor.is_complex() else tensor.detach()
            total = values.sum(dtype=torch.float64).item()
            if not values.is_floating_point():
                return [total]
            return [total, torch.linalg.vector_norm(values, dtype=torch.float64).item()]
    except (RuntimeError, TypeError, NotImplementedError):
        return []


def end_now() -> None:
    """End the process at once: an exception would pass through the program's own `except` and `finally`."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(0)


def observe_calls(rule: StopRule, end_process: Callable[[], None]) -> CallObserver | None:
    """An observer that is installed; None if this torch cannot be observed."""
    observer = CallObserver(rule, end_process)
    try:
        observer.install()
    except Unavailable:
        return None
    return observer
