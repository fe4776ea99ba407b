"""What watching costs while torch compiles: four workloads, all variants in turn in one process."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from measure import Estimate, estimate, excess, in_turn, timed
from torch._dynamo.utils import compilation_time_metrics
from torch._inductor import config
from torch._inductor.utils import fresh_cache
from variants import VARIANTS

ENTRIES = 8
#: Of `self.step`, never the same twice: no text of a guard is met again, as in a first run.
_steps = itertools.count(2)
#: What a linear layer is tuned with: on a CPU it has choices only once its weights are frozen.
TUNING = {
    "max_autotune": True,
    "freezing": not torch.cuda.is_available(),
    "test_configs.max_mm_configs": 10,
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
}


class Model(torch.nn.Module):
    """Two layers and a number that torch specializes on: about 50 guards, one of which fails at each new `step`."""

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
    """`ready()` sets the place for one round of `work()`, in which torch compiles `compiles` times."""

    name: str
    compiles: int
    work: Callable[[], None]
    ready: Callable[[], contextlib.AbstractContextManager[object]]


@contextlib.contextmanager
def workloads() -> Iterator[list[Workload]]:
    """The four workloads; the cache of the warm one lives as long as this context. Tuning is done on a GPU, if any."""
    model, x = Model(), torch.ones(4, 16)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layer, wide = torch.nn.Linear(512, 512, device=device), torch.ones(64, 512, device=device)

    def storm() -> None:
        compiled = torch.compile(model, backend="eager")
        for _ in range(ENTRIES):
            model.step = next(_steps)
            compiled(x)

    def once() -> None:
        model.step = 1
        with torch.no_grad():
            torch.compile(model)(x)

    def tune() -> None:
        with torch.no_grad(), config.patch(TUNING):
            torch.compile(layer)(wide)

    with fresh_cache():
        once()
        yield [
            Workload("Dynamo-only recompiles", ENTRIES, storm, contextlib.nullcontext),
            Workload("Inductor, warm cache", 1, once, contextlib.nullcontext),
            Workload("Inductor, cold", 1, once, fresh_cache),
            Workload("Inductor, cold, max-autotune", 1, tune, fresh_cache),
        ]


@dataclass(frozen=True)
class Row:
    """One variant in one workload. Shares are of the unwatched time, `own` of the compile time beside it.

    `guards`: the part of `own` that went into failing guards and their values.
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


def compare(workload: Workload, cycles: int) -> list[Row]:
    """A row a variant, after first rounds that do not count: those of `full` import all that is imported."""
    rounds: dict[str, list[_Round]] = defaultdict(list)
    for name in ("unwatched", "full"):
        _round(workload, name)
    for name in in_turn(list(VARIANTS), cycles):
        rounds[name].append(_round(workload, name))
    return [_row(name, rounds[name], rounds["unwatched"], workload) for name in VARIANTS]


def _round(workload: Workload, variant: str) -> _Round:
    torch._dynamo.reset()
    with workload.ready(), VARIANTS[variant]() as meter:
        own, guards, compile_s = meter.own_s(), meter.guards_s(), _compile_s()

        def all_of_it() -> None:
            workload.work()
            meter.settle()

        wall_s, cpu_s = timed(all_of_it)
        spent = None if own is None else meter.own_s() - own
        on_guards = None if guards is None else meter.guards_s() - guards
        return _Round(wall_s, cpu_s, _compile_s() - compile_s, spent, on_guards)


def _compile_s() -> float:
    """Seconds in compiles of frames so far, as torch times them itself."""
    return sum(compilation_time_metrics.get("_compile.compile_inner", ()))


def _row(name: str, rounds: list[_Round], base: list[_Round], workload: Workload) -> Row:
    own = [r.own_s for r in rounds if r.own_s is not None]
    guards = [r.guards_s / r.compile_s for r in rounds if r.guards_s is not None]
    return Row(
        variant=name,
        wall_s=estimate([r.wall_s for r in rounds]).value,
        compile_s=estimate([r.compile_s for r in rounds]).value / workload.compiles,
        more_cpu=excess([r.cpu_s for r in rounds], [r.cpu_s for r in base]),
        more_wall=excess([r.wall_s for r in rounds], [r.wall_s for r in base]),
        own=estimate([o / r.compile_s for o, r in zip(own, rounds, strict=True)]) if own else None,
        own_ms=estimate(own).value * 1e3 / workload.compiles if own else None,
        guards=estimate(guards) if guards else None,
    )
