"""Find tuning that was not worth its time, was repeated, or met choices that cannot run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ...decode.records.autotune_choices import INFINITE
from ...events import Rows
from ...formatting import format_amount, format_count, format_line, format_names, format_seconds, format_share
from ..evidence import find_shared_place, group_by, make_place_fields, sum_seconds
from ..finding import Finding, get_severity
from .autotune_runs import TuningRun, count_calls_to_pay, find_tuning_runs

#: Below this gain over the extern kernel tuning is hardly felt.
SMALL_GAIN = 0.05
#: Seconds of tuning that are too few to report.
CHEAP_S = 0.5
#: So many choices have to fail for one reason before it is reported.
MANY_FAILED = 3


def find_tuning_problems(data: Rows) -> list[Finding]:
    """Runs in which every choice failed, that gained little or were repeated, and choices that failed often."""
    runs = find_tuning_runs(data)
    measured = [run for run in runs if run.from_cache is None]
    return [
        *(_report_no_choice(run) for run in runs if run.choices and not run.timed and run.failed),
        *_find_small_gains(measured),
        *_find_repeated_runs(measured),
        *_find_failing_choices(runs),
    ]


def _find_small_gains(runs: list[TuningRun]) -> list[Finding]:
    """Runs of one op whose winner is the extern kernel, which runs without any tuning, or hardly faster."""
    groups = group_by((run for run in runs if _has_small_gain(run)), lambda run: (run.tuner, run.op))
    spent = [(group, sum_seconds(run.spent_s for run in group)) for group in groups.values()]
    return [_report_small_gain(group, seconds) for group, seconds in spent if seconds >= CHEAP_S]


def _has_small_gain(run: TuningRun) -> bool:
    """A choice that won for what was fused to it has its gain there; its own time does not show it."""
    is_fused = "fusion" in run.stages and run.winner_kind != "extern"
    return run.margin_extern is not None and run.margin_extern < SMALL_GAIN and not is_fused


def _report_small_gain(runs: list[TuningRun], spent: float) -> Finding:
    best = max(run.margin_extern or 0.0 for run in runs)
    has_extern_won = all(run.winner_kind == "extern" for run in runs)
    gain = "the extern kernel won" if has_extern_won else f"at most {format_share(best)} faster than the extern kernel"
    what = runs[0].label if len(runs) == 1 else f"{format_line(runs[0].op or 'an op', 60)} {len(runs)}x"
    return Finding(
        rule="tuning_small_gain",
        severity=get_severity(spent, 1, "medium"),
        title=f"tuning {what} took {format_seconds(spent)}: {gain}",
        seconds_lost=spent,
        evidence=_list_events(runs),
        suggestion=_advise_small_gain(runs, spent),
        count=len(runs),
        details=tuple(f"{run.label}: {format_share(run.margin_extern or 0.0)}" for run in runs[:64]),
        **find_shared_place(run.place for run in runs),
    )


def _advise_small_gain(runs: list[TuningRun], spent: float) -> str:
    calls = count_calls_to_pay(spent, sum(run.saved_ms or 0.0 for run in runs))
    pays = f"pays off after {format_count(calls)} calls of each" if calls else "never pays off"
    return (
        "Compile this part without max-autotune, or with backends that need no tuning: torch._inductor.config."
        f'max_autotune_gemm_backends = "ATEN". At these times, tuning {pays}. torch caches the results, so the next '
        "process does not tune again."
    )


def _find_repeated_runs(runs: list[TuningRun]) -> list[Finding]:
    groups = group_by(runs, _get_problem)
    return [_report_repeated(group) for group in groups.values() if len(group) > 1]


def _get_problem(run: TuningRun) -> tuple[object, ...]:
    """What runs of one process have in common if they tune the same problem, as far as is known."""
    what = (run.tuner, run.op, run.inputs or run.event_id, run.device)
    return (run.rank, run.pid, *what, run.choices, run.stages)


def _report_repeated(runs: list[TuningRun]) -> Finding:
    again = sum_seconds(run.spent_s for run in runs[1:])
    return Finding(
        rule="tuning_repeated",
        severity=get_severity(again, len(runs) - 1, "medium"),
        title=f"{runs[0].label} was tuned {len(runs)}x in one process: {format_seconds(again)} after the first time",
        seconds_lost=again,
        evidence=_list_events(runs),
        suggestion="Check that torch caches the results (torch._inductor.config.autotune_local_cache, and not "
        "force_disable_caches) and that the cache directory stays the same. The same inputs were timed again; "
        "differences in output layouts or epilogues are not visible here.",
        count=len(runs) - 1,
        **find_shared_place(run.place for run in runs),
    )


_NO_CHOICE = (
    'Let torch use its own kernels: torch._inductor.config.max_autotune_gemm_backends = "ATEN,TRITON". Without a '
    "kernel, the compile fails with NoValidChoicesError."
)
_NO_CONFIGURATION = "Add smaller configurations: none of this kernel's configurations runs on this device."


def _report_no_choice(run: TuningRun) -> Finding:
    why = run.fail_reasons[0][0] if run.fail_reasons else "no reason given"
    return Finding(
        rule="tuning_all_failed",
        severity="high",
        title=f"tuning {run.label}: all {format_amount(run.failed, 'choice', 'choices')} failed: {why}",
        seconds_lost=run.spent_s or 0.0,
        evidence=run.evidence,
        suggestion=_NO_CHOICE if run.tuner == "select_algorithm" else _NO_CONFIGURATION,
        details=tuple(f"{reason} ({count}x)" for reason, count in run.fail_reasons),
        **make_place_fields(run.place),
    )


def _find_failing_choices(runs: list[TuningRun]) -> list[Finding]:
    """Choices that failed for one reason, over all runs in which others succeeded; one finding per reason."""
    found: dict[str, list[tuple[TuningRun, int]]] = defaultdict(list)
    for run in runs:
        for reason, count in run.fail_reasons if run.timed else ():
            found[_classify(reason)].append((run, count))
    return [
        _report_failing(kind, failures)
        for kind, failures in found.items()
        if sum(count for _, count in failures) >= MANY_FAILED
    ]


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


def _classify(reason: str) -> str:
    return next((kind for kind in _KINDS if kind in reason), reason)


def _report_failing(kind: str, failures: list[tuple[TuningRun, int]]) -> Finding:
    runs = list({run.evidence: run for run, _ in failures}.values())
    failed = sum(count for _, count in failures)
    name, advice = _KINDS.get(kind, (kind, "torch dropped them and took other choices."))
    ops = list(dict.fromkeys(format_line(run.op or "an op", 40) for run in runs))
    return Finding(
        rule="choices_failed",
        severity="low",
        title=f"{failed} of {sum(run.choices for run in runs)} choices of {format_names(ops)} failed: {name}",
        seconds_lost=0.0,
        evidence=_list_events(runs),
        suggestion=advice,
        count=failed,
        details=tuple(dict.fromkeys(reason for run in runs for reason, _ in run.fail_reasons if kind in reason))[:64],
        **find_shared_place(run.place for run in runs),
    )


def _list_events(runs: Iterable[TuningRun]) -> tuple[int, ...]:
    return tuple(sorted(event_id for run in runs for event_id in run.evidence))
