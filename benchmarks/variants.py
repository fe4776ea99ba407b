"""The ways to watch a compile that are compared: compilediag, TORCH_TRACE, TORCH_LOGS and none.

Each is a context manager that gives a `Meter`. All run in one process: torch's two are switched on as
their environment variables do it at import (read in torch/_logging/_internal.py of 2.11 and 2.13).
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
from compilediag.active_recording import find_current


@dataclass(frozen=True)
class Meter:
    """`settle()` writes what still waits; `own_s()` is the seconds spent so far, None if nobody counts them.

    `guards_s()`: of these the seconds that went into failing guards and their values.
    """

    settle: Callable[[], None] = lambda: None
    own_s: Callable[[], float | None] = lambda: None
    guards_s: Callable[[], float | None] = lambda: None


@contextlib.contextmanager
def unwatched() -> Iterator[Meter]:
    yield Meter()


@contextlib.contextmanager
def watched(detail: str) -> Iterator[Meter]:
    """compilediag; its account is what `session.status()` shows, read before it is rounded and written."""
    with compilediag.watch(detail=detail) as session:
        feeds = find_current().recorder.feeds
        (guards,) = (feed for feed in feeds if feed.name == "recompiles")
        own_s = lambda: sum(feed.status().overhead_s for feed in feeds)  # noqa: E731
        yield Meter(session.flush, own_s, lambda: guards.status().overhead_s)


@contextlib.contextmanager
def torch_trace() -> Iterator[Meter]:
    """TORCH_TRACE: `_init_logs` gives the trace's logger this handler with this formatter, and does no more.

    Its account is torch's own, of which each compile's share is `structured_logging_overhead_us` in its metrics.
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
def torch_logs() -> Iterator[Meter]:
    """TORCH_LOGS=recompiles, to nowhere instead of a terminal. torch keeps no account of it."""
    with open(os.devnull, "w") as nowhere:
        with contextlib.redirect_stderr(nowhere):
            torch._logging.set_logs(recompiles=True)
        try:
            yield Meter()
        finally:
            torch._logging.set_logs()


VARIANTS: dict[str, Callable[[], contextlib.AbstractContextManager[Meter]]] = {
    "unwatched": unwatched,
    # The same once more: what it differs by is what the machine's noise can do.
    "unwatched again": unwatched,
    "lean": lambda: watched("lean"),
    "full": lambda: watched("full"),
    "TORCH_TRACE": torch_trace,
    "TORCH_LOGS=recompiles": torch_logs,
}
