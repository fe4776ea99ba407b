"""The caches of generated code, and who compiles what is not in them. Read in torch 2.11.0 and 2.13.0."""

from __future__ import annotations

import os
import sys
import types
from concurrent.futures import BrokenExecutor
from typing import Any

from . import class_with, member

CODECACHE = "torch._inductor.codecache"
ASYNC = "torch._inductor.async_compile"


def py_code_cache() -> type:
    """The class whose `load_by_key_path(key, path, ...)` imports a generated module."""
    return member(CODECACHE, "PyCodeCache", "load_by_key_path")


def cpp_code_cache() -> type:
    """The class whose `load_async(code, ...)` gives what loads a C++ library; its subclasses have a `cache` each."""
    return class_with(CODECACHE, "CppCodeCache", "cache", "load_async")


def cutlass_code_cache() -> type:
    """The class whose `compile(source_code, extension)` gives the path of a CUDA object, its hash and its source's."""
    return class_with(CODECACHE, "CUTLASSCodeCache", "cache", "compile")


def cpp_worker_module() -> types.ModuleType:
    """The module whose `_worker_compile_cpp(lock_path, builders)` builds what is not there, in whatever thread."""
    return member(CODECACHE, "_worker_compile_cpp")


def triton_kernels() -> type:
    """The class whose static `get(source)` looks for a kernel that this process has compiled."""
    return member(ASYNC, "CompiledTritonKernels", "get")


def async_compile() -> type:
    """The class whose methods give kernels, or futures of them, to the generated module that calls `wait` last."""
    return class_with(ASYNC, "AsyncCompile", "cpp", "cpp_pybinding", "triton", "wait")


def kernel_info_module() -> types.ModuleType:
    """The module whose `_add_triton_kernel_info(name, info)` is told how long a worker took to compile a kernel."""
    return member(ASYNC, "_add_triton_kernel_info")


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
    """True of the cache of C++ wrappers, whose libraries are loaded without AsyncCompile."""
    return cls.__name__ == "CppWrapperCodeCache"


def targets(builders: Any) -> list[str]:
    """The files that C++ builders write."""
    return [builder.get_target_file_path() for builder in builders]


def is_header(target: str) -> bool:
    """True of a precompiled header, which is no kernel and takes longer than most."""
    return target.endswith((".gch", ".pch"))


def key_of_lock(lock_path: str) -> str:
    return os.path.basename(lock_path).removesuffix(".lock")


def is_future(value: Any) -> bool:
    """True of a kernel that is yet to come."""
    return isinstance(value, sys.modules[CODECACHE].CodeCacheFuture)


def is_from_bundle(value: Any) -> bool:
    """True of a kernel that came compiled out of a cache entry."""
    return isinstance(value, sys.modules[CODECACHE].StaticAutotunerFuture)


def is_broken_pool(error: BaseException) -> bool:
    """True of what a pool of processes raises when one of them is gone."""
    return isinstance(error, BrokenExecutor)
