"""Everything that touches torch: one file a family of hooks. Imported when a watch begins, not before.

A source watches one part of the compiler and hands what it sees to the recorder. `attach` puts the sources
of a detail in, `detach` takes them out again, `probe_all` says what would work here.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterator

from ..errors import CompilediagError
from ..recorder import Recorder
from .base import NothingToWatch, Source, Unavailable
from .patching import installed

__all__ = ["attach", "detach", "installed", "paused", "probe_all", "require_torch", "torch_version"]

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


def _classes() -> list[type[Source]]:
    from .caches import Caches
    from .compiles import Compiles
    from .dynamic import Dynamic
    from .graph_breaks import GraphBreaks
    from .keys import Keys
    from .phases import Phases
    from .recompiles import Recompiles
    from .trace import Trace

    return [Compiles, Phases, Recompiles, GraphBreaks, Caches, Keys, Dynamic, Trace]


def attach(recorder: Recorder, detail: str) -> None:
    """Put the hooks of every source in. A source that can't work here says why in its status."""
    from .writer import Writer

    for cls in _classes():
        source = cls(recorder, detail)
        source.begin()
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
            source.begin()


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
