"""Private names of torch's and triton's tuners.

Read in the sources of torch 2.11.0, 2.13.0, 2.15.0 and triton 3.6.0, 3.9.0.

torch imports most of these modules when it compiles for Inductor, not before: a source waits for them (see
`Source.late_patches`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from ..hooks.torch_names import HookPoint, TorchName, declare_parameters, fields, find_frame, hook_points

SELECT = "torch._inductor.select_algorithm"
PROCESS = "torch._inductor.autotune_process"
IR = "torch._inductor.ir"
SCHEDULER = "torch._inductor.scheduler"
HEURISTICS = "torch._inductor.runtime.triton_heuristics"
CODECACHE = "torch._inductor.codecache"
TRITON_TUNER = "triton.runtime.autotuner"
TRITON_ERRORS = "triton.runtime.errors"
TRITON_COMPILER_ERRORS = "triton.compiler.errors"

#: The class that tunes the choices of an operator: called, it looks up, compiles, times and picks.
SELECTED, TUNED, BENCHMARKED, CHOICE_TIMED, PRESCREENED, RESULTS_LOGGED = hook_points(
    SELECT,
    "AlgorithmSelectorCache",
    *("__call__", "do_autotuning", "benchmark", "benchmark_choice", "prescreen_choices", "log_results"),
)
#: torch waits for compiles of choices with the first, and reports with the second which of them failed.
COMPILES_AWAITED = HookPoint(SELECT, "as_completed")
COMPILES_FAILED = HookPoint(SELECT, "_log_autotune_exceptions")
#: A choice that is a call of a library creates the node of the one that was taken.
EXTERN_TAKEN = HookPoint(SELECT, "ExternKernelCaller.output_node")
#: Looks up the code of a template that was rendered before in this process.
TEMPLATE_LOOKED_UP = HookPoint(SELECT, "GeneratedCodeCache.get_entry")
#: Answers from a file, or calls `benchmark`.
TIMES_LOOKED_UP = HookPoint(CODECACHE, "PersistentCache.lookup")
#: A process that times choices: asked by a thread of the pool; `get` takes the answer.
PROCESS_ASKED = HookPoint(PROCESS, "TuningProcessPool.target")
PROCESS_ANSWERED = HookPoint(PROCESS, "TuningProcess.get")
#: Waits for times that were asked for while the graph was lowered.
PIPELINE_RESULTS = HookPoint(PROCESS, "AsyncAutotuner.get_results")
#: An operator whose choice stays open until what follows it has been fused to it.
CHOICES_FINALIZED = hook_points(IR, "MultiTemplateBuffer", "finalize_as_triton_caller", "finalize_as_triton_callers")
#: The scheduler times fused kernels, and settles what is still open.
FUSION_TIMED, CHOICES_SETTLED = hook_points(
    SCHEDULER, "Scheduler", "benchmark_codegened_module", "finalize_multi_template_buffers"
)

#: Time configurations of one Inductor kernel, in three stages.
ALL_BENCHMARKED, DESCENT_ENDED = hook_points(
    HEURISTICS, "CachingAutotuner", "benchmark_all_configs", "_coordinate_descent_tuning"
)
COMBO_TUNED = HookPoint(HEURISTICS, "CachingAutotuner._combo_sequential_autotune", required=False)
CONFIG_TIMED, CONFIG_COMPILED, KERNEL_PRECOMPILED = hook_points(
    HEURISTICS, "CachingAutotuner", "bench", "_precompile_config", "precompile"
)
#: Load a compiled configuration; most that are too big fail there.
LAUNCHER_MADE = (
    HookPoint(HEURISTICS, "StaticTritonCompileResult.make_launcher"),
    HookPoint(HEURISTICS, "TritonCompileResult.make_launcher"),
)

#: `triton.autotune`.
CONFIGS_PRUNED, CONFIG_BENCHED, DISK_CACHE_CHECKED = hook_points(
    TRITON_TUNER, "Autotuner", "prune_configs", "_bench", "check_disk_cache"
)
#: Compiles a kernel for arguments that are new to it, or loads it from triton's cache. Inductor does not call it.
KERNEL_COMPILED = HookPoint("triton.runtime.jit", "JITFunction._do_compile", required=False)
#: The exceptions of a launch for which triton's tuner silently skips a configuration.
LAUNCH_ERRORS = (
    HookPoint(TRITON_ERRORS, "OutOfResources.__init__"),
    HookPoint(TRITON_ERRORS, "PTXASError.__init__", required=False),
)
#: The base of triton's errors of compilation: a failed `static_assert` is skipped as well.
COMPILE_ERROR = HookPoint(TRITON_COMPILER_ERRORS, "CompilationError.__init__")

TEMPLATE_CALLER = TorchName(SELECT, "TritonTemplateCaller")
WORKERS = TorchName(SELECT, "get_num_workers")
READY_POOL = TorchName("torch._inductor.async_compile", "AsyncCompile._ready_future")
_READ = (
    *fields(IR, "ChoiceCaller", "name", "layout", "input_nodes", "description", "failed"),
    *fields(PROCESS, "TuningProcess", "process", "device"),
    *fields(HEURISTICS, "CachingAutotuner", "configs", "compile_results", "launchers", "inductor_meta", "fn"),
    *fields(HEURISTICS, "CachingAutotuner", "device_props", "compile_id", "coordesc_tuner", "autotune_cache_info"),
    *fields("triton.runtime.jit", "JITFunction", "fn"),
    *fields(TRITON_TUNER, "Autotuner", "nargs", "configs_timings", "base_fn"),
)

#: What the hooks read.
declare_parameters(
    {
        SELECTED: "self name _ _ layout",
        TUNED: "self name _ layout _ inputs_key choices",
        BENCHMARKED: "self choices _ layout",
        CHOICE_TIMED: "cls choice",
        COMPILES_AWAITED: "fs",
        COMPILES_FAILED: "exceptions",
        EXTERN_TAKEN: "self",
        TEMPLATE_LOOKED_UP: "self cache_key",
        TIMES_LOOKED_UP: "self _ op inputs benchmark",
        PROCESS_ASKED: "self choice",
        PROCESS_ANSWERED: "self",
        PIPELINE_RESULTS: "cls choices inputs_key",
        FUSION_TIMED: "self module device",
        CONFIG_COMPILED: "self cfg",
        KERNEL_PRECOMPILED: "self",
        KERNEL_COMPILED: "self",
        DISK_CACHE_CHECKED: "self tuning_key configs",
    }
)


def fused_choice() -> Any:
    """The choice whose fusion is timed, from the scheduler's frame a few frames up; None if it is no choice's."""
    frame = find_frame(10, SCHEDULER, "benchmark_when_ready", "speedup_by_fusion")
    return None if frame is None else frame.f_locals.get("choice")


def is_cache_on() -> bool:
    """True if tuning may be answered from the file of earlier times."""
    return bool(sys.modules["torch._inductor.config"].autotune_local_cache)


def count_compilers(choices: int, has_templates: bool) -> int | None:
    """Threads, or with triton's pool ready processes, that compile so many choices."""
    ready = getattr(sys.modules[READY_POOL.module].AsyncCompile, READY_POOL.name, None)
    if has_templates and ready is not None and ready.done():
        threads: int | None = sys.modules["torch._inductor.config"].compile_threads
        return threads
    return int(min(WORKERS.get_loaded()(), choices))


