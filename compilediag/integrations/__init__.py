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

#: Callback -> the class here that has its hooks, and the class of the library, which can have several names.
_CALLBACKS = {
    "TransformersCallback": ("TransformersHooks", "TrainerCallback", ("transformers",)),
    "LightningCallback": ("LightningHooks", "Callback", ("lightning.pytorch", "pytorch_lightning")),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import training_watch

    if name == "read_metrics":
        value: Any = training_watch.read_metrics
    else:
        hooks, base, modules = _CALLBACKS[name]
        own = getattr(training_watch, hooks)
        # It has this module, so that it can be pickled for a process that is spawned.
        namespace = {"__module__": __name__, "__qualname__": name, "__doc__": own.__doc__}
        value = type(name, (own, *_import_bases(modules, base)), namespace)
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
