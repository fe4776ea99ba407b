"""torch's private places of FxGraphCache, AOTAutogradCache and the remote caches. Read in torch 2.11.0 and 2.13.0."""

from __future__ import annotations

import logging
import os
import sys
import types
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from . import class_with, frames, member

CODECACHE = "torch._inductor.codecache"
AUTOGRAD_CACHE = "torch._functorch._aot_autograd.autograd_cache"
AUTOGRAD_RESULT = "torch._functorch._aot_autograd.aot_autograd_result"
REMOTE_CACHE = "torch._inductor.remote_cache"


def guarded_cache() -> type:
    """The class whose class method `find_guarded_entry` both caches look up with."""
    return member(CODECACHE, "GuardedCache", "find_guarded_entry")


def fx_graph_cache() -> type:
    """FxGraphCache. `load_with_key` sees every look-up, also those of AOTAutogradCache, which nobody announces."""
    names = ("prepare_key", "load_with_key", "_save_graph", "_record_result", "_write_to_local_cache", "clear")
    return class_with(CODECACHE, "FxGraphCache", *names)


def codecache() -> types.ModuleType:
    """The module whose `compiled_fx_graph_hash` and `write_atomic` are called by name."""
    member(CODECACHE, "compiled_fx_graph_hash")
    return member(CODECACHE, "write_atomic")


def compiled_fx_graph() -> type:
    """The class of an entry, whose `write_to_disk` puts the generated module back if it is gone."""
    return member("torch._inductor.output_code", "CompiledFxGraph", "write_to_disk")


def aot_autograd_cache() -> type:
    """AOTAutogradCache, which tells nobody of its look-ups but `try_load`'s callees."""
    names = (
        *("try_load", "_lookup", "save", "_record_result", "_write_to_local_cache", "clear"),
        *("_handle_save_error", "_find_unpicklable_field"),
    )
    return class_with(AUTOGRAD_CACHE, "AOTAutogradCache", *names)


def autograd_cache() -> types.ModuleType:
    """The module whose `autograd_cache_key` `try_load` calls by name."""
    member(AUTOGRAD_CACHE, "FXGraphCacheMiss")
    return member(AUTOGRAD_CACHE, "autograd_cache_key")


def autograd_result() -> type:
    """The class of an entry, whose `wrap_post_compile` looks up the graphs that it names."""
    return member(AUTOGRAD_RESULT, "GenericAOTAutogradResult", "wrap_post_compile")


def is_fx_graph_miss(error: BaseException) -> bool:
    """True for what says that a graph of an AOTAutograd entry is not in FxGraphCache any more: counted as a miss."""
    return isinstance(error, sys.modules[AUTOGRAD_CACHE].FXGraphCacheMiss)


def cache_logger() -> logging.Logger:
    """The logger that alone hears why an entry could not be loaded or pickled: torch catches it and goes on."""
    member(CODECACHE, "log")
    return logging.getLogger(CODECACHE)


def registered_caches() -> list[Any]:
    """What `clear_caches` clears, by calling `cache_clear`; it is called at both ends of `fresh_cache`."""
    member("torch._inductor.utils", "clear_caches")
    member("torch._inductor.utils", "fresh_cache")
    return member("torch._inductor.utils", "_registered_caches")._registered_caches


def fresh_cache_stage() -> str | None:
    """Of a `cache_clear` that `fresh_cache` caused, a few frames up: "begins" or "ends"; None in any other."""
    cleared = next((frame for frame in frames(60) if frame.f_code.co_name == "clear_caches"), None)
    caller = cleared and cleared.f_back
    if caller is None or caller.f_code.co_name != "fresh_cache":
        return None
    return "ends" if "inductor_cache_dir" in caller.f_locals else "begins"


def has_files(cache: Any, key: str) -> bool:
    """True if the local tier of a guarded cache has files for a key."""
    try:
        return any(not name.startswith(".") for name in os.listdir(cache._get_tmp_dir_for_key(key)))
    except OSError:
        return False


