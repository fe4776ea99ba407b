"""Private names of torch for trials: its config modules, and the backends that `--fast` replaces.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

from ..diagnosis.change import find_config_module
from ..sources.hooks.torch_names import TorchName, Unavailable

#: What `torch.compile` makes of a backend's name: an object that is called with a graph.
INDUCTOR_BACKEND = TorchName("torch", "_TorchCompileInductorWrapper")
NAMED_BACKEND = TorchName("torch", "_TorchCompileWrapper")
#: Gives the store through which the ranks of the default process group know each other.
DEFAULT_STORE = TorchName("torch.distributed.distributed_c10d", "_get_default_store")
#: The attribute by which torch knows a wrapper of its own from a copy.
WRAPPER_ID = "_torchdynamo_wrapper_id"
#: Modules that start threads or processes, or look for devices, when they are imported.
NOT_BEFORE_FORK = ("torch._inductor", "torch.distributed", "torch.utils.tensorboard", "triton", "jax", "tensorflow")


def find_config(key: str) -> Any:
    """The torch config module that a key of `Finding.fix` belongs to; Unavailable if this torch lacks the setting."""
    module = find_config_module(key)
    try:
        owner = importlib.import_module(module)
        getattr(owner, key)
    except (ImportError, AttributeError):
        raise Unavailable(f"this torch has no {module}.{key}") from None
    return owner


def parse_launch(words: list[str]) -> Any:
    """The arguments of torchrun, as its own parser reads them."""
    from torch.distributed.run import get_args_parser

    return get_args_parser().parse_args(words)


def has_gpu() -> bool:
    """True if torch can use a GPU."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def has_compiled() -> bool:
    """True if torch compiled a graph in this process."""
    utils = sys.modules.get("torch._dynamo.utils")
    return utils is not None and bool(utils.counters["stats"]["unique_graphs"])


def measure_gpu_memory() -> int:
    """Bytes that torch holds on GPUs for this process; 0 if it has not used one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return 0
    return sum(torch.cuda.memory_reserved(device) for device in range(torch.cuda.device_count()))


def replace_backends(backend: str, note_graph: Callable[[Any], None]) -> None:
    """Let torch's own backends do what `backend` does, "eager" or "aot_eager", for the rest of the process.

    A backend that is a function of the user's stays. The objects and their identity stay too, because guards check it.
    `note_graph` is called with each graph that Inductor would have compiled.
    """
    inductor, named = INDUCTOR_BACKEND.find(), NAMED_BACKEND.find()
    call_named = named.__call__
    replacement = find_backend()(backend)

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


def compile_context() -> Any:
    """What compiles a callable: `torch.compile` calls one with a function or module. Unavailable without it."""
    return TorchName("torch._dynamo.eval_frame", "OptimizeContext").find()


def skip_code() -> Any:
    """Lets Dynamo pass over a code object. Unavailable without it."""
    return TorchName("torch._dynamo.eval_frame", "skip_code").find()


def tree_leaves() -> Any:
    """The values in what a call returned. Unavailable without it."""
    return TorchName("torch.utils._pytree", "tree_leaves").find()


def counters() -> Any:
    """What Dynamo counts; `["stats"]["unique_graphs"]` are the graphs so far. Unavailable without it."""
    return TorchName("torch._dynamo.utils", "counters").find()


def find_backend() -> Any:
    """What finds a backend by its name. Unavailable without it."""
    return TorchName("torch._dynamo.backends.registry", "lookup_backend").find()
