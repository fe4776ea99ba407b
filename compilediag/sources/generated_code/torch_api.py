"""Private names of torch's caches of generated code, and of what compiles the code that is not in them.

Read in the sources of torch 2.11.0, 2.13.0 and 2.15.0.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import BrokenExecutor
from typing import Any

from ..hooks.torch_names import HookPoint, TorchName, declare_parameters, fields, hook_points

CODECACHE = "torch._inductor.codecache"
ASYNC = "torch._inductor.async_compile"

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
CPP_WRAPPER_CACHE = TorchName(CODECACHE, "CppWrapperCodeCache")
_READ = (
    *fields(CODECACHE, "CppCodeCache", "cache"),
    *fields(CODECACHE, "CUTLASSCodeCache", "cache"),
    *fields(CODECACHE, "PyCodeCache", "modules_no_attr"),
)

#: What the hooks read.
declare_parameters(
    {
        MODULE_LOADED: "cls key path linemap attrs",
        LIBRARY_LOADED: "cls",
        CUDA_COMPILED: "cls",
        CPP_BUILT: "lock_path cpp_builders",
        TRITON_ORDERED: "self kernel_name",
        KERNELS_AWAITED: "self scope",
        KERNEL_COMPILED: "kernel_name info",
    }
)


def worker_kind() -> str:
    """How compile workers are started: subprocess, fork or spawn."""
    return str(sys.modules["torch._inductor.config"].worker_start_method)


def is_loaded(cls: Any, path: str, attrs: Any) -> bool:
    """True if PyCodeCache will give the module that it has."""
    return attrs is None and path in cls.modules_no_attr


def key_of_library(cls: Any, load: Any) -> str | None:
    """The key under which a C++ cache has what `load_async` gave: among the last, if it is new."""
    return next((key for key, known in reversed(list(cls.cache.items())) if known is load), None)


def is_wrapper(cls: Any) -> bool:
    """True for the cache of C++ wrappers, whose libraries are loaded without AsyncCompile."""
    return bool(cls.__name__ == CPP_WRAPPER_CACHE.name)


def target_files(builders: Any) -> list[str]:
    """The files that C++ builders write."""
    return [builder.get_target_file_path() for builder in builders]


def is_header(target: str) -> bool:
    """True for a precompiled header, which is no kernel and takes longer than most."""
    return target.endswith((".gch", ".pch"))


def key_of_lock(lock_path: str) -> str:
    return os.path.basename(lock_path).removesuffix(".lock")


def is_future(value: Any) -> bool:
    """True for a kernel that a worker still compiles."""
    return isinstance(value, FUTURE.get_loaded())


def is_from_bundle(value: Any) -> bool:
    """True for a kernel that came compiled out of a cache entry."""
    return isinstance(value, BUNDLED_FUTURE.get_loaded())


def is_broken_pool(error: BaseException) -> bool:
    """True for the error that a pool of processes raises when one of them is gone."""
    return isinstance(error, BrokenExecutor)
