"""Autotuning of operators: a row per choice of `select_algorithm`, whoever timed it, and which one was taken.

torch's own `add_feedback_saver` has what was timed, but not what did not compile, nor why, nor what a cache answered,
and any tool can clear it. So its steps are watched: the call of the selector, the tuning in it, the wait for compiles,
the look-up, each round of timing. Where the winner depends on what is fused to it, the scheduler settles it later, and
the rows wait for that.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

from ...decode.records.autotune_choices import (
    TimedChoice,
    classify_choice,
    extract_reason,
    make_choices,
    parse_inputs,
    parse_parameters,
)
from ...events import AutotuneChoice
from ...system import clock
from ...system.interrupts import pass_on
from ...system.own_errors import describe_error
from ..compile_context import EventSink, Made, OwnerColumns, PerThread
from ..hooks.patches import Args, Kwargs, Raised
from ..hooks.source import CacheSource, hook, hook_before
from ..hooks.torch_names import call_arguments, require_modules
from . import torch_api

TUNER = "select_algorithm"


@dataclass(slots=True)
class ProcessTiming:
    """What is known of a choice that another process was asked to time."""

    process: Any = None
    device: int | None = None
    reason: str | None = None

    def describe_failure(self) -> str | None:
        """Why it has no time, and how a process ended that died."""
        if self.reason is None or not self.reason.startswith("EOFError"):
            return self.reason
        code = self.process.poll()
        how = "is gone" if code is None else f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        return f"the tuner, process {self.process.pid}, {how}"


@dataclass(slots=True)
class TimingRound:
    """One call of torch's `benchmark`, or one choice timed again with what was fused to it."""

    stage: str
    choices: list[Any]
    began_ns: int = field(default_factory=clock.now_ns)
    seconds: float | None = None
    times: Mapping[Any, float] = field(default_factory=dict)
    reason: str | None = None

    def end(self, times: Mapping[Any, float] | None, reason: str | None) -> None:
        self.seconds = (clock.now_ns() - self.began_ns) / 1e9
        self.times, self.reason = times or {}, reason


@dataclass(slots=True)
class SelectorRun:
    """One call of torch's `do_autotuning`. It holds the choices, so their ids stay their own."""

    op: str | None
    device: str | None
    key: str | None
    choices: list[Any]
    #: The columns of its compile.
    owner: OwnerColumns
    began_ns: int = field(default_factory=clock.now_ns)
    rounds: list[TimingRound] = field(default_factory=list)
    #: Compiles that torch waited for: future -> choice; from when to when.
    futures: dict[Any, Any] | None = None
    waited_ns: list[int] = field(default_factory=list)
    threads: int | None = None
    #: By id of the choice: why it failed in this process, and what is known of its timing in another.
    failed: dict[int, str] = field(default_factory=dict)
    measured: dict[int, ProcessTiming] = field(default_factory=dict)
    #: The result of `do_autotuning`, whether a cache answered, and the error.
    times: Mapping[Any, float] = field(default_factory=dict)
    answered: bool = False
    error: str | None = None
    #: Some choices are looked up to leave out others before all are timed; the look-up of all is over.
    prescreening: bool = False
    looked_up: bool = False
    winner: Any = None
    settled: bool = False

    def end_waiting(self) -> None:
        """The compiles are over; the first call counts."""
        if len(self.waited_ns) == 1:
            self.waited_ns.append(clock.now_ns())

    @property
    def stage(self) -> str:
        """The stage of a round that begins now."""
        return "profile" if self.looked_up else "prescreen" if self.prescreening else "benchmark"

    def has(self, choice: Any) -> bool:
        return any(choice is mine for mine in self.choices)

    def settle(self, winner: Any) -> None:
        """Note the choice that torch took, or that there is none."""
        self.winner, self.settled = winner, True

    def make_common(self) -> AutotuneChoice:
        """What its choices have in common."""
        waited = self.waited_ns
        return AutotuneChoice(
            tuner=TUNER,
            op=self.op,
            time_ns=self.began_ns,
            device=self.device,
            precompile_s=(waited[1] - waited[0]) / 1e9 if len(waited) == 2 else None,
            threads=self.threads,
            from_cache="local" if self.answered else None,
            **self.owner,
        )


class TuningThread:
    """What one thread tunes."""

    def __init__(self) -> None:
        #: Calls of the selector that run, the outermost first, each with the tunings that ended in it.
        self.calls: list[list[SelectorRun]] = []
        #: Tunings that run.
        self.runs: list[SelectorRun] = []
        #: In a thread of the pool: the choice that it has timed in a process.
        self.asked: Any = None
        #: Choices, key and times of the pipelined tuning that was waited for last.
        self.results: tuple[Any, ...] = ()


