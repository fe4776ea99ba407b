"""Tuning: which choice won, by how much, after how many calls that pays, and tuning that was not worth its time.

A run is all rows of the `autotune` table that share a `run_id` in one process.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ...decode.records.autotune_choices import INFINITE
from ...events import AutotuneChoice, Rows
from ...formatting import (
    format_amount,
    format_count,
    format_first_line,
    format_line,
    format_names,
    format_op,
    format_seconds,
    format_share,
)
from ..evidence import (
    Evidence,
    Place,
    find_first,
    find_shared_place,
    get_ids,
    group_by,
    is_timed,
    kept_of,
    sum_known,
    sum_seconds,
)
from ..finding import Finding
from ..rule import Rule, report

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

#: What all rows of a run have, if they have it.
_OF_RUN = ("run_id", "compile_id", "compile_key", "tuner", "function", "file", "line", "device", "from_cache")

#: rank, pid, and the run's id, or its event's number.
RunKey = tuple[int | None, int | None, str]


def _shown(kind: str, doc: str) -> Any:
    """A field that is a column of the page: how it is formatted there, and what it means."""
    return field(metadata={"kind": kind, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class TuningRun:
    """One tuning of one op. Seconds are s, times of one call are ms, a margin of 0.02 is 2 % longer; None is unknown.

    An extern kernel runs without tuning.
    """

    run_id: str | None
    event_id: int | None
    time_ns: int
    rank: int | None
    pid: int | None
    compile_id: str | None = _shown("text", "torch's id of the compile that started it")
    compile_key: str | None = _shown("text", "key of that compile")
    tuner: str | None = _shown("text", "select_algorithm, triton_heuristics or triton_autotune")
    function: str | None
    file: str | None
    line: int | None
    op: str | None = _shown("text", "what was tuned")
    inputs: tuple[str, ...] = _shown("list", "one text per input")
    device: str | None = _shown("text", "device of the timing")
    choices: int = _shown("int", "number of choices")
    timed: int = _shown("int", "choices that were timed")
    failed: int = _shown("int", "choices that failed")
    winner: str | None = _shown("text", "the choice that was selected")
    winner_kind: str | None = _shown("text", "kind of that choice")
    winner_ms: float | None = _shown("ms", "time of one call of the winner")
    next_choice: str | None = _shown("text", "the runner-up")
    next_ms: float | None = _shown("ms", "time of one call of the runner-up")
    extern_ms: float | None = _shown("ms", "time of one call of the best extern kernel")
    margin_next: float | None = _shown("share", "how much longer the runner-up takes, as a share of the winner's time")
    margin_extern: float | None = _shown(
        "share", "how much longer the best extern kernel takes, as a share of the winner's time"
    )
    saved_ms: float | None = _shown("ms", "time that one call of the winner saves compared with the best extern kernel")
    benchmark_s: float | None = _shown("s", "time of the benchmarks")
    precompile_s: float | None = _shown("s", "time of compiling the choices")
    spent_s: float | None = _shown("s", "time of benchmarks and compiling together")
    break_even: int | None = _shown("int", "calls after which the saving has paid for the tuning")
    from_cache: str | None = _shown("text", "memory, local or remote if the result came from a cache")
    fail_reasons: tuple[tuple[str, int], ...] = _shown("list", "why choices failed, the most frequent reason first")
    stages: tuple[str, ...]
    order: tuple[int, ...] = _shown("ids", "event ids of the compared times, the fastest first")
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


@kept_of(AutotuneChoice)
def find_tuning_runs(evidence: Evidence) -> list[TuningRun]:
    """The runs of a session, in the order of their events."""
    return [summarize_run(rows) for rows in group_by_run(evidence)]


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
    first, final = rows[0], sort_final_times(rows)
    winner = next((row for row in reversed(rows) if row.is_winner and row.stage not in _ASIDE), None)
    winner_ms = next((row.time_ms for row in final if winner and row.choice == winner.choice), None)
    others = [row for row in final if winner is None or row.choice != winner.choice]
    runner_up = others[0] if others and winner_ms is not None else None
    extern_ms = next((row.time_ms for row in final if row.choice_kind == "extern"), None)
    saved_ms = None if winner_ms is None or extern_ms is None else extern_ms - winner_ms
    stages = group_by((row for row in rows if row.stage != UNTIMED), lambda row: row.stage)
    # Each row of a stage has the seconds of the whole stage.
    benchmark_s = sum_known(_find_longest(row.benchmark_s for row in stage) for stage in stages.values())
    precompile_s = _find_longest(row.precompile_s for row in rows)
    spent = sum_known((benchmark_s, precompile_s))
    timed = {row.choice for row in final}
    # Choice -> the first line of why it has no time, for those that never got one.
    without = (row for row in rows if row.choice not in timed and row.fail_reason is not None)
    failed = {row.choice: format_first_line(row.fail_reason or "") for row in without}
    known: dict[str, Any] = {name: find_first(getattr(row, name) for row in rows) for name in _OF_RUN}
    return TuningRun(
        **known,
        event_id=first.event_id,
        time_ns=first.time_ns,
        rank=first.rank,
        pid=first.pid,
        op=format_op(find_first(row.op for row in rows)),
        inputs=tuple(find_first(row.inputs for row in rows) or ()),
        choices=len({row.choice for row in rows}),
        timed=len(timed),
        failed=len(failed),
        winner=winner.choice if winner else None,
        winner_kind=winner.choice_kind if winner else None,
        winner_ms=winner_ms,
        next_choice=runner_up.choice if runner_up else None,
        next_ms=runner_up.time_ms if runner_up else None,
        extern_ms=extern_ms,
        margin_next=compute_margin(runner_up.time_ms if runner_up else None, winner_ms),
        margin_extern=compute_margin(extern_ms, winner_ms),
        saved_ms=saved_ms,
        benchmark_s=benchmark_s,
        precompile_s=precompile_s,
        spent_s=spent,
        break_even=count_calls_to_pay(spent, saved_ms),
        fail_reasons=tuple(Counter(failed.values()).most_common()),
        stages=tuple(sorted({row.stage for row in rows if row.stage is not None})),
        order=get_ids(final),
        evidence=get_ids(rows),
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


def _find_longest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if is_timed(value)), default=None)


#: Below this gain over the extern kernel tuning is hardly felt.
MIN_GAIN = 0.05

SMALL_GAIN = Rule(
    "tuning_small_gain",
    title="tuning {what} took {spent}: {gain}",
    action="Compile this part without max-autotune, or with backends that need no tuning: torch._inductor.config."
    'max_autotune_gemm_backends = "ATEN".',
    why="At these times, tuning {pays}. torch caches the results, so the next process does not tune again.",
    ceiling="medium",
    is_counted=False,
    worth_s=0.5,
    docs="trouble",
    cost_kind="tuning",
    cause="{tunings} {end} torch's own kernel",
    headline="Tuning took {seconds} of {session} and {pays}",
)
TUNED_AGAIN = Rule(
    "tuning_repeated",
    title="{what} was tuned {times}x in one process: {spent} after the first time",
    action="Check that torch caches the results (torch._inductor.config.autotune_local_cache, and not "
    "force_disable_caches) and that the cache directory stays the same.",
    why="The same inputs were timed again; differences in output layouts or epilogues are not visible here.",
    ceiling="medium",
    docs="trouble",
    cost_kind="tuning",
    cause="the same inputs were tuned again",
    headline="Tuning the same again took {seconds} of {session}",
)
ALL_FAILED = Rule(
    "tuning_all_failed",
    title="tuning {what}: all {choices} failed: {reason}",
    action="{advice}",
    severity="high",
    docs="trouble",
)
CHOICES_FAILED = Rule(
    "choices_failed",
    title="{failed} of {choices} choices of {ops} failed: {reason}",
    action="{advice}",
    severity="low",
    worth_count=3,
    docs="trouble",
)
RULES = (SMALL_GAIN, TUNED_AGAIN, ALL_FAILED, CHOICES_FAILED)


@kept_of(AutotuneChoice)
def find_tuning_problems(evidence: Evidence) -> list[Finding]:
    """Runs in which every choice failed, that gained little or were repeated, and choices that failed often."""
    runs = find_tuning_runs(evidence)
    return [
        *(_report_no_choice(run) for run in runs if run.choices and not run.timed and run.failed),
        *map(_report_small_gain, group_small_gains(runs)),
        *_find_repeated(runs),
        *_find_failing_choices(runs),
    ]


def group_small_gains(runs: Iterable[TuningRun]) -> list[list[TuningRun]]:
    """The runs that gained little, each op's together, if they took long enough to be reported."""
    gained_little = (
        run
        for run in runs
        if run.from_cache is None
        and run.margin_extern is not None
        and run.margin_extern < MIN_GAIN
        # A choice that won for what was fused to it has its gain there; its own time does not show it.
        and not ("fusion" in run.stages and run.winner_kind != "extern")
    )
    groups = group_by(gained_little, lambda run: (run.tuner, run.op)).values()
    return [group for group in groups if sum_seconds(run.spent_s for run in group) >= SMALL_GAIN.worth_s]


