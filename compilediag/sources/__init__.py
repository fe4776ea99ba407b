"""Everything that touches torch: one file a family of hooks. Imported when a watch begins, not before.

A source watches one part of the compiler and hands what it sees to the recorder. `attach` puts the sources
of a detail in, `detach` takes them out again, `probe_all` says what would work here.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Collection, Iterator

from ..errors import CompilediagError
from ..recording import Recorder
from .hooks import late_imports as imports
from .hooks import patching
from .hooks.source import NothingToWatch, Source, Unavailable

__all__ = ["attach", "detach", "installed", "notice", "paused", "probe_all", "rank", "require_torch", "torch_version"]

_attached: list[Source] = []


def require_torch() -> None:
    """CompilediagError in one line if torch is not there or older than 2.11."""
    if importlib.util.find_spec("torch") is None:
        raise CompilediagError("torch is not installed, so there is nothing to watch: pip install 'torch>=2.11'")


def torch_version() -> str | None:
    """The version of torch, without importing it; None if it is not there."""
    if "torch" in sys.modules:
        return str(sys.modules["torch"].__version__)
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def rank() -> int | None:
    """The rank of this process in a distributed job: of torch.distributed if it has begun, else what launchers set."""
    distributed = sys.modules.get("torch.distributed")
    # It may be half imported, by another thread, or end between two questions.
    with contextlib.suppress(AttributeError, RuntimeError, ValueError):
        if distributed is not None and distributed.is_initialized():
            return distributed.get_rank()
    told = os.environ.get("RANK", "")
    return int(told) if told.isdecimal() else None


def _classes() -> list[type[Source]]:
    from .autotune.select_algorithm import SelectAlgorithm
    from .autotune.triton_autotune import TritonAutotune
    from .autotune.triton_heuristics import TritonHeuristics
    from .caches.aot_autograd_cache import AOTAutogradCache
    from .caches.cache_keys import Keys
    from .caches.code_caches import CodeCaches
    from .caches.dynamo_cache import DynamoCache
    from .caches.fx_graph_cache import FxGraphCache
    from .caches.pgo import Pgo
    from .caches.remote_cache import RemoteCache
    from .caches.triton_bundle import TritonBundle
    from .caches.workers import Workers
    from .cudagraphs.replays import Replays
    from .cudagraphs.skips import CudaGraphSkips
    from .cudagraphs.trees import CudaGraphs
    from .cudagraphs.user_captures import Captures
    from .dynamo.calls import Calls
    from .dynamo.compiles import Compiles
    from .dynamo.dynamic_decisions import Dynamic
    from .dynamo.graph_breaks import GraphBreaks
    from .dynamo.phases import Phases
    from .dynamo.recompiles import Recompiles
    from .dynamo.trace import Trace

    return [
        Compiles,
        Phases,
        Recompiles,
        GraphBreaks,
        FxGraphCache,
        AOTAutogradCache,
        RemoteCache,
        Keys,
        SelectAlgorithm,
        TritonHeuristics,
        TritonAutotune,
        DynamoCache,
        CodeCaches,
        TritonBundle,
        Pgo,
        Workers,
        CudaGraphSkips,
        CudaGraphs,
        Captures,
        Replays,
        Calls,
        Dynamic,
        Trace,
    ]


def attach(recorder: Recorder, detail: str, asked_for: Collection[str] = ()) -> None:
    """Put the hooks of every source in; those that work only on request if they are `asked_for`, by name.

    A source that can't work here says why in its status.
    """
    from .hooks.writer import Writer

    for cls in _classes():
        source = cls(recorder, detail)
        source.begin(cls.name in asked_for)
        _attached.append(source)
    recorder.feeds = [*_attached, Writer(recorder)]


def detach() -> None:
    """Take all hooks out, the last first."""
    while _attached:
        _attached.pop().end()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """In the block the hooks that are in are out, so that another recording can have its own; then they go on."""
    begun = [source for source in _attached if source.active]
    set_aside = _attached[:]
    for source in reversed(begun):
        source.end()
    _attached.clear()
    try:
        yield
    finally:
        _attached[:] = set_aside
        for source in begun:
            source.begin(asked_for=True)


def installed() -> list[str]:
    """The places that are patched now, and the modules that are waited for; empty when no watch runs."""
    return [*patching.installed(), *imports.waiting()]


def notice(error: BaseException) -> None:
    """An exception of the user's program is about to leave what we watch: some are told of nowhere else."""
    for source in _attached:
        source.guarded(source.notice, error)


def probe_all() -> list[tuple[str, str, str | None]]:
    """(name, status, reason) of every source: available, or unavailable where the installed torch lacks its place."""
    if torch_version() is None:
        return []
    report: list[tuple[str, str, str | None]] = []
    for cls in _classes():
        try:
            cls.probe()
            report.append((cls.name, "available", None))
        except NothingToWatch as why:
            report.append((cls.name, "off", f"nothing to watch: {why}"))
        except Unavailable as why:
            report.append((cls.name, "unavailable", str(why)))
    return report
