"""Private names of torch's compile caches: of graphs, of kernels and of generated code, and what compiles that code.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import copy
import logging
import os
import pickle
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

from ...system.interrupts import pass_on
from ..hooks.torch_names import HookPoint, TorchName, caller_frames, declare_parameters, fields, hook_points

CODECACHE = "torch._inductor.codecache"
ASYNC = "torch._inductor.async_compile"
AUTOGRAD_CACHE = "torch._functorch._aot_autograd.autograd_cache"
AUTOGRAD_RESULT = "torch._functorch._aot_autograd.aot_autograd_result"
REMOTE_CACHE = "torch._inductor.remote_cache"
BUNDLER = "torch._inductor.triton_bundler"
ARTIFACTS = "torch.compiler._cache"

#: The class method with which both caches search the entries of a key.
ENTRIES_SEARCHED = HookPoint(CODECACHE, "GuardedCache.find_guarded_entry")
#: The generated module of a found entry is written again if it is gone.
MODULE_RESTORED = HookPoint("torch._inductor.output_code", "CompiledFxGraph.write_to_disk")
FILE_WRITTEN = HookPoint(CODECACHE, "write_atomic")

#: FxGraphCache. `load_with_key` sees every look-up, also those of AOTAutogradCache, which torch does not announce.
FX_KEY_PREPARED, FX_LOOKED_UP, FX_SAVED, FX_RESULT, FX_WRITTEN, FX_CLEARED = hook_points(
    CODECACHE,
    "FxGraphCache",
    *("prepare_key", "load_with_key", "_save_graph", "_record_result", "_write_to_local_cache", "clear"),
)
#: Gives (key, component lines) of a graph.
FX_KEY_HASHED = HookPoint(CODECACHE, "compiled_fx_graph_hash")

#: AOTAutogradCache, which announces its look-ups while it logs events only.
AOT_TRIED, AOT_LOOKED_UP, AOT_SAVED, AOT_RESULT, AOT_WRITTEN, AOT_CLEARED = hook_points(
    AUTOGRAD_CACHE,
    "AOTAutogradCache",
    *("try_load", "_lookup", "save", "_record_result", "_write_to_local_cache", "clear"),
)
AOT_SAVE_FAILED, AOT_FIELD_SEARCHED = hook_points(
    AUTOGRAD_CACHE, "AOTAutogradCache", "_handle_save_error", "_find_unpicklable_field"
)
#: Gives (key, component lines); torch 2.13 writes the lines in the second one, and only if its logger is at DEBUG.
AOT_KEY_HASHED = HookPoint(AUTOGRAD_CACHE, "autograd_cache_key")
AOT_KEY_LINES = HookPoint(AUTOGRAD_CACHE, "_get_debug_lines_for_cache_key", required=False)
#: The method of an entry that looks up the graphs that the entry names.
AOT_GRAPHS_LOOKED_UP = HookPoint(AUTOGRAD_RESULT, "GenericAOTAutogradResult.wrap_post_compile")
#: torch 2.15: all ranks drop what they found if one of them found nothing. False for the ranks that compile.
AOT_RANKS_AGREED = HookPoint(AUTOGRAD_CACHE, "sync_cache_decision_cross_ranks", required=False)
#: The error that a graph of an AOTAutograd entry is not in FxGraphCache any more: counted as a miss.
FX_GRAPH_MISS = TorchName(AUTOGRAD_CACHE, "FXGraphCacheMiss")
#: The method of torch's configurations that packs them.
SAVE_CONFIG = TorchName("torch.utils._config_module", "ConfigModule.save_config")
TENSOR_METADATA = TorchName(CODECACHE, "extract_tensor_metadata_for_cache_key")

#: `get` and `put` of all small caches, on disk or a server; and those that move the bytes of remote caches.
REMOTE_GET, REMOTE_PUT = hook_points(REMOTE_CACHE, "RemoteCache", "get", "put")
BACKEND_GET, BACKEND_PUT = hook_points(REMOTE_CACHE, "RemoteCacheBackend", "get", "put")
#: Creating a cache on Redis fails where package redis is missing.
REDIS_CREATED = HookPoint(REMOTE_CACHE, "RedisRemoteCache.__init__")

#: A bundle of compiled triton kernels is collected, its files are put in place, its launchers are loaded.
BUNDLE_COLLECTED, BUNDLE_READ, LAUNCHERS_LOADED = hook_points(
    BUNDLER, "TritonBundler", "collect", "read_and_emit", "load_autotuners"
)

#: `torch.compiler.load_cache_artifacts` unpacks them, and makes each an entry of its cache.
ARTIFACTS_READ = HookPoint(ARTIFACTS, "CacheArtifactManager.deserialize", required=False)
ARTIFACTS_LOADED = HookPoint(ARTIFACTS, "CacheArtifactManager.populate_caches", required=False)

CACHE_LOGGER = TorchName(CODECACHE, "log")
#: What `clear_caches` clears, by calling `cache_clear`; `fresh_cache` calls it at both of its ends.
REGISTERED_CACHES = TorchName("torch._inductor.utils", "_registered_caches")
CLEAR_CACHES = TorchName("torch._inductor.utils", "clear_caches")
FRESH_CACHE = TorchName("torch._inductor.utils", "fresh_cache")

#: Imports a generated module.
MODULE_LOADED = HookPoint(CODECACHE, "PyCodeCache.load_by_key_path")
#: Gives what loads a C++ library; the subclasses have a `cache` each.
LIBRARY_LOADED = HookPoint(CODECACHE, "CppCodeCache.load_async")
#: Gives the path of a CUDA object, its hash and that of its source.
CUDA_COMPILED = HookPoint(CODECACHE, "CUTLASSCodeCache.compile")
#: Builds a C++ library that does not exist yet, in whatever thread.
CPP_BUILT = HookPoint(CODECACHE, "_worker_compile_cpp")
#: Looks for a triton kernel that this process has compiled.
KERNEL_LOOKED_UP = HookPoint(ASYNC, "CompiledTritonKernels.get")
#: Give kernels, or futures of them, to the generated module, which calls `wait` last.
CPP_ORDERED, CPP_BINDING_ORDERED, TRITON_ORDERED, KERNELS_AWAITED = hook_points(
    ASYNC, "AsyncCompile", "cpp", "cpp_pybinding", "triton", "wait"
)
#: Called with how long a worker took to compile a kernel.
KERNEL_COMPILED = HookPoint(ASYNC, "_add_triton_kernel_info")
#: Builds and loads a library with the vector instructions that the CPU may have, in every process.
INSTRUCTIONS_CHECKED = HookPoint("torch._inductor.cpu_vec_isa", "VecISA.check_build")
FUTURE = TorchName(CODECACHE, "CodeCacheFuture")
BUNDLED_FUTURE = TorchName(CODECACHE, "StaticAutotunerFuture")
#: The cache of C++ wrappers, whose libraries are loaded without AsyncCompile.
CPP_WRAPPER_CACHE = TorchName(CODECACHE, "CppWrapperCodeCache")

_READ = (
    *fields("torch._inductor.output_code", "CompiledFxGraph", "_time_taken_ns", "_fx_graph_cache_key"),
    *fields("torch._inductor.output_code", "CompiledFxGraph", "metrics_deltas", "counter_deltas"),
    *fields(AUTOGRAD_RESULT, "GenericAOTAutogradResult", "compiled_fw", "compiled_bw"),
    *fields(AUTOGRAD_RESULT, "GenericAOTAutogradResult", "forward_time_taken_ns", "backward_time_taken_ns"),
    *fields(BUNDLER, "TritonBundle", "kernel_artifacts", "static_autotuners"),
    *fields(BUNDLER, "TritonBundlerMetadata", "cached_kernel_names"),
    *fields(REMOTE_CACHE, "RedisRemoteCacheBackend", "_redis"),
    *fields(ARTIFACTS, "CacheArtifact", "key", "content"),
    *fields(CODECACHE, "CppCodeCache", "cache"),
    *fields(CODECACHE, "CUTLASSCodeCache", "cache"),
    *fields(CODECACHE, "PyCodeCache", "modules_no_attr"),
)
#: What the names of configuration in a key begin with.
SETTINGS = ("inductor_config", "autograd_config")
#: Values of larger constants are not read: torch itself has hashed them.
MAX_ELEMENTS = 16

#: What the hooks read.
declare_parameters(
    {
        ENTRIES_SEARCHED: "cls key local remote_cache evaluate_guards hints",
        MODULE_RESTORED: "self",
        FILE_WRITTEN: "path_ content",
        FX_LOOKED_UP: "key debug_lines",
        FX_SAVED: "key compiled_graph example_inputs local",
        FX_RESULT: "cls key local_hit local_miss remote_hit",
        FX_WRITTEN: "key content",
        FX_KEY_HASHED: "gm",
        AOT_RANKS_AGREED: "local_hit",
        AOT_SAVED: "key entry",
        AOT_RESULT: "cls key local_hit local_miss remote_hit",
        AOT_WRITTEN: "key content",
        AOT_SAVE_FAILED: "e remote is_bypass",
        AOT_KEY_LINES: "pickler details key",
        REMOTE_GET: "self key",
        REMOTE_PUT: "self key value",
        BACKEND_GET: "self key",
        BACKEND_PUT: "self key data",
        REDIS_CREATED: "self",
        BUNDLE_READ: "bundle",
        LAUNCHERS_LOADED: "cls static_autotuners",
        ARTIFACTS_LOADED: "artifacts",
        MODULE_LOADED: "cls key path linemap attrs",
        LIBRARY_LOADED: "cls",
        CUDA_COMPILED: "cls",
        CPP_BUILT: "lock_path cpp_builders",
        TRITON_ORDERED: "self kernel_name",
        KERNELS_AWAITED: "self scope",
        KERNEL_COMPILED: "kernel_name info",
    }
)


def cache_logger() -> logging.Logger:
    """The logger that alone reports why an entry could not be loaded or pickled: torch catches it and goes on."""
    CACHE_LOGGER.owner()
    return logging.getLogger(CODECACHE)


def fresh_cache_stage() -> str | None:
    """ "begins" or "ends" for a `cache_clear` that `fresh_cache` caused, a few frames up; None for any other."""
    cleared = next((frame for frame in caller_frames(60) if frame.f_code.co_name == CLEAR_CACHES.name), None)
    caller = cleared and cleared.f_back
    if caller is None or caller.f_code.co_name != FRESH_CACHE.name:
        return None
    return "ends" if "inductor_cache_dir" in caller.f_locals else "begins"


def has_files(cache: Any, key: str) -> bool:
    """True if the local tier of a guarded cache has files for a key."""
    try:
        return any(not name.startswith(".") for name in os.listdir(cache._get_tmp_dir_for_key(key)))
    except OSError as error:
        pass_on(error)
        return False


def entry_columns(entry: Any) -> dict[str, Any]:
    """The keys of the graphs of an AOTAutogradCache entry and the s that they took. Bundled graphs have no keys; where
    torch measured nothing it says 0.
    """
    columns: dict[str, Any] = {}
    for way in ("forward", "backward"):
        graph = getattr(entry, f"compiled_{way[0]}w", None)
        info = getattr(graph, "fx_graph_cache_info", None)
        columns[f"{way}_key"] = info[0] if info else None
        taken_ns = getattr(entry, f"{way}_time_taken_ns", None)
        columns[f"{way}_s"] = taken_ns / 1e9 if taken_ns and taken_ns > 0 else None
    return columns


def graph_columns(graph: Any) -> dict[str, Any]:
    """The kernels that were generated for an FxGraphCache entry and the s that it took."""
    taken_ns = getattr(graph, "_time_taken_ns", None)
    deltas = getattr(graph, "metrics_deltas", None)
    return {
        "kernels": getattr(deltas, "generated_kernel_count", None),
        "taken_s": None if taken_ns is None or taken_ns < 0 else taken_ns / 1e9,
    }


def graph_key(graph: Any) -> str | None:
    """The key under which FxGraphCache has a graph."""
    key: str | None = getattr(graph, "_fx_graph_cache_key", None)
    return key


def repeated_counts(*graphs: Any) -> dict[str, int] | None:
    """What `FxGraphCache.cache_hit_post_compile` adds to torch's counters when these graphs come from a cache: all that
    their compiles had counted.
    """
    total: Counter[str] = Counter()
    for graph in graphs:
        total.update(getattr(graph, "counter_deltas", None) or {})
    return dict(total) or None


def bundled_graphs(entry: Any) -> list[Any]:
    """The graphs that an AOTAutogradCache entry holds itself, where it does not name those of FxGraphCache."""
    loadables = (getattr(entry, f"compiled_{way}", None) for way in ("fw", "bw"))
    return [loadable.result for loadable in loadables if loadable is not None and hasattr(loadable, "result")]


def why_disabled() -> str:
    """Why Inductor does not ask FxGraphCache, as far as the configuration shows."""
    inductor, functorch = sys.modules["torch._inductor.config"], sys.modules["torch._functorch.config"]
    if inductor.force_disable_caches:
        return "torch._inductor.config.force_disable_caches is set"
    if functorch.bundled_autograd_cache:
        return "torch._functorch.config.bundled_autograd_cache is set: the graphs are in the aot_autograd entry"
    if not (inductor.fx_graph_cache or inductor.fx_graph_remote_cache):
        return "torch._inductor.config.fx_graph_cache is off"
    return "compiled ahead of time, or for a backend that supports no caching"


# Remote caches


def is_remote(cache: Any) -> bool:
    """False for caches on this machine's disk, which torch builds on the same classes."""
    return not any("Local" in cls.__name__ for cls in type(cache).__mro__)