def _copy_choice(run: SelectorRun, choice: Any, seconds: Mapping[int, float]) -> tuple[Any, ...]:
    """Of a choice: the start of its row, the text of its parameters and others, why it failed, how it was timed."""
    inner = torch_api.inner_choice(choice)
    template = getattr(inner, "template", None)
    others = {
        **(getattr(inner, "kwargs", None) or {}),
        "register_blocking": getattr(template, "register_blocking", None),
        "num_threads": getattr(template, "num_threads", None),
    }
    timed = TimedChoice(
        choice=choice.name,
        choice_kind=classify_choice(cls.__name__ for cls in type(inner).__mro__),
        compile_s=seconds.get(id(choice)),
        is_winner=choice is run.winner if run.settled else None,
        stage="precompile" if choice.failed else "benchmark",
    )
    texts = choice.description, {name: str(value) for name, value in others.items() if value is not None}
    return timed, *texts, run.failed.get(id(choice)), run.measured.get(id(choice))


def make_rows(
    tuning: AutotuneChoice, key: str | None, copies: list[tuple[Any, ...]], rounds: list[tuple[Any, ...]]
) -> Made:
    """The rows of a run: choices that did not compile, then each round. Runs in the writer's thread."""
    choices: list[TimedChoice] = []
    by: ProcessTiming | None
    for choice, description, others, reason, by in copies:
        choice.parameters = {**parse_parameters(description), **others}
        why = (by.describe_failure() if by else None) or reason
        choice.fail_reason = None if why is None else extract_reason(why)
        choice.in_subprocess = by is not None
        if by is not None and by.process is not None:
            choice.tuner_pid = by.process.pid
        if by is not None and by.device is not None:
            choice.device = f"{(tuning.device or 'cuda').split(':')[0]}:{by.device}"
        choices.append(choice)
    timed = [choice for choice in choices if choice.stage == "precompile"]
    for stage, began_ns, seconds, reason, times in rounds:
        common = {"stage": stage, "time_ns": began_ns, "benchmark_s": seconds}
        for n, time_ms in times:
            is_timed = time_ms is not None and math.isfinite(time_ms)
            why = None if is_timed else choices[n].fail_reason or reason
            timed.append(dataclasses.replace(choices[n], **common, time_ms=time_ms, fail_reason=why))
    return make_choices(dataclasses.replace(tuning, inputs=parse_inputs(key)), timed)


