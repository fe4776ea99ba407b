"""Measure the cost of watching while torch compiles: four workloads, all variants alternating in one process."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from measure import Estimate, alternate, estimate, estimate_excess, time_call
from torch._dynamo.utils import compilation_time_metrics
from torch._inductor import config
from torch._inductor.utils import fresh_cache
from variants import VARIANTS

ENTRIES = 8
#: Values of `self.step`. No value repeats, so no guard text repeats, as in a first run.
_steps = itertools.count(2)
#: Settings to tune a linear layer. On a CPU, it has choices only if its weights are frozen.
TUNING = {
    "max_autotune": True,
    "freezing": not torch.cuda.is_available(),
    "test_configs.max_mm_configs": 10,
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
}


class Model(torch.nn.Module):
    """Two layers and an integer that torch specializes on: about 50 guards; one of them fails at each new `step`."""

    def __init__(self, width: int = 16):
        super().__init__()
        self.first = torch.nn.Linear(width, width)
        self.second = torch.nn.Linear(width, width)
        self.step = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.first(x))
        return torch.softmax(self.second(hidden) * self.step, dim=-1)


@dataclass(frozen=True)
class Workload:
    """`prepare()` is the context of one round of `work()`, in which torch compiles `compiles` times."""

    name: str
    compiles: int
    work: Callable[[], None]
    prepare: Callable[[], contextlib.AbstractContextManager[object]]


@contextlib.contextmanager
def make_workloads() -> Iterator[list[Workload]]:
    """Yield the four workloads. The warm cache exists as long as this context. Tuning uses a GPU if there is one."""
    model, x = Model(), torch.ones(4, 16)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer, wide = torch.nn.Linear(512, 512, device=device), torch.ones(64, 512, device=device)

    def recompile() -> None:
        compiled = torch.compile(model, backend="eager")
        for _ in range(ENTRIES):
            model.step = next(_steps)
            compiled(x)

    def compile_once() -> None:
        model.step = 1
        with torch.no_grad():
            torch.compile(model)(x)

    def tune() -> None:
        with torch.no_grad(), config.patch(TUNING):
            torch.compile(layer)(wide)

    with fresh_cache():
        compile_once()
        yield [
            Workload("Dynamo-only recompiles", ENTRIES, recompile, contextlib.nullcontext),
            Workload("Inductor, warm cache", 1, compile_once, contextlib.nullcontext),
            Workload("Inductor, cold", 1, compile_once, fresh_cache),
            Workload("Inductor, cold, max-autotune", 1, tune, fresh_cache),
        ]


@dataclass(frozen=True)
class Row:
    """One variant in one workload. Shares are relative to the unwatched time, `own` to the compile time of its round.

    `guards` is the part of `own` spent on failing guards and their values.
    """

    variant: str
    wall_s: float
    compile_s: float
    more_cpu: Estimate
    more_wall: Estimate
    own: Estimate | None
    own_ms: float | None
    guards: Estimate | None


@dataclass(frozen=True)
class _Round:
    wall_s: float
    cpu_s: float
    compile_s: float
    own_s: float | None
    guards_s: float | None


def compare_variants(workload: Workload, cycles: int) -> list[Row]:
    """Return one row per variant. Warm-up rounds, which include all imports, are not counted."""
    rounds: dict[str, list[_Round]] = defaultdict(list)
    for name in ("unwatched", "full"):
        _measure_round(workload, name)
    for name in alternate(list(VARIANTS), cycles):
        rounds[name].append(_measure_round(workload, name))
    return [_make_row(name, rounds[name], rounds["unwatched"], workload) for name in VARIANTS]


def _measure_round(workload: Workload, variant: str) -> _Round:
    torch._dynamo.reset()
    with workload.prepare(), VARIANTS[variant]() as meter:
        own, guards, compile_s = meter.own_s(), meter.guards_s(), sum_compile_s()

        def work_and_settle() -> None:
            workload.work()
            meter.settle()

        wall_s, cpu_s = time_call(work_and_settle)
        spent = None if own is None else meter.own_s() - own
        on_guards = None if guards is None else meter.guards_s() - guards
        return _Round(wall_s, cpu_s, sum_compile_s() - compile_s, spent, on_guards)


def sum_compile_s() -> float:
    """Return the seconds that torch has spent compiling frames so far, from torch's own metrics."""
    return sum(compilation_time_metrics.get("_compile.compile_inner", ()))


def _make_row(name: str, rounds: list[_Round], base: list[_Round], workload: Workload) -> Row:
    own = [r.own_s for r in rounds if r.own_s is not None]
    guards = [r.guards_s / r.compile_s for r in rounds if r.guards_s is not None]
    return Row(
        variant=name,
        wall_s=estimate([r.wall_s for r in rounds]).value,
        compile_s=estimate([r.compile_s for r in rounds]).value / workload.compiles,
        more_cpu=estimate_excess([r.cpu_s for r in rounds], [r.cpu_s for r in base]),
        more_wall=estimate_excess([r.wall_s for r in rounds], [r.wall_s for r in base]),
        own=estimate([o / r.compile_s for o, r in zip(own, rounds, strict=True)]) if own else None,
        own_ms=estimate(own).value * 1e3 / workload.compiles if own else None,
        guards=estimate(guards) if guards else None,
    )
