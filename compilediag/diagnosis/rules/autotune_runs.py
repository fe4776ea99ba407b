"""Runs of the tuners: which choice won, by how much, what it cost to find out, and after how many calls that pays.

A run is all rows of the `autotune` table that share a `run_id` in one process.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from .. import wording
from ..rows import Place, Row, first, ids, is_timed, rows_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    "run_id",
    "tuner",
    "stage",
    "function",
    "file",
    "line",
    "op",
    "inputs",
    "choice",
    "choice_kind",
    "time_ms",
    "is_winner",
    "fail_reason",
    "device",
    "benchmark_s",
    "precompile_s",
    "from_cache",
)
#: A choice of an earlier stage is timed again if it gets into a later one: only the later time counts.
_EARLY = ("prescreen", "precompile")
#: Times of something else than the op alone (with what was fused to it), or that decided nothing.
_ASIDE = ("fusion", "profile")
#: A stage that takes what is known and times nothing.
UNTIMED = "cached"
#: What is said of an input beside its type and sizes.
_DETAILS = re.compile(r" strides \[[^\]]*\]| (?:cpu|cuda|xpu|mps)(?::\d+)?\b")


@dataclass(frozen=True)
class TuningRun:
    """One tuning of one op. Seconds are s, times of one call are ms; None is what is not known.

    `margin_next`, `margin_extern`: how much longer the next best choice, and the best extern kernel, take than the
    winner (0.02: 2 % longer). `saved_ms`: what a call of the winner saves against the extern kernel, which would run
    if nothing was tuned. `break_even`: calls after which that has paid for the tuning. `order`: the events of the
    times that were compared, the fastest first.
    """

    run_id: str | None
    event_id: int | None
    time: Any
    rank: int | None
    pid: int | None
    compile_id: str | None
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
        return self.function, self.file, self.line

    @property
    def label(self) -> str:
        """`mm [float32[64, 64], float32[64, 64]]`: what was tuned, as far as it is known."""
        shown = ", ".join(wording.one_line(_DETAILS.sub("", text), 60) for text in self.inputs[:4])
        more = ", ..." if len(self.inputs) > 4 else ""
        return f"{wording.one_line(self.op or 'an op', 80)}{f' [{shown}{more}]' if shown else ''}"


def tuning_runs(tables: Any) -> list[TuningRun]:
    """The runs of a session, in order of time."""
    return [run_of(rows) for rows in rows_by_run(tables)]


def rows_by_run(tables: Any, *more: str) -> list[list[Row]]:
    """The rows of each run, with `more` columns than `COLUMNS`, in order of time."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows_of(tables, "autotune", (*COLUMNS, *more)):
        groups.setdefault(run_key(row), []).append(row)
    return list(groups.values())


def runs_frame(tables: Any) -> pd.DataFrame:
    """One row a run, with the fields of `TuningRun` as columns; missing numbers are NA."""
    import pandas as pd

    runs = [asdict(run) | {"label": run.label} for run in tuning_runs(tables)]
    frame = pd.DataFrame(runs, columns=[*TuningRun.__dataclass_fields__, "label"])
    numbers = {name: "float64" for name, f in TuningRun.__dataclass_fields__.items() if "float" in str(f.type)}
    return frame.astype({**numbers, "break_even": "Int64"})


def run_key(row: Row) -> tuple[Any, ...]:
    """What tells runs apart; a choice without a run is a run of its own."""
    return row["rank"], row["pid"], row["run_id"] or f"event {row['event_id']}"


def run_of(rows: Sequence[Row]) -> TuningRun:
    """The run that these rows are all of; `inputs` may be missing."""
    final = final_times(rows)
    winner = next((row for row in reversed(rows) if row["is_winner"] and row["stage"] not in _ASIDE), None)
    winner_ms = next((row["time_ms"] for row in final if winner and row["choice"] == winner["choice"]), None)
    others = [row for row in final if winner is None or row["choice"] != winner["choice"]]
    nearest = min(others, key=lambda row: row["time_ms"], default=None) if winner_ms is not None else None
    extern_ms = min((row["time_ms"] for row in final if row["choice_kind"] == "extern"), default=None)
    parts = [stage_seconds(rows, "benchmark_s"), _largest(row["precompile_s"] for row in rows)]
    spent = None if parts == [None, None] else sum(part or 0.0 for part in parts)
    saved = None if winner_ms is None or extern_ms is None else extern_ms - winner_ms
    failed = _failed(rows, final)
    return TuningRun(
        run_id=first(rows, "run_id"),
        event_id=rows[0]["event_id"],
        time=rows[0]["time"],
        **{n: first(rows, n) for n in ("rank", "pid", "compile_id", "tuner", "function", "file", "line", "op")},
        inputs=tuple(first(rows, "inputs") or ()),
        device=first(rows, "device"),
        choices=len({row["choice"] for row in rows}),
        timed=len({row["choice"] for row in final}),
        failed=len(failed),
        winner=winner and winner["choice"],
        winner_kind=winner and winner["choice_kind"],
        winner_ms=winner_ms,
        next_choice=nearest and nearest["choice"],
        next_ms=nearest and nearest["time_ms"],
        extern_ms=extern_ms,
        margin_next=margin(nearest["time_ms"] if nearest else None, winner_ms),
        margin_extern=margin(extern_ms, winner_ms),
        saved_ms=saved,
        benchmark_s=parts[0],
        precompile_s=parts[1],
        spent_s=spent,
        break_even=break_even(spent, saved),
        from_cache=first(rows, "from_cache"),
        fail_reasons=tuple(Counter(failed.values()).most_common()),
        stages=tuple(sorted({row["stage"] for row in rows if row["stage"] is not None})),
        order=ids(final),
        evidence=ids(rows),
    )


def final_times(rows: Iterable[Row]) -> list[Row]:
    """The rows whose times decided, the fastest first: of each choice the last."""
    timed = [row for row in rows if is_timed(row["time_ms"]) and row["stage"] not in _ASIDE]
    late = [row for row in timed if row["stage"] not in _EARLY]
    last = {row["choice"]: row for row in late or timed}
    return sorted(last.values(), key=lambda row: row["time_ms"])


def margin(other_ms: float | None, winner_ms: float | None) -> float | None:
    """How much longer the other takes, as a part of the winner's time: 0.02 is 2 % longer."""
    return None if other_ms is None or not winner_ms else other_ms / winner_ms - 1


def break_even(spent_s: float | None, saved_ms: float | None) -> int | None:
    """Calls after which `saved_ms` a call has paid for `spent_s`; None if that is not known or never."""
    if spent_s is None or saved_ms is None or saved_ms <= 0:
        return None
    return math.ceil(spent_s * 1e3 / saved_ms)


def _failed(rows: Iterable[Row], final: Iterable[Row]) -> dict[Any, str]:
    """Choice -> the first line of why it has no time, for those that never got one."""
    timed = {row["choice"] for row in final}
    untimed = [row for row in rows if row["choice"] not in timed and row["fail_reason"] is not None]
    return {row["choice"]: wording.first_line(row["fail_reason"]) for row in untimed}


def stage_seconds(rows: Iterable[Row], name: str) -> float | None:
    """The seconds of all stages of a run; each row of a stage says what the whole stage took."""
    stages: dict[Any, list[Any]] = {}
    for row in rows:
        if row["stage"] != UNTIMED:
            stages.setdefault(row["stage"], []).append(row[name])
    spent = [s for s in map(_largest, stages.values()) if s is not None]
    return sum(spent) if spent else None


def _largest(values: Iterable[Any]) -> float | None:
    return max((value for value in values if is_timed(value)), default=None)
