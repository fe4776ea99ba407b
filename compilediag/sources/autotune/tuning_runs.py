"""One tuning of `select_algorithm` while it runs: what its hooks have seen so far, and its rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ... import clock
from ...decode.records.autotune_choices import (
    TimedChoice,
    TuningRecord,
    classify_choice,
    extract_reason,
    make_choices,
    make_run_id,
    parse_inputs,
    parse_parameters,
)
from ..hooks.sink import Made
from . import torch_api
from .tuner import CompileIds

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
    ids: CompileIds
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

    def start_waiting(self, futures: dict[Any, Any]) -> None:
        self.futures = futures
        self.waited_ns = [clock.now_ns()]

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

    def fastest(self) -> Any:
        """The choice that torch takes where nothing else decides."""
        return min(self.times, key=self.times.__getitem__, default=None)


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


def copy_facts(run: SelectorRun, frame: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arguments of `make_rows`: what a run's rows need, without its live objects, which hold a whole graph."""
    waited = run.waited_ns
    tuning = TuningRecord(
        tuner=TUNER,
        op=run.op,
        time_ns=run.began_ns,
        device=run.device,
        compile_id=run.ids.compile_id,
        compile_key=run.ids.compile_key,
        frame=frame,
        precompile_s=(waited[1] - waited[0]) / 1e9 if len(waited) == 2 else None,
        threads=run.threads,
        from_cache="local" if run.answered else None,
        run_id=make_run_id(TUNER),
    )
    seconds = _compile_seconds(run.futures or {})
    choices = [_copy_choice(run, choice, seconds) for choice in run.choices]
    at = {id(choice): n for n, choice in enumerate(run.choices)}
    rounds = [
        (r.stage, r.began_ns, r.seconds, r.reason, [(at[id(c)], r.times.get(c)) for c in r.choices if id(c) in at])
        for r in _list_rounds(run)
    ]
    return tuning, run.key, choices, rounds


def _list_rounds(run: SelectorRun) -> list[TimingRound]:
    """The rounds of a run. One that a cache answered has the answer as a round, one that was aborted has the error."""
    if run.answered:
        answer = TimingRound("benchmark", [*run.times], run.began_ns, times=run.times)
        return [*run.rounds, answer]
    if run.error and not run.rounds:
        left = [choice for choice in run.choices if not choice.failed]
        return [TimingRound("benchmark", left, run.began_ns, reason=run.error)]
    return run.rounds


def _compile_seconds(futures: Mapping[Any, Any]) -> dict[int, float]:
    """id of a choice -> seconds of its own compile, if it succeeded. Futures give (kernel, microseconds)."""
    over = [(future, choice) for future, choice in futures.items() if future.done() and not choice.failed]
    return {id(choice): future.result()[1] / 1e6 for future, choice in over if future.exception() is None}


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
        name=choice.name,
        kind=classify_choice(cls.__name__ for cls in type(inner).__mro__),
        compile_s=seconds.get(id(choice)),
        is_winner=choice is run.winner if run.settled else None,
        stage="precompile" if choice.failed else "benchmark",
    )
    texts = choice.description, {name: str(value) for name, value in others.items() if value is not None}
    return timed, *texts, run.failed.get(id(choice)), run.measured.get(id(choice))


def make_rows(
    tuning: TuningRecord, key: str | None, copies: list[tuple[Any, ...]], rounds: list[tuple[Any, ...]]
) -> Made:
    """The rows of a run: choices that did not compile, then each round. Runs in the writer's thread."""
    tuning.inputs = parse_inputs(key)
    choices = [_complete_choice(tuning, *copy) for copy in copies]
    tuning.timed = [choice for choice in choices if choice.stage == "precompile"]
    for stage, began_ns, seconds, reason, times in rounds:
        common = {"stage": stage, "time_ns": began_ns, "benchmark_s": seconds}
        for n, time_ms in times:
            is_timed = time_ms is not None and math.isfinite(time_ms)
            why = None if is_timed else choices[n].fail_reason or reason
            tuning.timed.append(dataclasses.replace(choices[n], **common, time_ms=time_ms, fail_reason=why))
    return make_choices(tuning)


def _complete_choice(
    tuning: TuningRecord,
    timed: TimedChoice,
    description: str,
    others: dict[str, str],
    reason: str | None,
    by: ProcessTiming | None,
) -> TimedChoice:
    timed.parameters = {**parse_parameters(description), **others}
    why = (by.describe_failure() if by else None) or reason
    timed.fail_reason = None if why is None else extract_reason(why)
    timed.in_subprocess = by is not None
    if by is not None and by.process is not None:
        timed.tuner_pid = by.process.pid
    if by is not None and by.device is not None:
        timed.device = f"{(tuning.device or 'cuda').split(':')[0]}:{by.device}"
    return timed
