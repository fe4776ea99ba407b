"""Tuning of users' own kernels by `triton.autotune`, wherever they are launched.

`Autotuner.run` is on the path of each launch, so it is not watched: `prune_configs` begins a tuning and returns what
will be timed, `_bench` times one configuration, and the tuning is over with the last one. A launch whose configuration
is known calls none of them. triton does not report why a configuration failed: its errors are seen when created.
(Inductor tunes the kernels in what it compiles by itself: see `triton_heuristics`.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ... import clock
from ...decode.records.autotune_choices import TuningRecord, make_choices, make_run_id
from ..hooks.own_errors import describe_error
from ..hooks.patches import Args, Kwargs, Patch, Raised
from ..hooks.sink import EventSink
from ..hooks.thread_state import PerThread
from ..hooks.torch_names import HookPoint, call_argument, require_triton
from . import torch_api
from .kernel_tuning import describe_inputs, find_device, make_choice, read_parameters
from .tuner import Tuner

TUNER = "triton_autotune"


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


class TritonAutotune(Tuner):
    name = "triton_autotune"

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        self._per_thread: PerThread[LaunchThread] = PerThread(LaunchThread)

    @property
    def _thread(self) -> LaunchThread:
        return self._per_thread.get()

    @classmethod
    def probe(cls) -> None:
        require_triton()

    def late_patches(self) -> dict[str, Callable[[], list[Patch]]]:
        return {
            torch_api.TRITON_TUNER: self._tuner_patches,
            torch_api.TRITON_ERRORS: lambda: self._error_patches(torch_api.LAUNCH_ERRORS),
            torch_api.TRITON_COMPILER_ERRORS: lambda: self._error_patches((torch_api.COMPILE_ERROR,)),
        }

    def _tuner_patches(self) -> list[Patch]:
        return [
            self.watch(torch_api.CONFIGS_PRUNED, self._on_pruned),
            self.watch(torch_api.CONFIG_BENCHED, self._on_timed, self._before_timing),
            self.watch(torch_api.DISK_CACHE_CHECKED, self._looked_up),
        ]

    def _error_patches(self, points: tuple[HookPoint, ...]) -> list[Patch]:
        return [self.watch(point, self._error_created) for point in points if point.required or point.exists()]

    def _on_pruned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tuner, self._thread.launch = args[0], None
        if error is None:
            values = [*(tuner.nargs or {}).values(), *(args[1] if len(args) > 1 else {}).values()]
            self._thread.launch = TunedLaunch(tuner, len(result), describe_inputs(values), find_device(values))

    def _before_timing(self, args: Args, kwargs: Kwargs) -> None:
        self._thread.error = None

    def _error_created(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._thread.error = describe_error(args[0])

    def _on_timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
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

    def _looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        tuner, key, configs = (
            call_argument(args, kwargs, *at) for at in ((0, "self"), (1, "tuning_key"), (2, "configs"))
        )
        if result and self._thread.launch is not None:
            launch, self._thread.launch = self._thread.launch, None
            launch.timed = [(config, _median(times), None) for config, times in tuner.configs_timings.items()]
            self._emit(launch, "local", winner=True)
        is_bypass = not key or any(config.pre_hook for config in configs)
        outcome = "bypass" if is_bypass else "hit" if result else "miss"
        why = "no key, or a configuration with a hook" if is_bypass else None
        name = f"{tuner.base_fn.__name__}: {key}"
        self.emit_look_up(self.current_ids(), "local", outcome, name, reason=why)

    def _emit(self, launch: TunedLaunch, from_cache: str | None, winner: bool) -> None:
        seconds = None if from_cache else (clock.now_ns() - launch.began_ns) / 1e9
        fastest = min(launch.timed, key=lambda one: one[1])[0] if winner else None
        ids = self.current_ids()
        choices = [
            make_choice(read_parameters(config), time_ms, reason, is_winner=config is fastest, benchmark_s=seconds)
            for config, time_ms, reason in launch.timed
        ]
        tuning = TuningRecord(
            tuner=TUNER,
            op=launch.tuner.base_fn.__name__,
            time_ns=launch.began_ns,
            inputs=launch.inputs or None,
            device=launch.device,
            compile_id=ids.compile_id,
            compile_key=ids.compile_key,
            frame=self.frame(ids),
            from_cache=from_cache,
            run_id=make_run_id(TUNER),
            timed=choices,
        )
        self.emit(make_choices, tuning)


def _median(times: Any) -> float:
    """triton keeps the median and two other quantiles of each configuration; a user's own timer may give one number."""
    return float(times[0] if isinstance(times, (list, tuple)) else times)