def _report_small_gain(runs: list[TuningRun]) -> Finding:
    """Runs of one op whose winner is the extern kernel, which runs without any tuning, or hardly faster."""
    spent = sum_seconds(run.spent_s for run in runs)
    best = max(run.margin_extern or 0.0 for run in runs)
    has_extern_won = all(run.winner_kind == "extern" for run in runs)
    gain = "the extern kernel won" if has_extern_won else f"at most {format_share(best)} faster than the extern kernel"
    calls = count_calls_to_pay(spent, sum(run.saved_ms or 0.0 for run in runs))
    facts = {
        "what": runs[0].label if len(runs) == 1 else f"{format_line(runs[0].op or 'an op', 60)} {len(runs)}x",
        "spent": format_seconds(spent),
        "gain": gain,
        "pays": f"pays off after {format_count(calls)} calls of each" if calls else "never pays off",
    }
    details = tuple(f"{run.label}: {format_share(run.margin_extern or 0.0)}" for run in runs[:64])
    return _report(SMALL_GAIN, runs, facts, seconds_lost=spent, details=details)


def _report(rule: Rule, runs: Sequence[TuningRun], facts: Mapping[str, object], **fields: Any) -> Finding:
    """A finding on runs; its place is theirs if they have the same one."""
    evidence = tuple(sorted(event_id for run in runs for event_id in run.evidence))
    found = {"evidence": evidence, "count": len(runs), **find_shared_place(run.place for run in runs)}
    return report(rule, (), facts, **(found | fields))


