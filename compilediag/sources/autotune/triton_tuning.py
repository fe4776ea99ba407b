"""Tuning of Inductor's triton kernels: the configurations of pointwise and reduction kernels, and of users' own kernels
in what was compiled.

`CachingAutotuner` times them while Inductor compiles or at the kernel's first run, and keeps the fastest. Only what
runs while it tunes is watched; `run`, which launches the kernel, is not. Of configurations that failed to compile in
a process of torch's pool no more than their number is known. What is read of triton kernels is read while the objects
are alive: configurations, arguments and times.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...decode.records.autotune_choices import TimedChoice, extract_reason, format_input, make_choices, make_run_id
from ...events import AutotuneChoice, KernelCompile
from ...formatting import format_op
from ...system import clock
from ...system.own_errors import describe_error
from ..caches.torch_api import REMOTE_CACHE, REMOTE_GET, REMOTE_PUT
from ..compile_context import EventSink, OwnerColumns, PerThread
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import CacheSource, Source, hook, hook_before
from ..hooks.torch_names import call_argument, call_arguments, require_modules, require_triton
from . import torch_api

#: Options of a configuration beside its own names.
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")


def read_parameters(config: Any) -> dict[str, Any]:
    """Names and values of a `triton.Config`, those of its options that are set included."""
    options = {name: getattr(config, name, None) for name in OPTIONS}
    options = {name: value for name, value in options.items() if value is not None}
    return {**(getattr(config, "kwargs", None) or {}), **options}


def describe_inputs(arguments: Iterable[Any]) -> list[str]:
    """The tensors among the arguments of a kernel."""
    tensors = [a for a in arguments if hasattr(a, "stride") and hasattr(a, "dtype") and hasattr(a, "shape")]
    return [format_input(str(t.dtype), t.shape, t.stride(), str(t.device)) for t in tensors]


def make_choice(parameters: Mapping[str, Any], time_ms: float | None, reason: str | None, **others: Any) -> TimedChoice:
    """A configuration as a choice, named by its parameters."""
    name = " ".join(f"{name}={value}" for name, value in parameters.items())
    why = None if reason is None else extract_reason(reason)
    return TimedChoice(name, "triton", parameters={**parameters}, time_ms=time_ms, fail_reason=why, **others)


#: Small caches that hold tuned configurations -> tier.
CACHES = {"LocalAutotuneCache": "local", "RemoteAutotuneCache": "remote", "RemoteBundledAutotuneCache": "remote"}
IN_A_WORKER = "did not compile in a process of torch's pool, which does not say why"


@dataclass(slots=True)
class KnownKernel:
    """What is remembered of a kernel for the rows of its later stages. `is_reported`: its first rows are out."""

    run_id: str
    began_ns: int = 0
    precompile_s: float | None = None
    compile_key: str | None = None
    is_reported: bool = False


@dataclass(slots=True)
class TuningStage:
    """A stage that runs: each configuration with its time in ms, or why it has none."""

    began_ns: int = field(default_factory=clock.now_ns)
    timed: list[tuple[Any, float | None, str | None]] = field(default_factory=list)


class KernelThread:
    """What one thread tunes."""

    def __init__(self) -> None:
        self.stages: list[TuningStage] = []
        #: Kernels whose configurations are compiled and loaded, the innermost last.
        self.kernels: list[Any] = []
        #: Tier of the look-up that found a tuned configuration last.
        self.hit: str | None = None


class TritonHeuristics(CacheSource):
    name = "triton_heuristics"
    checks = (require_triton, functools.partial(require_modules, torch_api.HEURISTICS, REMOTE_CACHE))
    _thread = PerThread(KernelThread)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._kernels: weakref.WeakKeyDictionary[Any, KnownKernel] = weakref.WeakKeyDictionary()

    # Compiling the configurations.

    @hook_before(torch_api.KERNEL_PRECOMPILED)
    def _before_precompile(self, args: Args, kwargs: Kwargs) -> None:
        kernel, info = args[0], args[0].autotune_cache_info or {}
        self._thread.kernels.append(kernel)
        known, owner = self._remember_kernel(kernel), self._find_owner(kernel)
        known.began_ns = 0 if kernel.compile_results else clock.now_ns()
        if not torch_api.is_from_worker(kwargs) or known.is_reported:
            return
        if info.get("autotune_cache_state") in ("hit", "miss"):
            # The worker looked it up, and does not report which tier answered.
            servers = ("autotune_remote_cache", "bundled_autotune_remote_cache")
            tier = None if any(map(kernel.inductor_meta.get, servers)) else "local"
            self.emit_lookup("autotune", tier, "look_up", info["autotune_cache_state"], owner=owner)
        lost = info.get("num_configs", 0) - len(kernel.compile_results)
        if lost > 0:
            failed = [TimedChoice(None, "triton", fail_reason=IN_A_WORKER, stage="precompile", is_winner=False)] * lost
            self._emit(kernel, (), failed)

    @hook(torch_api.KERNEL_PRECOMPILED, late=True)
    def _on_precompiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        kernel = args[0]
        if self._thread.kernels:
            self._thread.kernels.pop()
        known, info = self._remember_kernel(kernel), kernel.autotune_cache_info or {}
        if known.began_ns:
            known.precompile_s = (clock.now_ns() - known.began_ns) / 1e9
        if not known.is_reported and info.get("autotune_cache_state") == "hit" and kernel.launchers:
            parameters = read_parameters(kernel.launchers[0].config)
            tier = "local" if torch_api.is_from_worker(kwargs) else self._thread.hit or "local"
            self._emit(kernel, (), [make_choice(parameters, None, None, stage="cached", is_winner=True)], tier)
        known.is_reported = True

    @hook(torch_api.CONFIG_COMPILED, late=True)
    def _on_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None:
            kernel = args[0]
            self._report_failure(kernel, len(kernel.configs or ()), call_argument(args, kwargs, 1, "cfg"), error)

    @hook(*torch_api.LAUNCHER_MADE, late=True)
    def _launcher_made(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None:
            kernel = self._thread.kernels[-1] if self._thread.kernels else None
            self._report_failure(kernel, len(getattr(kernel, "compile_results", ())), args[0].config, error)

    def _report_failure(self, kernel: Any, configs: int, config: Any, error: BaseException) -> None:
        """A configuration that failed. The only one of a template is left out: it is a choice of an operator."""
        if self._thread.stages:
            self._thread.stages[-1].timed.append((config, None, describe_error(error)))
        elif configs > 1:
            failed = make_choice(
                read_parameters(config), None, describe_error(error), stage="precompile", is_winner=False
            )
            self._emit(kernel, (), [failed])

    # Timing them.

    @hook_before(torch_api.ALL_BENCHMARKED, torch_api.DESCENT_ENDED, torch_api.COMBO_TUNED)
    def _before_stage(self, args: Args, kwargs: Kwargs) -> None:
        self._thread.stages.append(TuningStage())

    @hook(torch_api.ALL_BENCHMARKED, late=True)
    def _all_benchmarked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        self._stage_ended("benchmark", args, kwargs, result)

    @hook(torch_api.DESCENT_ENDED, late=True)
    def _descent_ended(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        self._stage_ended("coordinate_descent", args, kwargs, result)

    @hook(torch_api.COMBO_TUNED, late=True)
    def _combo_tuned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        self._stage_ended("combo", args, kwargs, result)

    @hook(torch_api.CONFIG_TIMED, late=True)
    def _on_timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if not self._thread.stages:
            return
        kernel, launcher = args[0], args[1]
        reason = None
        if error is not None:
            reason = describe_error(error)
        elif result == float("inf"):
            reason = torch_api.why_infinite(kernel, launcher)
        self._thread.stages[-1].timed.append((launcher.config, result, reason))

    def _stage_ended(self, stage: str, args: Args, kwargs: Kwargs, result: Any) -> None:
        if not self._thread.stages:
            return
        done = self._thread.stages.pop()
        # The first stage returns all times, of which the fastest is taken; the others return the launcher they took.
        winner = getattr(result, "config", None)
        if stage == "benchmark" and result:
            winner = min(result, key=result.get).config
        kernel, arguments = args[0], [*args[1:], *kwargs.values()]
        common = {"stage": stage, "time_ns": done.began_ns, "benchmark_s": (clock.now_ns() - done.began_ns) / 1e9}
        choices = [
            make_choice(read_parameters(config), time_ms, reason, is_winner=config is winner, **common)
            for config, time_ms, reason in done.timed
        ]
        if winner is not None and not any(choice.is_winner for choice in choices):
            start = read_parameters(winner)
            common.update(is_winner=True, stage="cached")
            choices.append(make_choice(start, torch_api.remembered_time(kernel, start), None, **common))
        self._emit(kernel, arguments, choices)

    # The cache of tuned configurations. The source of remote caches has the requests to a server.

    @hook(REMOTE_GET, late=True)
    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tier = CACHES.get(type(args[0]).__name__)
        if tier is not None and result is not None:
            self._thread.hit = tier
        if tier == "local":
            self._emit_cache_row(args, kwargs, "miss" if result is None else "hit", error)

    @hook(REMOTE_PUT, late=True)
    def _on_saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if CACHES.get(type(args[0]).__name__) == "local":
            self._emit_cache_row(args, kwargs, "saved", error, action="store")

    def _emit_cache_row(self, args: Args, kwargs: Kwargs, outcome: str, error: Raised, action: str = "look_up") -> None:
        file = os.path.basename(call_argument(args, kwargs, 1, "key"))
        self.emit_lookup("autotune", "local", action, outcome if error is None else "failed", error, key=file)

    # Rows.

    def _find_owner(self, kernel: Any) -> OwnerColumns:
        """The compile that made a kernel, also when it is tuned at its first run."""
        compile_id = getattr(kernel, "compile_id", None)
        if compile_id is None:
            return self.context.current_columns()
        known, keys = self._remember_kernel(kernel), self.context.keys
        if known.compile_key is None:
            known.compile_key = keys.find(compile_id) or keys.match(str(compile_id))
        columns = self.context.function_columns(known.compile_key)
        return {"compile_id": str(compile_id), "compile_key": known.compile_key, **columns}

    def _remember_kernel(self, kernel: Any) -> KnownKernel:
        return self._kernels.setdefault(kernel, KnownKernel(make_run_id(self.name)))

    def _emit(self, kernel: Any, arguments: Any, choices: list[TimedChoice], from_cache: str | None = None) -> None:
        known, info = self._remember_kernel(kernel), kernel.autotune_cache_info or {}
        compiled_us = info.get("compile_time_us")
        run = AutotuneChoice(
            tuner=self.name,
            op=format_op(kernel.inductor_meta.get("kernel_name")) or kernel.fn.__name__,
            time_ns=clock.now_ns(),
            inputs=describe_inputs(arguments) or None,
            device=f"{kernel.device_props.type}:{kernel.device_props.index}",
            precompile_s=known.precompile_s if compiled_us is None else compiled_us / 1e6,
            from_cache=from_cache,
            run_id=known.run_id,
            **self._find_owner(kernel),
        )
        self.emit(make_choices, run, choices)


@dataclass(slots=True)
class TunedLaunch:
    """The launch that tunes: how many are still to be timed, and each configuration with its time in ms and reason."""

    tuner: Any
    left: int
    inputs: list[str]
    device: str | None
    began_ns: int = field(default_factory=clock.now_ns)
    timed: list[tuple[Any, float, str | None]] = field(default_factory=list)


class LaunchThread:
    """What one thread tunes."""

    def __init__(self) -> None:
        self.launch: TunedLaunch | None = None
        #: The triton error that was created last, in one line.
        self.error: str | None = None


class TritonAutotune(CacheSource):
    """Tuning of users' own kernels by `triton.autotune`, wherever they are launched.

    `Autotuner.run` is on the path of each launch, so it is not watched: `prune_configs` begins a tuning and returns
    what will be timed, `_bench` times one configuration, and the tuning is over with the last one. A launch whose
    configuration is known calls none of them. triton does not report why a configuration failed: its errors are seen
    when created. (Inductor tunes the kernels in what it compiles by itself: see `TritonHeuristics`.)
    """

    name = "triton_autotune"
    checks = (require_triton,)
    _thread = PerThread(LaunchThread)

    @hook(torch_api.CONFIGS_PRUNED, late=True)
    def _on_pruned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tuner, self._thread.launch = args[0], None
        if error is None:
            values = [*(tuner.nargs or {}).values(), *(args[1] if len(args) > 1 else {}).values()]
            device = next((str(a.device) for a in values if hasattr(a, "stride") and hasattr(a, "device")), None)
            self._thread.launch = TunedLaunch(tuner, len(result), describe_inputs(values), device)

    @hook_before(torch_api.CONFIG_BENCHED)
    def _before_timing(self, args: Args, kwargs: Kwargs) -> None:
        self._thread.error = None

    @hook(*torch_api.LAUNCH_ERRORS, torch_api.COMPILE_ERROR, late=True)
    def _error_created(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._thread.error = describe_error(args[0])

    @hook(torch_api.CONFIG_BENCHED, late=True)
    def _on_timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        launch = self._thread.launch
        if launch is None or launch.tuner is not args[0]:
            return
        time_ms = float("inf") if error is not None else _median(result)
        reason = describe_error(error) if error is not None else self._thread.error if time_ms == float("inf") else None
        launch.timed.append((kwargs.get("config"), time_ms, reason))
        launch.left -= 1
        if launch.left == 0 or error is not None:
            self._thread.launch = None
            self._emit(launch, None, winner=error is None)

    @hook(torch_api.DISK_CACHE_CHECKED, late=True)
    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tuner, key, configs = call_arguments(args, kwargs, self=0, tuning_key=1, configs=2)
        if result and self._thread.launch is not None:
            launch, self._thread.launch = self._thread.launch, None
            launch.timed = [(config, _median(times), None) for config, times in tuner.configs_timings.items()]
            self._emit(launch, "local", winner=True)
        is_bypass = not key or any(config.pre_hook for config in configs)
        outcome = "bypass" if is_bypass else "hit" if result else "miss"
        why = "no key, or a configuration with a hook" if is_bypass else None
        name = f"{tuner.base_fn.__name__}: {key}"
        self.emit_lookup("autotune", "local", "look_up", outcome, key=name, reason=why)

    def _emit(self, launch: TunedLaunch, from_cache: str | None, winner: bool) -> None:
        seconds = None if from_cache else (clock.now_ns() - launch.began_ns) / 1e9
        fastest = min(launch.timed, key=lambda one: one[1])[0] if winner else None
        choices = [
            make_choice(read_parameters(config), time_ms, reason, is_winner=config is fastest, benchmark_s=seconds)
            for config, time_ms, reason in launch.timed
        ]
        run = AutotuneChoice(
            tuner=self.name,
            op=launch.tuner.base_fn.__name__,
            time_ns=launch.began_ns,
            inputs=launch.inputs or None,
            device=launch.device,
            from_cache=from_cache,
            **self.context.current_columns(),
        )
        self.emit(make_choices, run, choices)


def _median(times: Any) -> float:
    """triton keeps the median and two other quantiles of each configuration; a user's own timer may give one number."""
    return float(times[0] if isinstance(times, (list, tuple)) else times)


class TritonJit(Source):
    """Kernels that triton compiles when the program launches them itself, outside of what Inductor generates.

    A launch whose arguments are known calls nothing of ours.
    """

    name = "triton_jit"
    checks = (require_triton,)

    @hook(torch_api.KERNEL_COMPILED, before=Source.note_time, late=True)
    def _on_compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, time_ns: int | None) -> None:
        if time_ns is None or (result is None and error is None):
            return  # A hook of the program has kept triton from compiling it.
        row = KernelCompile(
            time_ns=time_ns,
            duration_s=(clock.now_ns() - time_ns) / 1e9,
            name=getattr(args[0].fn, "__name__", None),
            language="triton",
            where="process",
            outcome="compiled" if error is None else "failed",
            fail_reason=None if error is None else describe_error(error),
            **self.context.current_attempt(),
        )
        self.emit_event(row)