class SelectAlgorithm(CacheSource):
    name = TUNER
    late_needs = (torch_api.WORKERS,)
    checks = (
        functools.partial(require_modules, torch_api.SELECT, torch_api.PROCESS, torch_api.IR),
        functools.partial(require_modules, torch_api.SCHEDULER, torch_api.CODECACHE),
    )
    _thread = PerThread(TuningThread)

    def __init__(self, recorder: EventSink, detail: str):
        super().__init__(recorder, detail)
        #: Tunings whose winner the scheduler has not settled yet, with their thread.
        self._open: list[tuple[int, SelectorRun]] = []
        #: Tunings whose times another thread waits for, and what processes reported of choices, by id.
        self._pipelined: list[SelectorRun] = []
        self._measured: dict[int, ProcessTiming] = {}

    def close(self) -> None:
        self._emit_open(lambda thread, run: True)

    # The call of the selector, and the tuning in it.

    @hook_before(torch_api.SELECTED)
    def _before_select(self, args: Args, kwargs: Kwargs) -> None:
        self._thread.calls.append([])

    @hook(torch_api.SELECTED, late=True)
    def _on_selected(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        runs = self._thread.calls.pop() if self._thread.calls else []
        for run in runs:
            # torch 2.13 gives (node, choice), 2.11 the node of the fastest choice alone.
            is_pair = isinstance(result, tuple)
            winner = result[1] if is_pair else min(run.times, key=run.times.__getitem__, default=None)
            if winner is not None and not run.settled:
                run.settle(winner)
            self._emit_run(run)
        if error is not None and not runs:  # It had nothing to choose from.
            name, layout = call_arguments(args, kwargs, name=1, layout=4)
            common = self._start_run(name, layout, None, []).make_common()
            self.emit(make_choices, common, [TimedChoice(None, is_winner=False, fail_reason=_error_text(error))])

    @hook_before(torch_api.TUNED)
    def _before_tuning(self, args: Args, kwargs: Kwargs) -> None:
        name, layout, key, choices = call_arguments(args, kwargs, name=1, layout=3, inputs_key=5, choices=6)
        run = self._start_run(name, layout, key, choices)
        # Emit what a compile left open that failed before its scheduler could settle it.
        self._emit_open(lambda thread, left: thread == get_ident() and left.owner != run.owner)
        self._thread.runs.append(run)

    @hook(torch_api.TUNED, late=True)
    def _on_tuned(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        if not self._thread.runs:
            return
        run = self._thread.runs.pop()
        run.end_waiting()
        run.measured = {id(c): self._measured.pop(id(c)) for c in run.choices if id(c) in self._measured}
        run.times = result or {}
        if error is not None:
            run.error = _error_text(error)
            run.settle(None)
        if result is None and error is None:
            self._pipelined.append(run)
        elif self._thread.calls:
            self._thread.calls[-1].append(run)
        elif error is not None:
            self._emit_run(run)
        else:
            self._open.append((get_ident(), run))

    @hook(torch_api.COMPILES_AWAITED, late=True)
    def _compiles_awaited(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._thread.runs:
            run = self._thread.runs[-1]
            run.futures, run.waited_ns = args[0], [clock.now_ns()]
            templates = any(type(choice).__name__ == torch_api.TEMPLATE_CALLER.name for choice in args[0].values())
            run.threads = torch_api.count_compilers(len(run.choices), templates)

    @hook(torch_api.COMPILES_FAILED, late=True)
    def _compiles_failed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._thread.runs:
            self._thread.runs[-1].failed.update((id(choice), _error_text(why)) for choice, why in args[0])

    @hook(torch_api.PRESCREENED, late=True)
    def _on_prescreened(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._thread.runs:
            self._thread.runs[-1].end_waiting()
            self._thread.runs[-1].prescreening = bool(result)

    @hook(torch_api.TIMES_LOOKED_UP, late=True)
    def _times_looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        op, key, benchmark = call_arguments(args, kwargs, op=2, inputs=3, benchmark=4)
        if error is not None and not self._thread.runs:
            # The look-up before the tuning, which only saves the compiles.
            self.emit_lookup("autotune", "local", "look_up", "failed", error, key=f"{op}: {key}")
        if benchmark is None or not self._thread.runs:
            return
        run = self._thread.runs[-1]
        hit = not any(done.stage == run.stage for done in run.rounds)
        if not run.prescreening:
            run.looked_up, run.answered = True, hit and error is None
        run.prescreening = False
        outcome = "miss" if not hit else "hit" if error is None else "failed"
        outcome = outcome if torch_api.is_cache_on() else "disabled"
        why = error if hit else None
        self.emit_lookup("autotune", "local", "look_up", outcome, why, run.owner, key=f"{op}: {key}")

    @hook(torch_api.TEMPLATE_LOOKED_UP, late=True, full=True)
    def _template_looked_up(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if args[1] is not None:
            outcome = "miss" if result is None else "hit"
            self.emit_lookup("triton_template", "memory", "look_up", outcome)

    # Rounds of timing, in this process and in others.

    @hook_before(torch_api.BENCHMARKED)
    def _before_benchmark(self, args: Args, kwargs: Kwargs) -> None:
        choices, layout = call_arguments(args, kwargs, choices=1, layout=3)
        if not self._thread.runs:
            # A tool kept the function that times the choices, and calls it again.
            run = self._start_run(None, layout, None, choices)
            run.looked_up = True
            self._thread.runs.append(run)
        run = self._thread.runs[-1]
        run.rounds.append(TimingRound(run.stage, list(choices)))

    @hook(torch_api.BENCHMARKED, late=True)
    def _on_benchmarked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        run = self._thread.runs[-1]
        run.rounds[-1].end(result, None if error is None else _error_text(error))
        if run.op is None:
            self._thread.runs.pop()
            self._emit_run(run)

    @hook(torch_api.CHOICE_TIMED, late=True)
    def _choice_timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if error is not None and self._thread.runs:
            self._thread.runs[-1].failed[id(args[1])] = _error_text(error)

    @hook_before(torch_api.PROCESS_ASKED)
    def _before_process(self, args: Args, kwargs: Kwargs) -> None:
        self._thread.asked = args[1]

    @hook(torch_api.PROCESS_ANSWERED, late=True)
    def _process_answered(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._thread.asked is not None:
            reason = None if error is None else _error_text(error)
            self._measured[id(self._thread.asked)] = ProcessTiming(args[0].process, args[0].device, reason)

    @hook(torch_api.PROCESS_ASKED, late=True)
    def _process_asked(self, args: Args, kwargs: Kwargs, result: Any, error: Raised, _: None) -> None:
        self._thread.asked = None
        if error is not None:
            self._measured.setdefault(id(args[1]), ProcessTiming(reason=_error_text(error)))

    @hook(torch_api.PIPELINE_RESULTS, late=True)
    def _got_results(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        self._thread.results = (*args[1:3], result)

    @hook(torch_api.RESULTS_LOGGED, late=True)
    def _results_logged(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        """The end of a pipelined tuning, in the thread that waited for the times."""
        if not self._thread.results or args[2] is not self._thread.results[2]:
            return
        choices, key, times = self._thread.results
        self._thread.results = ()
        run = next((r for r in self._pipelined if any(r.has(choice) for choice in choices)), None)
        if run is None:
            run = self._start_run(args[0], choices[0].layout, key, choices)
        else:
            self._pipelined.remove(run)
        run.choices = [*run.choices, *(choice for choice in choices if not run.has(choice))]
        run.owner, run.times = self.context.current_columns(), times
        run.measured = {id(choice): ProcessTiming() for choice in choices}
        run.rounds.append(TimingRound("benchmark", list(choices), times=times))
        self._open.append((get_ident(), run))

    # What the scheduler settles.

    @hook(torch_api.FUSION_TIMED, late=True)
    def _fusion_timed(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        choice = torch_api.fused_choice()
        for run in self._list_own() if choice is not None else ():
            if run.has(choice):
                timed = TimingRound("fusion", [choice])
                timed.end(
                    None if result is None else {choice: result[0]}, None if error is None else _error_text(error)
                )
                timed.seconds = None
                run.rounds.append(timed)

    @hook(*torch_api.CHOICES_FINALIZED, late=True)
    def _on_finalized(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        for choice in args[1].values() if isinstance(args[1], dict) else args[1:2]:
            self._settle(choice)

    @hook(torch_api.EXTERN_TAKEN, late=True)
    def _extern_taken(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._open:
            self._settle(args[0])

    def _settle(self, choice: Any) -> None:
        for run in self._list_own():
            if run.has(choice):
                run.settle(choice)

    @hook(torch_api.CHOICES_SETTLED, late=True)
    def _choices_settled(self, args: Args, kwargs: Kwargs, result: Any, error: Raised) -> None:
        if self._open:
            self._emit_open(lambda thread, run: thread == get_ident())

    def _list_own(self) -> list[SelectorRun]:
        return [run for thread, run in self._open if thread == get_ident()]

    def _emit_open(self, which: Callable[[int, SelectorRun], bool]) -> None:
        ready = [item for item in self._open if which(*item)]
        for item in ready:
            self._open.remove(item)
            self._emit_run(item[1])

    def _start_run(self, name: str | None, layout: Any, key: str | None, choices: list[Any]) -> SelectorRun:
        device, owner = getattr(layout, "device", None), self.context.current_columns()
        return SelectorRun(name, None if device is None else str(device), key, list(choices), owner)

    def _emit_run(self, run: SelectorRun) -> None:
        """Hand over what a run's rows need, without its live objects, which hold a whole graph."""
        over = [(future, c) for future, c in (run.futures or {}).items() if future.done() and not c.failed]
        # The seconds of each choice's own compile, if it succeeded. Futures give (kernel, microseconds).
        seconds = {id(c): future.result()[1] / 1e6 for future, c in over if future.exception() is None}
        choices = [_copy_choice(run, choice, seconds) for choice in run.choices]
        timed, at = run.rounds, {id(choice): n for n, choice in enumerate(run.choices)}
        if run.answered:
            timed = [*timed, TimingRound("benchmark", [*run.times], run.began_ns, times=run.times)]
        elif run.error and not timed:  # It was aborted.
            left = [choice for choice in run.choices if not choice.failed]
            timed = [TimingRound("benchmark", left, run.began_ns, reason=run.error)]
        rounds = [
            (r.stage, r.began_ns, r.seconds, r.reason, [(at[id(c)], r.times.get(c)) for c in r.choices if id(c) in at])
            for r in timed
        ]
        self.emit(make_rows, run.make_common(), run.key, choices, rounds)


def _error_text(error: BaseException) -> str:
    """An error's own text, lines and all, after its class; in one line if that can't be had."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as worse:
        pass_on(worse)
        return describe_error(error)
