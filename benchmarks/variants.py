"""The variants that the benchmarks compare: compilediag, TORCH_TRACE, TORCH_LOGS, and unwatched.

Each variant is a context manager that yields a `Meter`. All run in one process: torch's two are enabled in the same
way as their environment variables do at import (torch/_logging/_internal.py of 2.11 and 2.13).
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch._logging import _internal

import compilediag
from compilediag.recording.active_recording import find_current


@dataclass(frozen=True)
class Meter:
    """`settle()` writes pending events; `own_s()` returns the overhead in s so far, None if it is not counted.

    `guards_s()` returns the part of it spent on failing guards and their values.
    """

    settle: Callable[[], None] = lambda: None
    own_s: Callable[[], float | None] = lambda: None
    guards_s: Callable[[], float | None] = lambda: None


@contextlib.contextmanager
def watch_nothing() -> Iterator[Meter]:
    yield Meter()


@contextlib.contextmanager
def watch_with_compilediag(detail: str) -> Iterator[Meter]:
    """Watch with compilediag. The overhead is the value in `session.status()` before rounding."""
    with compilediag.watch(detail=detail) as session:
        feeds = find_current().recorder.feeds
        (guards,) = (feed for feed in feeds if feed.name == "recompiles")
        own_s = lambda: sum(feed.status().overhead_s for feed in feeds)  # noqa: E731
        yield Meter(session.flush, own_s, lambda: guards.status().overhead_s)


@contextlib.contextmanager
def enable_torch_trace() -> Iterator[Meter]:
    """Enable TORCH_TRACE: add the same handler and formatter to the trace logger as torch's `_init_logs`.

    The overhead is torch's own count; `structured_logging_overhead_us` in its metrics is the part of one compile.
    """
    with tempfile.TemporaryDirectory() as folder:
        handler = _internal.LazyTraceHandler(folder)
        handler.setFormatter(_internal.TorchLogsFormatter(trace=True))
        _internal.trace_log.addHandler(handler)
        try:
            yield Meter(handler.flush, lambda: sum(_internal.structured_logging_overhead.values()))
        finally:
            _internal.trace_log.removeHandler(handler)
            handler.close()


@contextlib.contextmanager
def enable_torch_logs() -> Iterator[Meter]:
    """Enable TORCH_LOGS=recompiles and discard its output. torch does not count its overhead."""
    with open(os.devnull, "w") as nowhere:
        with contextlib.redirect_stderr(nowhere):
            torch._logging.set_logs(recompiles=True)
        try:
            yield Meter()
        finally:
            torch._logging.set_logs()


VARIANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Meter]]] = {
    "unwatched": watch_nothing,
    # The same again: its difference is the noise of the machine.
    "unwatched again": watch_nothing,
    "lean": lambda: watch_with_compilediag("lean"),
    "full": lambda: watch_with_compilediag("full"),
    "TORCH_TRACE": enable_torch_trace,
    "TORCH_LOGS=recompiles": enable_torch_logs,
}
