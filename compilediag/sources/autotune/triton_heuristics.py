"""Tuning of Inductor's triton kernels: the configurations of pointwise and reduction kernels, and of users' own kernels
in what was compiled.

`CachingAutotuner` times them while Inductor compiles or at the kernel's first run, and keeps the fastest. Only what
runs while it tunes is watched; `run`, which launches the kernel, is not. Of configurations that failed to compile in
a process of torch's pool no more than their number is known.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...decode.records.autotune_choices import TimedChoice, TuningRecord, make_choices, make_run_id
from .. import _compat
from .._compat import caches
from .._compat import tuning as places
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.shield import told
from .kernel_tuning import input_texts, parameters_of, timed
from .tuner import Tuner

TUNER = "triton_heuristics"
#: Methods that time configurations -> the stage of their rows.
STAGES = {
    "benchmark_all_configs": "benchmark",
    "_coordinate_descent_tuning": "coordinate_descent",
    "_combo_sequential_autotune": "combo",
}
#: Small caches that hold tuned configurations -> tier.
CACHES = {"LocalAutotuneCache": "local", "RemoteAutotuneCache": "remote", "RemoteBundledAutotuneCache": "remote"}
IN_A_WORKER = "did not compile in a process of torch's pool, which does not say why"


@dataclass(slots=True)
class Kernel:
    """What is remembered of a kernel for the rows of its later stages."""

    run_id: str
    began_ns: int = 0
    precompile_s: float | None = None
    told: bool = False


@dataclass(slots=True)
class Stage:
    """A stage that runs: each configuration with its time in ms, or why it has none."""

    began_ns: int = field(default_factory=time.time_ns)
    timed: list[tuple[Any, float | None, str | None]] = field(default_factory=list)


class Here(threading.local):
    def __init__(self) -> None:
        self.stages: list[Stage] = []
        #: Kernels whose configurations are compiled and loaded, the innermost last.
        self.kernels: list[Any] = []
        #: Tier of the look-up that found a tuned configuration last.
        self.hit: str | None = None


class TritonHeuristics(Tuner):
    name = "triton_heuristics"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._here = Here()
        self._kernels: weakref.WeakKeyDictionary[Any, Kernel] = weakref.WeakKeyDictionary()

    @classmethod
    def probe(cls) -> None:
        _compat.require_triton()
        places.require(places.HEURISTICS, caches.REMOTE_CACHE)

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        return {places.HEURISTICS: self._tuner_patches, caches.REMOTE_CACHE: self._cache_patches}

    def _tuner_patches(self) -> list[Patch]:
        owner = places.caching_autotuner()
        return [
            *(self._stage_patch(owner, name) for name in STAGES if name in vars(owner)),
            Patch(owner, "bench", self._timed, self.guarded),
            Patch(owner, "_precompile_config", self._compiled, self.guarded),
            Patch(owner, "precompile", self._precompiled, self.guarded, self._precompiling),
            *(Patch(cls, "make_launcher", self._loaded, self.guarded) for cls in places.compile_results()),
        ]

    def _stage_patch(self, owner: type, name: str) -> Patch:
        def ended(args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
            self._ended(STAGES[name], args, kwargs, result, error)

        return Patch(owner, name, ended, self.guarded, lambda args, kwargs: self._here.stages.append(Stage()))

    def _cache_patches(self) -> list[Patch]:
        owner = caches.remote_cache()
        return [
            Patch(owner, "get", self._looked_up, self.guarded),
            Patch(owner, "put", self._saved, self.guarded),
        ]

    # Compiling the configurations.

    def _precompiling(self, args: Args, kwargs: Kwargs) -> None:
        kernel, info = args[0], args[0].autotune_cache_info or {}
        self._here.kernels.append(kernel)
        known = self._known(kernel)
        known.began_ns = 0 if kernel.compile_results else time.time_ns()
        if not _by_worker(kwargs) or known.told:
            return
        if info.get("autotune_cache_state") in ("hit", "miss"):
            # The worker looked it up; which tier answered it does not say.
            tier = None if _is_remote(kernel) else "local"
            self.look_up(_compile_id(kernel), tier, info["autotune_cache_state"], None)
        lost = info.get("num_configs", 0) - len(kernel.compile_results)
        if lost > 0:
            failed = [TimedChoice(None, "triton", fail_reason=IN_A_WORKER, stage="precompile", is_winner=False)] * lost
            self._emit(kernel, (), failed)

    def _precompiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        kernel = args[0]
        if self._here.kernels:
            self._here.kernels.pop()
        known, info = self._known(kernel), kernel.autotune_cache_info or {}
        if known.began_ns:
            known.precompile_s = (time.time_ns() - known.began_ns) / 1e9
        if not known.told and info.get("autotune_cache_state") == "hit" and kernel.launchers:
            parameters = parameters_of(kernel.launchers[0].config)
            tier = "local" if _by_worker(kwargs) else self._here.hit or "local"
            self._emit(kernel, (), [timed(parameters, None, None, stage="cached", is_winner=True)], tier)
        known.told = True

    def _compiled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None:
            kernel = args[0]
            self._failed(kernel, len(kernel.configs or ()), _compat.argument(args, kwargs, 1, "cfg"), error)

    def _loaded(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None:
            kernel = self._here.kernels[-1] if self._here.kernels else None
            self._failed(kernel, len(getattr(kernel, "compile_results", ())), args[0].config, error)

    def _failed(self, kernel: Any, configs: int, config: Any, error: BaseException) -> None:
        """A configuration that can't be had. A template's only one is not told here: it is a choice of an operator."""
        if self._here.stages:
            self._here.stages[-1].timed.append((config, None, told(error)))
        elif configs > 1:
            failed = timed(parameters_of(config), None, told(error), stage="precompile", is_winner=False)
            self._emit(kernel, (), [failed])

    # Timing them.

    def _timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if not self._here.stages:
            return
        kernel, launcher = args[0], args[1]
        reason = told(error) if error is not None else _why_infinite(kernel, launcher) if _is_inf(result) else None
        self._here.stages[-1].timed.append((launcher.config, result, reason))

    def _ended(self, stage: str, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if not self._here.stages:
            return
        done = self._here.stages.pop()
        # All configurations are timed for the fastest to be taken; the other stages give the launcher that they took.
        winner = getattr(result, "config", None)
        if stage == "benchmark" and result:
            winner = min(result, key=result.get).config
        kernel, arguments = args[0], [*args[1:], *kwargs.values()]
        common = {"stage": stage, "time_ns": done.began_ns, "benchmark_s": (time.time_ns() - done.began_ns) / 1e9}
        choices = [
            timed(parameters_of(config), time_ms, reason, is_winner=config is winner, **common)
            for config, time_ms, reason in done.timed
        ]
        if winner is not None and not any(choice.is_winner for choice in choices):
            start = parameters_of(winner)
            common.update(is_winner=True, stage="cached")
            choices.append(timed(start, _remembered(kernel, start), None, **common))
        self._emit(kernel, arguments, choices)

    # The cache of tuned configurations. What a server is asked is told by the source of remote caches.

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tier = CACHES.get(type(args[0]).__name__)
        if tier is not None and result is not None:
            self._here.hit = tier
        if tier == "local":
            self._looked(args, kwargs, "miss" if result is None else "hit", error)

    def _saved(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if CACHES.get(type(args[0]).__name__) == "local":
            self._looked(args, kwargs, "saved", error, action="store")

    def _looked(self, args: Args, kwargs: Kwargs, outcome: str, error: Raised, action: str = "look_up") -> None:
        outcome = outcome if error is None else "failed"
        file = os.path.basename(_compat.argument(args, kwargs, 1, "key"))
        self.look_up(_compat.current_compile_id(), "local", outcome, file, action=action, error=error)

    # Rows.

    def _known(self, kernel: Any) -> Kernel:
        return self._kernels.setdefault(kernel, Kernel(make_run_id(TUNER)))

    def _emit(self, kernel: Any, arguments: Any, choices: list[TimedChoice], from_cache: str | None = None) -> None:
        known, info = self._known(kernel), kernel.autotune_cache_info or {}
        compiled_us, compile_id = info.get("compile_time_us"), _compile_id(kernel)
        tuning = TuningRecord(
            tuner=TUNER,
            op=kernel.inductor_meta.get("kernel_name") or kernel.fn.__name__,
            time_ns=time.time_ns(),
            inputs=input_texts(arguments) or None,
            device=f"{kernel.device_props.type}:{kernel.device_props.index}",
            compile_id=compile_id,
            frame=self.frame(compile_id),
            precompile_s=known.precompile_s if compiled_us is None else compiled_us / 1e6,
            from_cache=from_cache,
            run_id=known.run_id,
            timed=choices,
        )
        self.emit(make_choices, tuning)


def _compile_id(kernel: Any) -> str | None:
    """Of a kernel the compile that made it, also when it is tuned at its first run."""
    known = getattr(kernel, "compile_id", None)
    return _compat.current_compile_id() if known is None else str(known)


def _by_worker(kwargs: Kwargs) -> bool:
    """True for a kernel that comes from a process of torch's pool; one from a cache has no key of its own."""
    return kwargs.get("reload_kernel") is not None and kwargs.get("static_triton_bundle_key") is not None


def _is_remote(kernel: Any) -> bool:
    meta = kernel.inductor_meta
    return bool(meta.get("autotune_remote_cache") or meta.get("bundled_autotune_remote_cache"))


def _is_inf(time_ms: Any) -> bool:
    return time_ms == float("inf")


def _why_infinite(kernel: Any, launcher: Any) -> str:
    """torch 2.13 keeps the reason; 2.11 times a configuration as infinite if it spills registers."""
    kept = getattr(kernel, "benchmark_failure_reasons", {}).get(launcher)
    spills = getattr(launcher, "n_spills", None)
    if kept is not None:
        why = str(getattr(kept, "value", kept)).replace("_", " ")
    else:
        why = "register spilling" if spills else "invalid config"
    return f"timed as infinite: {why}" + (f", {spills} spilled" if spills else "")


def _remembered(kernel: Any, parameters: dict[str, Any]) -> float | None:
    """The time of a configuration that was timed in an earlier stage, by the tuner's own memory."""
    known = getattr(kernel.coordesc_tuner, "cached_benchmark_results", {})
    wanted = {name: parameters[name] for name in parameters if name not in ("num_ctas", "maxnreg")}
    return next((time_ms for key, time_ms in known.items() if dict(key) == wanted), None)