def redis_client(backend: Any) -> Any:
    """The client of a Redis backend: None after torch has dropped it, which it does when a connection fails."""
    return getattr(backend, "_redis", None)


def is_redis(backend: Any) -> bool:
    return hasattr(backend, "_redis")


def redis_address(client: Any) -> str:
    """host:port of a Redis client."""
    known: Mapping[str, Any] = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
    return f"{known.get('host', 'localhost')}:{known.get('port', 6379)}"


# Triton bundles


class BundleColumns(TypedDict, total=False):
    """The size of a bundle of kernels, as far as known."""

    kernels: int
    files: int
    bytes: int


def bundle_columns(artifacts: list[Any]) -> BundleColumns:
    """kernels, files and bytes of the kernels of a bundle."""
    files = [artifact for kernel in artifacts for artifact in kernel.artifacts]
    return {
        "kernels": len(artifacts),
        "files": len(files),
        "bytes": sum(len(artifact.payload) for artifact in files),
    }


def written_kernels(bundle: Any, metadata: Any) -> list[Any]:
    """The kernels of a bundle whose files were written; those of the others were in place.

    torch gives the names of what it wrote, one for each file of machine code, in the order of the bundle.
    """
    names = Counter(metadata.cached_kernel_names)
    found = []
    for kernel in bundle.kernel_artifacts:
        stems = {Path(artifact.filename).stem for artifact in kernel.artifacts}
        written = next((stem for stem in stems if names[stem]), None)
        if written is not None:
            names[written] -= 1
            found.append(kernel)
    return found


