"""Tools that observe a program as a watch does: context managers that give a function, which counts what they saw."""

from __future__ import annotations

import contextlib
import cProfile
import importlib.util
import io
import logging
import pstats
import sys
import tempfile
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch._logging import _internal as torch_logs

import compilediag as cd
from benchmarks.soak import workload

#: Returns how much a tool saw; 0 is nothing.
Seen = Callable[[], int]


@contextlib.contextmanager
def use_depyf() -> Iterator[Seen]:
    import depyf

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with depyf.prepare_debug(folder):
            yield lambda: len(list(Path(folder).iterdir()))


@contextlib.contextmanager
def use_torch_profiler() -> Iterator[Seen]:
    profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True)
    with profiler:
        yield lambda: 1
    if not profiler.events():
        raise AssertionError("torch.profiler has no events")


@contextlib.contextmanager
def use_coverage() -> Iterator[Seen]:
    import coverage

    measured = coverage.Coverage(data_file=None, include=[workload.__file__])
    measured.start()
    try:
        yield lambda: len(measured.get_data().measured_files())
    finally:
        measured.stop()


@contextlib.contextmanager
def use_cprofile() -> Iterator[Seen]:
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield lambda: len(pstats.Stats(profile, stream=io.StringIO()).get_stats_profile().func_profiles)
    finally:
        profile.disable()


@contextlib.contextmanager
def use_debugger() -> Iterator[Seen]:
    """A trace function as a debugger has it: it steps through the lines of one file."""
    lines: list[int] = []

    def trace(frame: types.FrameType, event: str, argument: object) -> Callable[..., object] | None:
        if frame.f_code.co_filename != workload.__file__:
            return None
        lines.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield lambda: len(lines)
    finally:
        sys.settrace(before)


@contextlib.contextmanager
def use_torch_trace() -> Iterator[Seen]:
    """TORCH_TRACE, as torch itself turns it on."""
    with tempfile.TemporaryDirectory() as folder:
        handler = torch_logs.LazyTraceHandler(folder)
        handler.setFormatter(torch_logs.TorchLogsFormatter(trace=True))
        trace = logging.getLogger("torch.__trace")
        level = trace.level
        trace.setLevel(logging.DEBUG)
        trace.addHandler(handler)
        try:
            yield lambda: sum(path.stat().st_size for path in Path(folder).iterdir())
        finally:
            trace.removeHandler(handler)
            trace.setLevel(level)
            handler.close()


@contextlib.contextmanager
def use_torch_logs() -> Iterator[Seen]:
    """TORCH_LOGS, as torch itself turns it on. Its text goes to stderr."""
    torch._logging.set_logs(dynamo=logging.DEBUG, recompiles=True, guards=True, graph_breaks=True)
    try:
        yield lambda: 1
    finally:
        torch._logging.set_logs()


@contextlib.contextmanager
def watch() -> Iterator[Seen]:
    with cd.watch() as session:
        yield lambda: int((session.compiles["function"] == workload.add_length.__name__).sum())


TOOLS: dict[str, Callable[[], contextlib.AbstractContextManager[Seen]]] = {
    "depyf": use_depyf,
    "torch.profiler": use_torch_profiler,
    "coverage": use_coverage,
    "cProfile": use_cprofile,
    "debugger": use_debugger,
    "TORCH_TRACE": use_torch_trace,
    "TORCH_LOGS": use_torch_logs,
}


def list_installed() -> tuple[list[str], list[str]]:
    """The tools that can be used here, and those that are not installed."""
    missing = [name for name in ("depyf", "coverage") if importlib.util.find_spec(name) is None]
    return [name for name in TOOLS if name not in missing], missing
