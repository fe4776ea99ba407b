"""Runs of the tuners: which choice won, by how much, what tuning cost, and after how many calls that pays.

A run is all rows of the `autotune` table that share a `run_id` in one process.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ...events import AutotuneChoice, Rows
from ...formatting import format_first_line, format_line, format_op
from ..evidence import Place, find_first, get_ids, group_by, is_timed

if TYPE_CHECKING:
    import pandas as pd

#: A choice that passes an early stage is timed again in a later one: only the later time counts.
_EARLY = ("prescreen", "precompile")
#: Times that did not decide, or that include what was fused to the op.
_ASIDE = ("fusion", "profile")
#: A stage that takes known results and times nothing.
UNTIMED = "cached"
#: Parts of an input's description that are neither its type nor its sizes.
_DETAILS = re.compile(r" strides \[[^\]]*\]| (?:cpu|cuda|xpu|mps)(?::\d+)?\b")

#: rank, pid, and the run's id, or its event's number.
RunKey = tuple[int | None, int | None, str]


@dataclass(frozen=True)
class TuningRun:
    """One tuning of one op. Seconds are s, times of one call are ms; None is unknown.

    `margin_next`, `margin_extern`: how much longer the runner-up, and the best extern kernel, take than the winner
    (0.02: 2 % longer). `saved_ms`: what a call of the winner saves against the extern kernel, which runs without
    tuning. `break_even`: calls after which that has paid for the tuning. `order`: the events of the times that were
    compared, the fastest first.
    """

    run_id: str | None
    event_id: int | None
    time_ns: int
    rank: int | None
    pid: int | None
    compile_id: str | None
    compile_key: str | None
    tuner: str | None
    function: str | None
    file: str | None
    line: int | None
    op: str | None
    inputs: tuple[str, ...]
    device: str | None
    choices: int
    timed: int
    failed: int
    winner: str | None
    winner_kind: str | None
    winner_ms: float | None
    next_choice: str | None
    next_ms: float | None
    extern_ms: float | None
    margin_next: float | None
    margin_extern: float | None
    saved_ms: float | None
    benchmark_s: float | None
    precompile_s: float | None
    spent_s: float | None
    break_even: int | None
    from_cache: str | None
    fail_reasons: tuple[tuple[str, int], ...]
    stages: tuple[str, ...]
    order: tuple[int, ...]
    evidence: tuple[int, ...]

    @property
    def place(self) -> Place:
        """The function whose compile asked for the tuning."""
        return self.function, self.file, self.line

    @property
    def label(self) -> str:
        """`mm [float32[64, 64], float32[64, 64]]`: the op and its inputs."""
        shown = ", ".join(format_line(_DETAILS.sub("", text), 60) for text in self.inputs[:4])
        more = ", ..." if len(self.inputs) > 4 else ""
        return f"{format_line(self.op or 'an op', 80)}{f' [{shown}{more}]' if shown else ''}"


@dataclass(frozen=True)
class _Times:
    """The times of a run that decided it: all of them, the winner's, the runner-up and the best extern kernel's."""

    final: Sequence[AutotuneChoice]
    winner: AutotuneChoice | None
    winner_ms: float | None
    runner_up: AutotuneChoice | None
    extern_ms: float | None

    @property
    def next_ms(self) -> float | None:
        """ms of one call of the runner-up."""
        return self.runner_up.time_ms if self.runner_up else None

    @property
    def saved_ms(self) -> float | None:
        """ms that one call of the winner saves against the extern kernel."""
        return None if self.winner_ms is None or self.extern_ms is None else self.extern_ms - self.winner_ms


def find_tuning_runs(data: Rows) -> list[TuningRun]:
    """The runs of a session, in the order of their events."""
    return [summarize_run(rows) for rows in group_by_run(data)]


def group_by_run(data: Rows) -> list[list[AutotuneChoice]]:
    """The rows of each run, in the order of their events."""
    return list(group_by(data.rows(AutotuneChoice), get_run_key).values())


def make_runs_frame(data: Rows) -> pd.DataFrame:
    """One row per run, with the fields of `TuningRun` as columns; missing numbers are NA."""
    import pandas as pd

    runs = [asdict(run) | {"label": run.label} for run in find_tuning_runs(data)]
    frame = pd.DataFrame(runs, columns=[*TuningRun.__dataclass_fields__, "label"])
    numbers = {name: "float64" for name, f in TuningRun.__dataclass_fields__.items() if "float" in str(f.type)}
    return frame.astype({**numbers, "break_even": "Int64"})


def get_run_key(row: AutotuneChoice) -> RunKey:
    """What the rows of one run have in common; a choice without a run is a run of its own."""
    return row.rank, row.pid, row.run_id or f"event {row.event_id}"


def summarize_run(rows: Sequence[AutotuneChoice]) -> TuningRun:
    """The run that consists of these rows; `inputs` may be missing."""
    first, times = rows[0], _find_times(rows)
    benchmark_s, precompile_s = sum_stages(rows), _find_longest(row.precompile_s for row in rows)
    spent = None if benchmark_s is None and precompile_s is None else (benchmark_s or 0.0) + (precompile_s or 0.0)
    failed = _map_failures(rows, times.final)
    return TuningRun(
        run_id=find_first(row.run_id for row in rows),
        event_id=first.event_id,
        time_ns=first.time_ns,
        rank=first.rank,
        pid=first.pid,
        compile_id=find_first(row.compile_id for row in rows),
        compile_key=find_first(row.compile_key for row in rows),
        tuner=find_first(row.tuner for row in rows),
        function=find_first(row.function for row in rows),
        file=find_first(row.file for row in rows),
        line=find_first(row.line for row in rows),
        op=format_op(find_first(row.op for row in rows)),
        inputs=tuple(find_first(row.inputs for row in rows) or ()),
        device=find_first(row.device for row in rows),
        choices=len({row.choice for row in rows}),
        timed=len({row.choice for row in times.final}),
        failed=len(failed),
        winner=times.winner.choice if times.winner else None,
        winner_kind=times.winner.choice_kind if times.winner else None,
        winner_ms=times.winner_ms,
        next_choice=times.runner_up.choice if times.runner_up else None,
        next_ms=times.next_ms,
        extern_ms=times.extern_ms,
        margin_next=compute_margin(times.next_ms, times.winner_ms),
        margin_extern=compute_margin(times.extern_ms, times.winner_ms),
        saved_ms=times.saved_ms,
        benchmark_s=benchmark_s,
        precompile_s=precompile_s,
        spent_s=spent,
        break_even=count_calls_to_pay(spent, times.saved_ms),
        from_cache=find_first(row.from_cache for row in rows),
        fail_reasons=tuple(Counter(failed.values()).most_common()),
        stages=tuple(sorted({row.stage for row in rows if row.stage is not None})),
        order=get_ids(times.final),
        evidence=get_ids(rows),
    )


def _find_times(rows: Sequence[AutotuneChoice]) -> _Times:
    final = sort_final_times(rows)
    winner = next((row for row in reversed(rows) if row.is_winner and row.stage not in _ASIDE), None)
    winner_ms = next((row.time_ms for row in final if winner and row.choice == winner.choice), None)
    others = [row for row in final if winner is None or row.choice != winner.choice]
    return _Times(
        final=final,
        winner=winner,
        winner_ms=winner_ms,
        runner_up=others[0] if others and winner_ms is not None else None,
        extern_ms=next((row.time_ms for row in final if row.choice_kind == "extern"), None),
    )


def sort_final_times(rows: Iterable[AutotuneChoice]) -> list[AutotuneChoice]:
    """The rows whose times decided, the fastest first: of each choice the last."""
    timed = [row for row in rows if is_timed(row.time_ms) and row.stage not in _ASIDE]
    late = [row for row in timed if row.stage not in _EARLY]
    last = {row.choice: row for row in late or timed}
    return sorted(last.values(), key=lambda row: row.time_ms or 0.0)


def compute_margin(other_ms: float | None, winner_ms: float | None) -> float | None:
    """How much longer the other takes, as a share of the winner's time: 0.02 is 2 % longer."""
    return None if other_ms is None or not winner_ms else other_ms / winner_ms - 1


def count_calls_to_pay(spent_s: float | None, saved_ms: float | None) -> int | None:
    """Calls after which `saved_ms` per call has paid for `spent_s`; None if that is not known or never."""
    if spent_s is None or saved_ms is None or saved_ms <= 0:
        return None
    return math.ceil(spent_s * 1e3 / saved_ms)


def _map_failures(rows: Iterable[AutotuneChoice], final: Iterable[AutotuneChoice]) -> dict[str | None, str]:
    """Choice -> the first line of why it has no time, for those that never got one."""
    timed = {row.choice for row in final}
    return {
        row.choice: format_first_line(row.fail_reason)
        for row in rows
        if row.choice not in timed and row.fail_reason is not None
    }


def sum_stages(rows: Iterable[AutotuneChoice]) -> float | None:
    """Seconds that all stages of a run took to time choices; each row of a stage has the seconds of the whole stage."""
    stages = group_by((row for row in rows if row.stage != UNTIMED), lambda row: row.stage)
    spent = [_find_longest(row.benchmark_s for row in found) for found in stages.values()]
    known = [seconds for seconds in spent if seconds is not None]
    return sum(known) if known else None


def _find_longest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if is_timed(value)), default=None)