# Artifacts

#: Types of artifacts -> caches, where the names differ.
ARTIFACT_CACHES = {"inductor": "fx_graph", "precompile": "dynamo_code"}


def list_artifacts(artifacts: Mapping[str, list[Any]]) -> list[tuple[str, str, int]]:
    """The cache, key and bytes of each artifact. Look-ups of a tuned kernel name its file alone, without the folder."""
    shorten = {"autotune": os.path.basename}
    return [
        (ARTIFACT_CACHES.get(kind, kind), shorten.get(kind, str)(one.key), len(one.content))
        for kind, found in artifacts.items()
        for one in found
    ]


# Parts of keys


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


class SettingTexts:
    """The configuration in keys as texts, by name: the same object as long as nothing of it changes."""

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}
        self.texts: dict[str, str] = {}

    def read(self, parts: dict[str, Any]) -> dict[str, str]:
        """`parts` are dicts of configuration by the name that they have in a key, or bytes of a packed one."""
        if parts != self._known:
            named = {name: pickle.loads(part) if isinstance(part, bytes) else part for name, part in parts.items()}
            self.texts = {f"{name}[{key}]": str(value) for name, part in named.items() for key, value in part.items()}
            self._known = {name: _copy_settings(part) for name, part in parts.items()}
        return self.texts


