"""What trials need of torch's own parts: its config modules, the backends that `--fast` replaces, and names of Dynamo.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from ..diagnosis.change import SOURCE_LISTS, Settings, find_config_module
from ..errors import CompilediagError
from ..sources.hooks.torch_names import TorchName, Unavailable

#: What `torch.compile` makes of a backend's name: an object that is called with a graph.
INDUCTOR_BACKEND = TorchName("torch", "_TorchCompileInductorWrapper")
NAMED_BACKEND = TorchName("torch", "_TorchCompileWrapper")
#: Gives the store through which the ranks of the default process group know each other.
DEFAULT_STORE = TorchName("torch.distributed.distributed_c10d", "_get_default_store")
#: What `find` gives -> its module.
_MODULES = {
    "OptimizeContext": "torch._dynamo.eval_frame",  # `torch.compile` calls one with a function or module.
    "skip_code": "torch._dynamo.eval_frame",  # Lets Dynamo pass over a code object.
    "counters": "torch._dynamo.utils",  # `["stats"]["unique_graphs"]` are the graphs so far.
    "lookup_backend": "torch._dynamo.backends.registry",
    "tree_leaves": "torch.utils._pytree",  # The values in what a call returned.
}
#: The attribute by which torch knows a wrapper of its own from a copy.
WRAPPER_ID = "_torchdynamo_wrapper_id"
#: Modules that start threads or processes, or look for devices, when they are imported.
NOT_BEFORE_FORK = ("torch._inductor", "torch.distributed", "torch.utils.tensorboard", "triton", "jax", "tensorflow")


def find(name: str) -> Any:
    """One of these parts of torch. Unavailable without it."""
    return TorchName(_MODULES[name], name).find()


def apply_settings(settings: Settings) -> None:
    """Assign settings, as the user's code would. CompilediagError if this torch lacks one."""
    for key, value in settings.items():
        module = find_config_module(key)
        try:
            owner = importlib.import_module(module)
            now = getattr(owner, key)
        except (ImportError, AttributeError):
            raise CompilediagError(f"this plan cannot be tried here: this torch has no {module}.{key}") from None
        setattr(owner, key, f"{now},{value}" if key in SOURCE_LISTS and now else value)


def parse_launch(words: list[str]) -> Any:
    """The arguments of torchrun, as its own parser reads them."""
    from torch.distributed.run import get_args_parser

    return get_args_parser().parse_args(words)


def has_compiled() -> bool:
    """True if torch compiled a graph in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    return utils is not None and bool(utils.counters["stats"]["unique_graphs"])


def replace_backends(backend: str, note_graph: Callable[[Any], None]) -> None:
    """Let torch's own backends do what `backend` does, "eager" or "aot_eager", for the rest of the process.

    A backend that is a function of the user's stays. The objects and their identity stay too, because guards check it.
    `note_graph` is called with each graph that Inductor would have compiled. CompilediagError if it can't be done.
    """
    try:
        inductor, named = INDUCTOR_BACKEND.find(), NAMED_BACKEND.find()
        replacement = find("lookup_backend")(backend)
    except Unavailable as why:
        raise CompilediagError(f"--fast does not work here: {why}") from None
    call_named = named.__call__

    def run_graph(self: Any, model_: Any, inputs_: Any, **options: Any) -> Any:
        note_graph(model_)
        return replacement(model_, inputs_)

    def run_named(self: Any, model_: Any, inputs_: Any) -> Any:
        is_torchs = str(getattr(self.compiler_fn, "__module__", "")).partition(".")[0] in ("torch", "functorch")
        return replacement(model_, inputs_) if is_torchs else call_named(self, model_, inputs_)

    inductor.__call__ = run_graph
    named.__call__ = run_named


def enters_autocast(graph: Any) -> bool:
    """True if a graph enters autocast, for which AOTAutogradCache passes over it, unless that is allowed."""
    config = sys.modules.get("torch._inductor.config")
    allowed = getattr(config, "unsafe_marked_cacheable_functions", {})
    functions = (node.target for node in graph.graph.nodes if node.op == "call_function")
    names = {f"{getattr(one, '__module__', '')}.{getattr(one, '__name__', '')}" for one in functions}
    return any(name.endswith("_enter_autocast") and name not in allowed for name in names)


def wrap_module(module: Any, wrap: Callable[[Any], Any]) -> None:
    """Let calls of a module call a wrapper, which is put where `module.compile()` puts its own."""
    module._compiled_call_impl = wrap(module._call_impl)