def inner_choice(choice: Any) -> Any:
    """The choice itself: torch puts the one for packed weights into a wrapper."""
    return getattr(choice, "_wrapped", choice)


def is_from_worker(kwargs: Mapping[str, Any]) -> bool:
    """True for a precompile of a kernel that comes from a process of torch's pool; one from a cache has no key."""
    return kwargs.get("reload_kernel") is not None and kwargs.get("static_triton_bundle_key") is not None


def why_infinite(kernel: Any, launcher: Any) -> str:
    """Why a configuration was timed as infinite: torch 2.13 keeps the reason; 2.11 does so if it spills registers."""
    kept = getattr(kernel, "benchmark_failure_reasons", {}).get(launcher)
    spills = getattr(launcher, "n_spills", None)
    if kept is not None:
        why = str(getattr(kept, "value", kept)).replace("_", " ")
    else:
        why = "register spilling" if spills else "invalid config"
    return f"timed as infinite: {why}" + (f", {spills} spilled" if spills else "")


def remembered_time(kernel: Any, parameters: Mapping[str, Any]) -> float | None:
    """The time of a configuration that was timed in an earlier stage, from the tuner's own memory."""
    known = getattr(kernel.coordesc_tuner, "cached_benchmark_results", {})
    wanted = {name: parameters[name] for name in parameters if name not in ("num_ctas", "maxnreg")}
    return next((time_ms for key, time_ms in known.items() if dict(key) == wanted), None)