def guard_holds(evaluate: Callable[..., Any], hints: list[Any]) -> Callable[[str], bool]:
    """A function that says of a guard of a cached entry whether it holds, as torch itself evaluates it."""
    return lambda guard: bool(evaluate(guard, hints))


def entry_columns(entry: Any) -> dict[str, Any]:
    """Of an entry of AOTAutogradCache: the keys of its graphs and the s that they took. Bundled graphs have no keys,
    and where torch has measured nothing it says 0.
    """
    columns: dict[str, Any] = {}
    for way in ("forward", "backward"):
        graph = getattr(entry, f"compiled_{way[0]}w", None)
        info = getattr(graph, "fx_graph_cache_info", None)
        columns[f"{way}_key"] = info[0] if info else None
        taken_ns = getattr(entry, f"{way}_time_taken_ns", None)
        columns[f"{way}_s"] = taken_ns / 1e9 if taken_ns else None
    return columns


def graph_columns(graph: Any) -> dict[str, Any]:
    """Of an entry of FxGraphCache: the kernels that were generated for it and the s that it took."""
    taken_ns = getattr(graph, "_time_taken_ns", None)
    deltas = getattr(graph, "metrics_deltas", None)
    return {
        "kernels": getattr(deltas, "generated_kernel_count", None),
        "taken_s": None if taken_ns is None else taken_ns / 1e9,
    }


def counted_again(*graphs: Any) -> dict[str, int] | None:
    """What `FxGraphCache.cache_hit_post_compile` adds to torch's counters when these graphs come from a cache: all that
    their compiles had counted.
    """
    total: Counter[str] = Counter()
    for graph in graphs:
        total.update(getattr(graph, "counter_deltas", None) or {})
    return dict(total) or None


def bundled_graphs(entry: Any) -> list[Any]:
    """The graphs that an entry of AOTAutogradCache holds itself, where it does not name those of FxGraphCache."""
    loadables = (getattr(entry, f"compiled_{way}", None) for way in ("fw", "bw"))
    return [loadable.result for loadable in loadables if hasattr(loadable, "result")]


def why_disabled() -> str | None:
    """Why Inductor asks FxGraphCache for nothing, as far as the configuration says."""
    inductor, functorch = sys.modules["torch._inductor.config"], sys.modules["torch._functorch.config"]
    if inductor.force_disable_caches:
        return "torch._inductor.config.force_disable_caches is set"
    if functorch.bundled_autograd_cache:
        return "torch._functorch.config.bundled_autograd_cache is set: the graphs are in the aot_autograd entry"
    if not (inductor.fx_graph_cache or inductor.fx_graph_remote_cache):
        return "torch._inductor.config.fx_graph_cache is off"
    return "compiled ahead of time, or for a backend that supports no caching"


def remote_cache() -> type:
    """The class whose `get(key)` and `put(key, value)` are those of all small caches, on disk or a server."""
    return class_with(REMOTE_CACHE, "RemoteCache", "get", "put")


def remote_backend() -> type:
    """The class whose `get` and `put` move the bytes of every remote cache."""
    return class_with(REMOTE_CACHE, "RemoteCacheBackend", "get", "put")


def redis_cache() -> type:
    """The class of all of torch's caches on Redis; making one fails where package redis is missing."""
    return member(REMOTE_CACHE, "RedisRemoteCache", "__init__")


def is_remote(cache: Any) -> bool:
    """False for caches on this machine's disk, which torch builds on the same classes."""
    return not any("Local" in cls.__name__ for cls in type(cache).__mro__)


def connection(backend: Any) -> Any:
    """The client of a Redis backend: None after torch has dropped it, which it does when a connection fails."""
    return getattr(backend, "_redis", None)


def is_redis(backend: Any) -> bool:
    return hasattr(backend, "_redis")


def address(client: Any) -> str:
    """host:port of a Redis client."""
    known: Mapping[str, Any] = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
    return f"{known.get('host', 'localhost')}:{known.get('port', 6379)}"
