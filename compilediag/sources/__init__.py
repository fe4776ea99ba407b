"""Everything that touches torch, in groups; imported when a watch begins, not before.

A source watches one part of the compiler and hands its events to the recorder. `attach` installs the sources of a
detail, `detach` removes them, `probe_all` lists what would work here. Each group has a `torch_api.py`, the only file of
the group that names torch's private parts: docs/torch_internals.md is generated from these files.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Collection

from ..errors import CompilediagError
from ..system import own_errors
from ..system.interrupts import ignore, pass_on
from .compile_context import EventSink
from .hooks import patches
from .hooks.source import Source
from .hooks.torch_names import NothingToWatch, Unavailable

__all__ = [
    "attach",
    "detach",
    "device_name",
    "find_user_line",
    "list_hooks",
    "notice",
    "pause",
    "probe_all",
    "raise_on_compile",
    "rank",
    "require_torch",
    "torch_version",
]

#: Major and minor version of the oldest torch whose internals compilediag knows.
OLDEST_TORCH = (2, 11)

#: As all state of a module, it outlives `importlib.reload`.
_attached: list[Source] = globals().get("_attached", [])
#: Sources whose end failed. The next `detach` tries once more.
_unended: list[Source] = globals().get("_unended", [])


def require_torch() -> None:
    """CompilediagError in one line if torch is not installed or too old."""
    if importlib.util.find_spec("torch") is None:
        raise CompilediagError("torch is not installed, so there is nothing to watch: pip install 'torch>=2.11'")
    version = torch_version() or ""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    if numbers is not None and (int(numbers[1]), int(numbers[2])) < OLDEST_TORCH:
        raise CompilediagError(f"torch {version} is too old for compilediag: pip install 'torch>=2.11'")


def torch_version() -> str | None:
    """The version of torch, without importing it; None if it is not installed."""
    version = getattr(sys.modules.get("torch"), "__version__", None)
    if version is not None:
        return str(version)
    # `torch.__version__` from torch's file: the version of the package may lack the build, as in `2.11.0+cu130`.
    with ignore(OSError, ValueError):
        spec = importlib.util.find_spec("torch")
        if spec is not None and spec.origin is not None:
            with open(os.path.join(os.path.dirname(spec.origin), "version.py"), encoding="utf-8") as file:
                found = re.search(r"^__version__ = ['\"]([^'\"]+)['\"]", file.read(4096), re.MULTILINE)
            if found is not None:
                return found[1]
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return None


def rank() -> int | None:
    """The rank of this process in a distributed job, from torch.distributed if it is initialized, else the launcher."""
    distributed = sys.modules.get("torch.distributed")
    # Another thread may be importing it, or end it between the two calls.
    with ignore(AttributeError, RuntimeError, ValueError):
        if distributed is not None and distributed.is_initialized():
            return int(distributed.get_rank())
    text = os.environ.get("RANK", "")
    return int(text) if text.isdecimal() else None


def device_name() -> str | None:
    """The GPU that this process uses, else the processor; None if neither says its name. Starts no device."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    with ignore(AttributeError, AssertionError, RuntimeError):
        if cuda is not None and cuda.is_initialized():
            return str(cuda.get_device_name())
    with ignore(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or None


def _source_classes() -> list[type[Source]]:
    from .autotune.select_algorithm import SelectAlgorithm
    from .autotune.triton_tuning import TritonAutotune, TritonHeuristics, TritonJit
    from .caches.code_caches import CodeCaches
    from .caches.graph_caches import AOTAutogradCache, FxGraphCache, RemoteCache, TritonBundle
    from .caches.key_history import CacheKeys
    from .cudagraphs.trees import CudaGraphs, CudaGraphSkips, Replays, UserCaptures
    from .dynamo.calls import CompiledCalls, GuardChecks
    from .dynamo.compiles import Compiles, DynamicDecisions, GraphBreaks, Phases
    from .dynamo.dynamo_cache import DynamoCache, Profiles
    from .dynamo.recompiles import Recompiles
    from .dynamo.refused_calls import Refusals
    from .dynamo.structured_trace import StructuredTrace
    from .dynamo.tracing import Tracing

    return [
        Compiles,
        Phases,
        Recompiles,
        Refusals,
        GraphBreaks,
        FxGraphCache,
        AOTAutogradCache,
        RemoteCache,
        CacheKeys,
        SelectAlgorithm,
        TritonHeuristics,
        TritonAutotune,
        TritonJit,
        DynamoCache,
        CodeCaches,
        TritonBundle,
        Profiles,
        CudaGraphSkips,
        CudaGraphs,
        UserCaptures,
        Replays,
        CompiledCalls,
        GuardChecks,
        DynamicDecisions,
        StructuredTrace,
        Tracing,
    ]


def attach(recorder: EventSink, detail: str, requested: Collection[str] = ()) -> list[Source]:
    """Install the hooks of every source; those that work only on request if they are `requested`, by name.

    Returns them; the status of one that cannot work here says why.
    """
    for cls in _source_classes():
        source = cls(recorder, detail)
        _attached.append(source)
        source.begin(cls.name in requested)
    return _attached[:]


def detach() -> bool:
    """Remove all hooks, the last first; False if a source could not be ended. Called again after an interrupt (Ctrl-C),
    it goes on where it was.

    A source whose end fails does not keep the others, nor its own patches. The first error is raised when all that can
    be removed is removed; called again, it tries once more.
    """
    own_errors.run_each((_end_again, _end_attached, patches.remove_all))
    return not (_attached or _unended)


def _end_again() -> None:
    while _unended:
        _end(_unended[-1])
        _unended.pop()


def _end_attached() -> None:
    while _attached:
        if not _end(_attached[-1]):
            _unended.append(_attached[-1])
        _attached.pop()


def _end(source: Source) -> bool:
    """True if nothing of a source stays. What its end raises is counted there."""
    try:
        source.end()
    except Exception as error:
        pass_on(error)
        source.count_error(error)
        return False
    return not source.is_open


def list_hooks() -> list[str]:
    """The functions that are patched now, and the modules whose import is waited for; empty when no watch runs."""
    return [*patches.list_installed(), *patches.list_waiting()]


def find_user_line() -> tuple[str | None, int | None]:
    """File and number of the innermost line of this thread that is neither torch's nor compilediag's."""
    from .dynamo.stack_frames import find_user_line

    return find_user_line()


def raise_on_compile(is_asked: bool, set_at: tuple[str | None, int | None]) -> str | None:
    """Raise `CompiledAfterWarmup` in the caller before anything compiles, from here on; or no more, if not `is_asked`.
    Why that is not possible; None if it is.
    """
    from .dynamo.refused_calls import Refusals

    source = next((source for source in _attached if isinstance(source, Refusals)), None)
    if not is_asked:
        if source is not None:
            source.stop_raising()
        return None
    return "its source has ended" if source is None else source.begin_raising(set_at)


def notice(error: BaseException) -> None:
    """An exception of the user's program is about to leave the watched code: some are seen nowhere else."""
    for source in _attached:
        source.run_shielded(source.notice, error)


def probe_all() -> list[tuple[str, str, str | None]]:
    """(name, status, reason) of every source: available, or unavailable if the installed torch lacks what it needs."""
    if torch_version() is None:
        return []
    report: list[tuple[str, str, str | None]] = []
    for cls in _source_classes():
        try:
            cls.probe()
            report.append((cls.name, "available", None))
        except NothingToWatch as why:
            report.append((cls.name, "off", f"nothing to watch: {why}"))
        except Unavailable as why:
            report.append((cls.name, "unavailable", str(why)))
    return report
