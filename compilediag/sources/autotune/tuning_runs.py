"""A tuning of `select_algorithm` while it goes on: what its hooks have seen so far, and the rows that come of it."""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
from ...recording import Made

TUNER = "select_algorithm"


@dataclass(slots=True)
class Measured:
    """What is known of a choice that another process was asked to time."""

    process: Any = None
    device: int | None = None
    reason: str | None = None

    def why(self) -> str | None:
        """Why it has no time; of a process that died also how."""
        if self.reason is None or not self.reason.startswith("EOFError"):
            return self.reason
        code = self.process.poll()
        how = "is gone" if code is None else f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"
        return f"the tuner, process {self.process.pid}, {how}"


@dataclass(slots=True)
class Round:
    """One call of torch's `benchmark`, or one choice timed again with what was fused to it."""

    stage: str
    choices: list[Any]
    began_ns: int = field(default_factory=time.time_ns)
    seconds: float | None = None
    times: Mapping[Any, float] = field(default_factory=dict)
    reason: str | None = None

    def ends(self, times: Mapping[Any, float] | None, reason: str | None) -> None:
        self.seconds = (time.time_ns() - self.began_ns) / 1e9
        self.times, self.reason = times or {}, reason


@dataclass(slots=True)
class Run:
    """One call of torch's `do_autotuning`. The choices live as long as their run: their ids are theirs alone."""

    op: str | None
    device: str | None
    key: str | None
    choices: list[Any]
    compile_id: str | None
    began_ns: int = field(default_factory=time.time_ns)
    rounds: list[Round] = field(default_factory=list)
    #: Compiles that were waited for: future -> choice; from when to when.
    futures: dict[Any, Any] | None = None
    waited_ns: list[int] = field(default_factory=list)
    threads: int | None = None
    #: By id of the choice: why it failed in this process, and what is known of its timing in another.
    failed: dict[int, str] = field(default_factory=dict)
    measured: dict[int, Measured] = field(default_factory=dict)
    #: What `do_autotuning` gave, whether a cache answered, and what it raised.
    times: Mapping[Any, float] = field(default_factory=dict)
    answered: bool = False
    error: str | None = None
    #: A look-up of some choices is to thin them out before all are timed; the look-up of all is over.
    prescreening: bool = False
    looked_up: bool = False
    winner: Any = None
    settled: bool = False

    def waits(self, futures: dict[Any, Any]) -> None:
        self.futures = futures
        self.waited_ns = [time.time_ns()]

    def waited(self) -> None:
        """The compiles are over; the first time that this is said counts."""
        if len(self.waited_ns) == 1:
            self.waited_ns.append(time.time_ns())

    @property
    def stage(self) -> str:
        """The stage of a round that begins now."""
        return "profile" if self.looked_up else "prescreen" if self.prescreening else "benchmark"

    def has(self, choice: Any) -> bool:
        return any(choice is mine for mine in self.choices)

    def settle(self, winner: Any) -> None:
        """The choice that was taken is known, or that there is none."""
        self.winner, self.settled = winner, True

    def fastest(self) -> Any:
        """The choice that torch takes where nothing else decides."""
        return min(self.times, key=self.times.__getitem__, default=None)


class Here(threading.local):
    """What goes on in one thread."""

    def __init__(self) -> None:
        #: Calls of the selector that run, the outermost first, each with the tunings that ended in it.
        self.calls: list[list[Run]] = []
        #: Tunings that run.
        self.runs: list[Run] = []
        #: In a thread of the pool: the choice that it has timed in a process.
        self.asked: Any = None
        #: Choices, key and times of the pipelined tuning that was waited for last.
        self.results: tuple[Any, ...] = ()


def facts(run: Run, frame: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the rows of a run are made of, without its live objects, which hold a whole graph: for `made_rows`."""
    waited = run.waited_ns
    tuning = TuningRecord(
        tuner=TUNER,
        op=run.op,
        time_ns=run.began_ns,
        device=run.device,
        compile_id=run.compile_id,
        frame=frame,
        precompile_s=(waited[1] - waited[0]) / 1e9 if len(waited) == 2 else None,
        threads=run.threads,
        from_cache="local" if run.answered else None,
        run_id=make_run_id(TUNER),
    )
    seconds = _compile_seconds(run.futures or {})
    told = [_told(run, choice, seconds) for choice in run.choices]
    at = {id(choice): n for n, choice in enumerate(run.choices)}
    rounds = [
        (r.stage, r.began_ns, r.seconds, r.reason, [(at[id(c)], r.times.get(c)) for c in r.choices if id(c) in at])
        for r in _rounds(run)
    ]
    return tuning, run.key, told, rounds


def _rounds(run: Run) -> list[Round]:
    """The rounds of a run: of one that a cache answered what that said, and of one that was broken off that it was."""
    if run.answered:
        answer = Round("benchmark", [*run.times], run.began_ns, times=run.times)
        return [*run.rounds, answer]
    if run.error and not run.rounds:
        left = [choice for choice in run.choices if not choice.failed]
        return [Round("benchmark", left, run.began_ns, reason=run.error)]
    return run.rounds


def _compile_seconds(futures: Mapping[Any, Any]) -> dict[int, float]:
    """id of a choice -> seconds that its own compile took, if it succeeded. Futures give (kernel, microseconds)."""
    over = [(future, choice) for future, choice in futures.items() if future.done() and not choice.failed]
    return {id(choice): future.result()[1] / 1e6 for future, choice in over if future.exception() is None}


def _told(run: Run, choice: Any, seconds: Mapping[int, float]) -> tuple[Any, ...]:
    """Of a choice: what its row begins as, the text of its parameters and others, why it failed, how it was timed."""
    inner = getattr(choice, "_wrapped", choice)  # torch puts the choice for packed weights into a wrapper.
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


def made_rows(
    tuning: TuningRecord, key: str | None, told: list[tuple[Any, ...]], rounds: list[tuple[Any, ...]]
) -> Made:
    """The rows of a run: of choices that did not compile, then of each round. In the writer's thread."""
    tuning.inputs = parse_inputs(key)
    choices = [_complete(tuning, *one) for one in told]
    tuning.timed = [choice for choice in choices if choice.stage == "precompile"]
    for stage, began_ns, seconds, reason, times in rounds:
        common = {"stage": stage, "time_ns": began_ns, "benchmark_s": seconds}
        for n, time_ms in times:
            fine = time_ms is not None and math.isfinite(time_ms)
            why = None if fine else choices[n].fail_reason or reason
            tuning.timed.append(dataclasses.replace(choices[n], **common, time_ms=time_ms, fail_reason=why))
    return make_choices(tuning)


def _complete(
    tuning: TuningRecord,
    timed: TimedChoice,
    description: str,
    others: dict[str, str],
    reason: str | None,
    by: Measured | None,
) -> TimedChoice:
    timed.parameters = {**parse_parameters(description), **others}
    why = (by.why() if by else None) or reason
    timed.fail_reason = None if why is None else extract_reason(why)
    timed.in_subprocess = by is not None
    if by is not None and by.process is not None:
        timed.tuner_pid = by.process.pid
    if by is not None and by.device is not None:
        timed.device = f"{(tuning.device or 'cuda').split(':')[0]}:{by.device}"
    return timed
