"""Callbacks for trainers, and the numbers of a session for any logger.

    from compilediag.integrations import TransformersCallback  # or LightningCallback

The libraries are imported when the callback is: `import compilediag.integrations` needs none of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

__all__ = ["LightningCallback", "TransformersCallback", "read_metrics"]

#: Lightning under both of its names.
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")


def __getattr__(name: str) -> Any:
    if name == "read_metrics":
        from .training_watch import read_metrics as value
    elif name == "TransformersCallback":
        from .training_watch import TransformersHooks

        value = _derive(name, TransformersHooks, _import_bases(("transformers",), "TrainerCallback"))
    elif name == "LightningCallback":
        from .training_watch import LightningHooks

        value = _derive(name, LightningHooks, _import_bases(LIGHTNING, "Callback"))
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _import_bases(modules: tuple[str, ...], name: str) -> tuple[type, ...]:
    """The class `name` of each of the modules that the program has imported; of the first one installed if of none."""
    loaded = [module for module in modules if module in sys.modules]
    if not loaded:
        installed = [module for module in modules if importlib.util.find_spec(module.partition(".")[0]) is not None]
        if not installed:
            library = modules[0].partition(".")[0]
            raise ImportError(f"this callback needs {library}: pip install {library}")
        loaded = installed[:1]
    return tuple(getattr(importlib.import_module(module), name) for module in loaded)


def _derive(name: str, hooks: type, bases: tuple[type, ...]) -> type:
    """The class of a callback. It has this module, so that it can be pickled for a process that is spawned."""
    return type(name, (hooks, *bases), {"__module__": __name__, "__qualname__": name, "__doc__": hooks.__doc__})
