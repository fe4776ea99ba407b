"""Where torch makes cache keys, and what is in their parts. Read in torch 2.11.0 and 2.13.0."""

from __future__ import annotations

import pickle
import sys
import types
from typing import Any

from . import member

CODECACHE = "torch._inductor.codecache"
AUTOGRAD = "torch._functorch._aot_autograd.autograd_cache"
#: Values of larger constants are not read: torch itself has hashed them.
MAX_ELEMENTS = 16


def graph_hash_module() -> types.ModuleType:
    """The module whose `compiled_fx_graph_hash(gm, ...)` gives (key, component lines) of a graph."""
    return member(CODECACHE, "compiled_fx_graph_hash")


def autograd_key_module() -> tuple[types.ModuleType, str]:
    """The module that makes AOTAutogradCache's keys, and the function to watch.

    torch 2.13 writes the component lines in `_get_debug_lines_for_cache_key(pickler, details, key)`, and only if its
    logger is at DEBUG; 2.11 writes them always, in `autograd_cache_key`, which gives (key, component lines).
    """
    module = member(AUTOGRAD, "autograd_cache_key")
    name = "_get_debug_lines_for_cache_key"
    return module, name if name in vars(module) else "autograd_cache_key"


def graph_constants(gm: Any) -> dict[str, str]:
    """The values of a graph's small constants, by name: they are in the key's digest of the graph, not in its code."""
    torch = sys.modules["torch"]
    found = {}
    for node in gm.graph.find_nodes(op="get_attr"):
        value: Any = gm
        for name in str(node.target).split("."):
            value = getattr(value, name, None)
        if type(value) in (torch.Tensor, torch.nn.Parameter) and value.numel() <= MAX_ELEMENTS:
            found[f"constant[{node.target}]"] = str(value.tolist())
    return found


def autograd_config() -> dict[str, str]:
    """The configuration that AOTAutogradCache hashes as bytes, by name."""
    return _saved(sys.modules["torch._functorch.config"].save_config())


def autograd_components(pickler: Any, details: Any) -> dict[str, str]:
    """Texts of what AOTAutogradCache hashes, by name, as its pickler would write them at DEBUG.

    Without the digests: to make those the pickler hashes every part for itself, 10 ms a key.
    """
    found = {}
    for name, part in vars(details).items():
        if name == "autograd_config":
            found.update(_saved(part))
        elif isinstance(part, list):
            found.update({f"{name}[{i}]": _text(pickler, value) for i, value in enumerate(part)})
        elif isinstance(part, dict):
            found.update({f"{name}[{key}]": _text(pickler, value) for key, value in part.items()})
        else:
            found[name] = _text(pickler, part)
    return found


def _saved(config: bytes) -> dict[str, str]:
    """Configuration as `save_config` of this very process has just packed it."""
    return {f"autograd_config[{name}]": str(value) for name, value in pickle.loads(config).items()}


def _text(pickler: Any, part: Any) -> str:
    if isinstance(part, (str, bool, int, float, type(None))):
        return str(part)
    torch = sys.modules["torch"]
    if isinstance(part, torch.fx.GraphModule):
        return str(part.code)
    if isinstance(part, torch.Tensor):
        return str(sys.modules[CODECACHE].extract_tensor_metadata_for_cache_key(part))
    if isinstance(part, bytes):
        return part.hex()
    reduce = pickler.dispatch_table.get(type(part))
    return str(part if reduce is None else reduce(part)[1])
