"""compilediag: why torch.compile recompiled, what it cost and what to change.

    import compilediag as cd

    with cd.watch() as session:
        train()
    print(session.summary())

Importing this package imports neither torch nor anything of Jupyter: each name below loads when it is first used.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from compilediag.version import __version__

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from compilediag.comparison import coldstart, diff
    from compilediag.session import Session, ingest, last, load
    from compilediag.watch import current, start, step, stop, watch

__all__ = [
    "Session",
    "__version__",
    "coldstart",
    "current",
    "diff",
    "ingest",
    "last",
    "load",
    "start",
    "step",
    "stop",
    "watch",
]

_HOME = {  # where each lazy name is defined
    "Session": "compilediag.session",
    "last": "compilediag.session",
    "load": "compilediag.session",
    "coldstart": "compilediag.comparison",
    "diff": "compilediag.comparison",
    "ingest": "compilediag.session",
    "current": "compilediag.watch",
    "start": "compilediag.watch",
    "step": "compilediag.watch",
    "stop": "compilediag.watch",
    "watch": "compilediag.watch",
}


def __getattr__(name: str) -> Any:
    if name == "integrations":
        return importlib.import_module("compilediag.integrations")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """Importing the module `compilediag.watch`, from wherever, leaves `compilediag.watch` the function in it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "watch" and isinstance(value, types.ModuleType):
            value = value.watch
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def load_ipython_extension(shell: InteractiveShell) -> None:
    """`%load_ext compilediag`: adds `%compilewatch` and `%%compilewatch` to this IPython."""
    from compilediag.frontends import magics

    magics.load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """`%unload_ext compilediag`: takes both away again and stops the watch that they started."""
    from compilediag.frontends import magics

    magics.unload(shell)
