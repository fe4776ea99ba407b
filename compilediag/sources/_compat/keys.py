"""Where torch makes cache keys, and what is in their parts. Read in torch 2.11.0 and 2.13.0."""

from __future__ import annotations

import copy
import pickle
import sys
import types
from typing import Any

from . import member

CODECACHE = "torch._inductor.codecache"
AUTOGRAD = "torch._functorch._aot_autograd.autograd_cache"
#: What the names of configuration in a key begin with.
SETTINGS = ("inductor_config", "autograd_config")
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


class Settings:
    """The configuration in keys as texts, by name: the same object as long as nothing of it changes."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self.texts: dict[str, str] = {}

    def read(self, parts: dict[str, Any]) -> dict[str, str]:
        """`parts` are dicts of configuration by the name that they have in a key, or bytes of a packed one."""
        if parts != self._known:
            named = {name: pickle.loads(part) if isinstance(part, bytes) else part for name, part in parts.items()}
            self.texts = {f"{name}[{key}]": str(value) for name, part in named.items() for key, value in part.items()}
            self._known = {name: _copied(part) for name, part in parts.items()}
        return self.texts


def autograd_config() -> dict[str, bytes]:
    """The configuration that AOTAutogradCache hashes as bytes, packed by torch as it does for the key."""
    return {"autograd_config": sys.modules["torch._functorch.config"].save_config()}


def autograd_settings(details: Any) -> dict[str, Any]:
    """The configuration in the object that AOTAutogradCache hashes."""
    return {name: part for name, part in vars(details).items() if name.startswith(SETTINGS)}


def autograd_components(pickler: Any, details: Any) -> dict[str, str]:
    """Texts of what else AOTAutogradCache hashes, by name, as its pickler would write them at DEBUG.

    Without the digests: to make those the pickler hashes every part for itself, 10 ms a key.
    """
    found = {}
    for name, part in vars(details).items():
        if name.startswith(SETTINGS):
            continue
        if isinstance(part, list):
            found.update({f"{name}[{i}]": _text(pickler, value) for i, value in enumerate(part)})
        elif isinstance(part, dict):
            found.update({f"{name}[{key}]": _text(pickler, value) for key, value in part.items()})
        else:
            found[name] = _text(pickler, part)
    return found


def _copied(part: Any) -> Any:
    """A dict of configuration whose lists, dicts and sets nobody else can change."""
    if isinstance(part, bytes):
        return part
    return {key: copy.copy(value) if isinstance(value, (list, dict, set)) else value for key, value in part.items()}


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
