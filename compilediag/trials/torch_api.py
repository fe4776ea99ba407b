"""Private names of torch for trials: its config modules, and the backends that `--fast` replaces.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import importlib
from typing import Any

from ..diagnosis.change import find_config_module
from ..sources.hooks.torch_names import TorchName, Unavailable

#: What `torch.compile` makes of a backend's name: an object that is called with a graph.
INDUCTOR_BACKEND = TorchName("torch", "_TorchCompileInductorWrapper")
NAMED_BACKEND = TorchName("torch", "_TorchCompileWrapper")


def find_config(key: str) -> Any:
    """The torch config module that a key of `Finding.fix` belongs to; Unavailable if this torch lacks the setting."""
    module = find_config_module(key)
    try:
        owner = importlib.import_module(module)
        getattr(owner, key)
    except (ImportError, AttributeError):
        raise Unavailable(f"this torch has no {module}.{key}") from None
    return owner


def replace_backends() -> None:
    """Let torch's own backends run their graphs as they are, for the rest of the process.

    A backend that is a function of the user's stays. The objects and their identity stay too, because guards check it.
    """
    inductor, named = INDUCTOR_BACKEND.find(), NAMED_BACKEND.find()
    call_named = named.__call__

    def run_graph(self: Any, model_: Any, inputs_: Any, **options: Any) -> Any:
        return model_.forward

    def run_named(self: Any, model_: Any, inputs_: Any) -> Any:
        is_torchs = str(getattr(self.compiler_fn, "__module__", "")).partition(".")[0] in ("torch", "functorch")
        return model_.forward if is_torchs else call_named(self, model_, inputs_)

    inductor.__call__ = run_graph
    named.__call__ = run_named