def autograd_config() -> dict[str, bytes]:
    """The configuration that AOTAutogradCache hashes as bytes, packed by torch as it does for the key."""
    return {"autograd_config": getattr(sys.modules["torch._functorch.config"], SAVE_CONFIG.name)()}


def autograd_settings(details: Any) -> dict[str, Any]:
    """The configuration in the object that AOTAutogradCache hashes."""
    return {name: part for name, part in vars(details).items() if name.startswith(SETTINGS)}


def autograd_components(pickler: Any, details: Any) -> dict[str, str]:
    """Texts of what else AOTAutogradCache hashes, by name, as its pickler would write them at DEBUG.

    Without the digests: to make those the pickler hashes every part for itself, 10 ms per key.
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


def _copy_settings(part: Any) -> Any:
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
        return str(TENSOR_METADATA.get_loaded()(part))
    if isinstance(part, bytes):
        return part.hex()
    reduce = pickler.dispatch_table.get(type(part))
    return str(part if reduce is None else reduce(part)[1])


# Generated code


def worker_kind() -> str:
    """How compile workers are started: subprocess, fork or spawn."""
    return str(sys.modules["torch._inductor.config"].worker_start_method)


def target_files(builders: Any) -> list[str]:
    """The files that C++ builders write."""
    return [builder.get_target_file_path() for builder in builders]


def is_future(value: Any) -> bool:
    """True for a kernel that a worker still compiles."""
    return isinstance(value, FUTURE.get_loaded())


def is_from_bundle(value: Any) -> bool:
    """True for a kernel that came compiled out of a cache entry."""
    return isinstance(value, BUNDLED_FUTURE.get_loaded())
