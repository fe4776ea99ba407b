"""Where torch and triton tune. Read in the sources of torch 2.11.0 and 2.13.0 and of triton 3.6.0.

Most of these modules are imported by torch only when it compiles for Inductor: a source waits for them (see
`Source.late_patches`), and each function here imports no more than the module that it is about.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from typing import Any

from ..hooks.source import Unavailable
from . import class_with, frames, member

SELECT = "torch._inductor.select_algorithm"
PROCESS = "torch._inductor.autotune_process"
IR = "torch._inductor.ir"
SCHEDULER = "torch._inductor.scheduler"
HEURISTICS = "torch._inductor.runtime.triton_heuristics"
CODECACHE = "torch._inductor.codecache"
TRITON_TUNER = "triton.runtime.autotuner"
TRITON_ERRORS = "triton.runtime.errors"
TRITON_COMPILER_ERRORS = "triton.compiler.errors"


def require(*modules: str) -> None:
    """Unavailable if one of these modules is not there to be imported. Imports no more than their packages."""
    for name in modules:
        try:
            found = importlib.util.find_spec(name)
        except ImportError:
            found = None
        if found is None:
            raise Unavailable(f"this torch has no {name}")


def selector_cache() -> type:
    """The class that tunes the choices of an operator: called, it looks up, compiles, times and picks."""
    names = ("__call__", "do_autotuning", "benchmark", "benchmark_choice", "prescreen_choices", "log_results")
    return class_with(SELECT, "AlgorithmSelectorCache", *names)


def select_algorithm() -> types.ModuleType:
    """The module that waits for compiles of choices with `as_completed`, and tells which of them failed."""
    member(SELECT, "as_completed")
    return member(SELECT, "_log_autotune_exceptions")


def extern_caller() -> type:
    """The class of choices that are calls of a library; `output_node()` makes the one that was taken."""
    return member(SELECT, "ExternKernelCaller", "output_node")


def generated_code() -> type:
    """The class whose `get_entry(key)` looks up the code of a template that was rendered before in this process."""
    return member(SELECT, "GeneratedCodeCache", "get_entry")


def persistent_cache() -> type:
    """The class whose `lookup(choices, op, inputs, benchmark)` answers from a file, or calls `benchmark`."""
    return member(CODECACHE, "PersistentCache", "lookup")


def tuner_process() -> type:
    """The class of a process that times choices; `get()` takes the answer."""
    return member(PROCESS, "TuningProcess", "get")


def tuner_pool() -> type:
    """The class whose `target(choice)` has a choice timed in one of its processes, in a thread a process."""
    return member(PROCESS, "TuningProcessPool", "target")


def pipelined() -> type:
    """The class whose `get_results(choices, key)` waits for times that were asked for while the graph was lowered."""
    return member(PROCESS, "AsyncAutotuner", "get_results")


def template_buffer() -> type:
    """The class of an operator whose choice is left open until what follows it has been fused to it."""
    return class_with(IR, "MultiTemplateBuffer", "finalize_as_triton_caller", "finalize_as_triton_callers")


def scheduler() -> type:
    """The class that times fused kernels and settles what is still open in `finalize_multi_template_buffers`."""
    return class_with(SCHEDULER, "Scheduler", "benchmark_codegened_module", "finalize_multi_template_buffers")


def fused_choice(depth: int = 10) -> Any:
    """The choice whose fusion is being timed, from the scheduler's frame a few frames up; None if it is no choice's."""
    for frame in frames(depth):
        name = frame.f_code.co_name
        if name in ("benchmark_when_ready", "speedup_by_fusion") and frame.f_globals.get("__name__") == SCHEDULER:
            return frame.f_locals.get("choice")
    return None


def cache_is_on() -> bool:
    """Whether tuning may be answered from the file of earlier times."""
    return bool(sys.modules["torch._inductor.config"].autotune_local_cache)


def compilers(choices: int, in_processes: bool) -> int | None:
    """Threads, or with triton's pool ready processes, that compile so many choices."""
    ready = getattr(sys.modules["torch._inductor.async_compile"].AsyncCompile, "_ready_future", None)
    if in_processes and ready is not None and ready.done():
        return sys.modules["torch._inductor.config"].compile_threads
    return min(sys.modules[SELECT].get_num_workers(), choices)


def caching_autotuner() -> type:
    """The class that tunes the configurations of one Inductor kernel, at compile time or at its first run."""
    names = ("benchmark_all_configs", "_coordinate_descent_tuning", "bench", "_precompile_config", "precompile")
    return class_with(HEURISTICS, "CachingAutotuner", *names)


def compile_results() -> list[type]:
    """The classes of a compiled configuration; `make_launcher()` loads it, and is where most that are too big fail."""
    names = ("StaticTritonCompileResult", "TritonCompileResult")
    return [member(HEURISTICS, name, "make_launcher") for name in names]


def triton_autotuner() -> type:
    """The class behind `triton.autotune`."""
    return class_with(TRITON_TUNER, "Autotuner", "prune_configs", "_bench", "check_disk_cache")


def launch_errors() -> list[type]:
    """The exceptions of a launch for which triton's tuner passes over a configuration without a word."""
    owner = member(TRITON_ERRORS, "OutOfResources")
    return [member(TRITON_ERRORS, name, "__init__") for name in ("OutOfResources", "PTXASError") if name in vars(owner)]


def compile_error() -> type:
    """The base of triton's errors of compilation: a failed `static_assert` is passed over as well."""
    return member(TRITON_COMPILER_ERRORS, "CompilationError", "__init__")
