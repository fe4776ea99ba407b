"""Tuning of users' own kernels by `triton.autotune`, wherever they are launched.

`Autotuner.run` is on the path of each launch, so it is left alone: `prune_configs` begins a tuning and says what will
be timed, `_bench` times one configuration, and the tuning is over with the last one. A launch whose configuration is
known enters none of them. Why a configuration failed triton says to nobody: its errors are seen when they are made.
(Inductor tunes the kernels in what it compiles by itself: see `triton_heuristics`.)
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...decode.records.autotune_choices import TuningRecord, make_choices, make_run_id
from .. import _compat
from .._compat import tuning as places
from ..hooks.patching import Args, Kwargs, Patch, Raised
from ..hooks.shield import told
from .kernel_tuning import device_of, input_texts, parameters_of, timed
from .tuner import Tuner

TUNER = "triton_autotune"


@dataclass(slots=True)
class Launch:
    """The launch that tunes: what is still to be timed, and each configuration with its time, in ms, and reason."""

    tuner: Any
    left: int
    inputs: list[str]
    device: str | None
    began_ns: int = field(default_factory=time.time_ns)
    timed: list[tuple[Any, float, str | None]] = field(default_factory=list)


class Here(threading.local):
    def __init__(self) -> None:
        self.launch: Launch | None = None
        #: The error that was made last, in one line.
        self.error: str | None = None


class TritonAutotune(Tuner):
    name = "triton_autotune"

    def __init__(self, *args: Any):
        super().__init__(*args)
        self._here = Here()

    @classmethod
    def probe(cls) -> None:
        _compat.require_triton()

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        return {
            places.TRITON_TUNER: self._tuner_patches,
            places.TRITON_ERRORS: lambda: self._error_patches(places.launch_errors()),
            places.TRITON_COMPILER_ERRORS: lambda: self._error_patches([places.compile_error()]),
        }

    def _tuner_patches(self) -> list[Patch]:
        owner = places.triton_autotuner()
        return [
            Patch(owner, "prune_configs", self._pruned, self.guarded),
            Patch(owner, "_bench", self._timed, self.guarded, self._timing),
            Patch(owner, "check_disk_cache", self._looked_up, self.guarded),
        ]

    def _error_patches(self, classes: list[type]) -> list[Patch]:
        return [Patch(cls, "__init__", self._failed, self.guarded) for cls in classes]

    def _pruned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tuner, self._here.launch = args[0], None
        if error is None:
            values = [*(tuner.nargs or {}).values(), *(args[1] if len(args) > 1 else {}).values()]
            self._here.launch = Launch(tuner, len(result), input_texts(values), device_of(values))

    def _timing(self, args: Args, kwargs: Kwargs) -> None:
        self._here.error = None

    def _failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._here.error = told(args[0])

    def _timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        launch = self._here.launch
        if launch is None or launch.tuner is not args[0]:
            return
        time_ms = float("inf") if error is not None else _median(result)
        reason = told(error) if error is not None else self._here.error if time_ms == float("inf") else None
        launch.timed.append((kwargs.get("config"), time_ms, reason))
        launch.left -= 1
        if launch.left == 0 or error is not None:
            self._here.launch = None
            self._emit(launch, None, winner=error is None)

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tuner, key, configs = (
            _compat.argument(args, kwargs, *at) for at in ((0, "self"), (1, "tuning_key"), (2, "configs"))
        )
        if result and self._here.launch is not None:
            launch, self._here.launch = self._here.launch, None
            launch.timed = [(config, _median(times), None) for config, times in tuner.configs_timings.items()]
            self._emit(launch, "local", winner=True)
        can_not = not key or any(config.pre_hook for config in configs)
        outcome = "bypass" if can_not else "hit" if result else "miss"
        why = "no key, or a configuration with a hook" if can_not else None
        name = f"{tuner.base_fn.__name__}: {key}"
        self.look_up(_compat.current_compile_id(), "local", outcome, name, reason=why)

    def _emit(self, launch: Launch, from_cache: str | None, winner: bool) -> None:
        seconds = None if from_cache else (time.time_ns() - launch.began_ns) / 1e9
        fastest = min(launch.timed, key=lambda one: one[1])[0] if winner else None
        compile_id = _compat.current_compile_id()
        choices = [
            timed(parameters_of(config), time_ms, reason, is_winner=config is fastest, benchmark_s=seconds)
            for config, time_ms, reason in launch.timed
        ]
        tuning = TuningRecord(
            tuner=TUNER,
            op=launch.tuner.base_fn.__name__,
            time_ns=launch.began_ns,
            inputs=launch.inputs or None,
            device=launch.device,
            compile_id=compile_id,
            frame=self.frame(compile_id),
            from_cache=from_cache,
            run_id=make_run_id(TUNER),
            timed=choices,
        )
        self.emit(make_choices, tuning)


def _median(times: Any) -> float:
    """triton keeps the median and two other quantiles of each configuration; a user's own timer may give one number."""
    return float(times[0] if isinstance(times, (list, tuple)) else times)
