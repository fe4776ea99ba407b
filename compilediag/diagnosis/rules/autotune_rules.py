"""Tuning that was not worth its time, was done again, or met choices that can't run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from .. import wording
from ..finding import Finding, severity_of
from ..rows import place_of, seconds
from .autotune_runs import TuningRun, break_even, tuning_runs

#: Below this gain over the extern kernel tuning is hardly felt.
SMALL_GAIN = 0.05
#: Seconds of tuning that are too few to speak of.
CHEAP_S = 0.5
#: Choices that failed for one reason before that is told.
MANY_FAILED = 3


def tuning_findings(tables: Any) -> list[Finding]:
    runs = tuning_runs(tables)
    measured = [run for run in runs if run.from_cache is None]
    return [
        *(_nothing_works(run) for run in runs if run.choices and not run.timed and run.failed),
        *filter(None, (_small_gain(group) for group in _groups(measured, lambda r: (r.tuner, r.op)))),
        *filter(None, (_repeated(group) for group in _groups(measured, _same_problem))),
        *_failing(runs),
    ]


def _groups(runs: Iterable[TuningRun], key: Any) -> list[list[TuningRun]]:
    groups: dict[Any, list[TuningRun]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    return list(groups.values())


def _same_problem(run: TuningRun) -> tuple[Any, ...]:
    """Runs of one process that are alike in this had the same to find out, as far as it is known."""
    what = (run.tuner, run.op, run.inputs or run.event_id, run.device)
    return (run.rank, run.pid, *what, run.choices, run.stages)


def _small_gain(runs: list[TuningRun]) -> Finding | None:
    """Runs of one op whose winner is the extern kernel, or hardly better: that runs without any tuning."""
    small = [run for run in runs if _is_small(run)]
    spent = seconds(run.spent_s for run in small)
    if spent < CHEAP_S:
        return None
    extern = [run for run in small if run.winner_kind == "extern"]
    best = max(run.margin_extern or 0.0 for run in small)
    gain = "and the extern kernel won" if len(extern) == len(small) else f"for at most {_percent(best)} over extern"
    what = small[0].label if len(small) == 1 else f"{wording.one_line(small[0].op or 'an op', 60)} {len(small)}x"
    return Finding(
        rule="tuning_small_gain",
        severity=severity_of(spent, 1, "medium"),
        title=f"{wording.spent(spent)} tuning {what} {gain}",
        seconds_lost=spent,
        evidence=_ids(small),
        suggestion=_small_advice(small, spent),
        count=len(small),
        details=tuple(f"{run.label}: {_percent(run.margin_extern or 0.0)}" for run in small[:64]),
        **place_of(run.place for run in small),
    )


def _is_small(run: TuningRun) -> bool:
    """A choice that was taken for what was fused to it has its gain there, which its own time does not show."""
    is_fused = "fusion" in run.stages and run.winner_kind != "extern"
    return run.margin_extern is not None and run.margin_extern < SMALL_GAIN and not is_fused


def _small_advice(runs: list[TuningRun], spent: float) -> str:
    calls = break_even(spent, sum(run.saved_ms or 0.0 for run in runs))
    pays = f"By these times it pays after {calls:,} calls of each. " if calls else "By these times it never pays. "
    return (
        f"{pays}Answers are kept in torch's cache, so that the next process needn't tune again. To tune less: leave "
        "max-autotune out for what this op is part of, or name fewer back ends, torch._inductor.config."
        'max_autotune_gemm_backends = "ATEN" being those that need none.'
    )


def _repeated(runs: list[TuningRun]) -> Finding | None:
    if len(runs) < 2:
        return None
    again = seconds(run.spent_s for run in runs[1:])
    return Finding(
        rule="tuning_repeated",
        severity=severity_of(again, len(runs) - 1, "medium"),
        title=f"{runs[0].label} was tuned {len(runs)}x in one process, {wording.spent(again)} after the first time",
        seconds_lost=again,
        evidence=_ids(runs),
        suggestion="The same inputs were timed again where torch's cache of answers should have known them: look "
        "whether it is on (torch._inductor.config.autotune_local_cache, and not force_disable_caches), and whether the "
        "cache directory stays the same. Other choices, layouts of the output or epilogues are not told apart here.",
        count=len(runs) - 1,
        **place_of(run.place for run in runs),
    )


_NO_CHOICE = (
    "No kernel is left for it, and the compile fails with NoValidChoicesError. Let torch fall back on its own kernels: "
    'torch._inductor.config.max_autotune_gemm_backends = "ATEN,TRITON".'
)
_NO_CONFIGURATION = "No configuration of this kernel runs here: offer it smaller ones."


def _nothing_works(run: TuningRun) -> Finding:
    why = run.fail_reasons[0][0] if run.fail_reasons else "no reason was given"
    return Finding(
        rule="tuning_all_failed",
        severity="high",
        title=f"tuning {run.label}: all {wording.counted(run.failed, 'choice', 'choices')} failed: {why}",
        seconds_lost=run.spent_s or 0.0,
        evidence=run.evidence,
        suggestion=_NO_CHOICE if run.tuner == "select_algorithm" else _NO_CONFIGURATION,
        details=tuple(f"{reason} ({count}x)" for reason, count in run.fail_reasons),
        **place_of([run.place]),
    )


def _failing(runs: list[TuningRun]) -> list[Finding]:
    """Choices that failed for one reason, over all runs that others survived; one finding a reason."""
    met: dict[str, list[tuple[TuningRun, int]]] = defaultdict(list)
    for run in runs:
        for reason, count in run.fail_reasons if run.timed else ():
            met[_kind_of(reason)].append((run, count))
    return [_failing_choices(kind, found) for kind, found in met.items() if sum(n for _, n in found) >= MANY_FAILED]


#: What a reason has in it -> what the failure is called, and what it means.
_KINDS = {
    "out of resource": (
        "they need more shared memory or registers than the device has",
        "These tile sizes do not fit on this device. Such choices are dropped, at the price of compiling them; no harm "
        "is done to the result.",
    ),
    "timed as infinite": (
        "torch timed them as infinite",
        "They could not be launched, or torch's own check of their size refused them. Others were chosen.",
    ),
}


def _kind_of(reason: str) -> str:
    return next((kind for kind in _KINDS if kind in reason), reason)


def _failing_choices(kind: str, found: list[tuple[TuningRun, int]]) -> Finding:
    runs = list({run.evidence: run for run, _ in found}.values())
    failed = sum(count for _, count in found)
    told, advice = _KINDS.get(kind, (kind, "They were dropped, and others were chosen."))
    ops = list(dict.fromkeys(wording.one_line(run.op or "an op", 40) for run in runs))
    return Finding(
        rule="choices_failed",
        severity="low",
        title=f"{failed} of {sum(run.choices for run in runs)} choices of {wording.listed(ops)} failed: {told}",
        seconds_lost=0.0,
        evidence=_ids(runs),
        suggestion=advice,
        count=failed,
        details=tuple(dict.fromkeys(reason for run in runs for reason, _ in run.fail_reasons if kind in reason))[:64],
        **place_of(run.place for run in runs),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if 0 < share < 0.0995 else f"{100 * share:.0f} %"


def _ids(runs: Iterable[TuningRun]) -> tuple[int, ...]:
    return tuple(sorted(event_id for run in runs for event_id in run.evidence))