def _find_repeated(runs: Iterable[TuningRun]) -> Iterator[Finding]:
    """Runs of one process that tune the same, as far as is known."""
    same = ("rank", "pid", "tuner", "op", "device", "choices", "stages")
    groups = group_by(
        (run for run in runs if run.from_cache is None),
        lambda run: (run.inputs or run.event_id, *(getattr(run, name) for name in same)),
    )
    for group in groups.values():
        if len(group) > 1:
            again = sum_seconds(run.spent_s for run in group[1:])
            facts = {"what": group[0].label, "times": len(group), "spent": format_seconds(again)}
            yield _report(TUNED_AGAIN, group, facts, seconds_lost=again, count=len(group) - 1)


_NO_CHOICE = (
    'Let torch use its own kernels: torch._inductor.config.max_autotune_gemm_backends = "ATEN,TRITON". Without a '
    "kernel, the compile fails with NoValidChoicesError."
)
_NO_CONFIGURATION = "Add smaller configurations: none of this kernel's configurations runs on this device."


def _report_no_choice(run: TuningRun) -> Finding:
    why = run.fail_reasons[0][0] if run.fail_reasons else "no reason given"
    facts = {
        "what": run.label,
        "choices": format_amount(run.failed, "choice", "choices"),
        "reason": why,
        "advice": _NO_CHOICE if run.tuner == "select_algorithm" else _NO_CONFIGURATION,
    }
    details = tuple(f"{reason} ({count}x)" for reason, count in run.fail_reasons)
    return _report(ALL_FAILED, [run], facts, seconds_lost=run.spent_s or 0.0, evidence=run.evidence, details=details)


#: Part of the tuner's reason -> what the failure is called, and what it means.
_KINDS = {
    "out of resource": (
        "they need more shared memory or registers than the device has",
        "There is nothing to do: torch compiled these choices, dropped them and took others. Their tile sizes do not "
        "fit on this device.",
    ),
    INFINITE: (
        "torch timed them as infinite",
        "There is nothing to do: torch took other choices. These could not be launched, or failed torch's size check.",
    ),
}


def _find_failing_choices(runs: Iterable[TuningRun]) -> Iterator[Finding]:
    """Choices that failed for one reason, over all runs in which others succeeded; one finding per reason."""
    found: dict[str, list[tuple[TuningRun, int]]] = defaultdict(list)
    for run in runs:
        for reason, count in run.fail_reasons if run.timed else ():
            kind = next((kind for kind in _KINDS if kind in reason), reason)
            found[kind].append((run, count))
    for kind, failures in found.items():
        failed = sum(count for _, count in failures)
        if failed < CHOICES_FAILED.worth_count:
            continue
        own = list({run.evidence: run for run, _ in failures}.values())
        name, advice = _KINDS.get(kind, (kind, "torch dropped them and took other choices."))
        facts = {
            "failed": failed,
            "choices": sum(run.choices for run in own),
            "ops": format_names(list(dict.fromkeys(format_line(run.op or "an op", 40) for run in own))),
            "reason": name,
            "advice": advice,
        }
        details = dict.fromkeys(reason for run in own for reason, _ in run.fail_reasons if kind in reason)
        yield _report(CHOICES_FAILED, own, facts, count=failed, details=tuple(details)[:64], is_expected=True)
