"""Limits that a session has to keep, for `compilediag check` and the pytest plugin: which are broken, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..events import (
    CacheLookup,
    Calls,
    Compile,
    CudaGraphAction,
    Event,
    GraphBreak,
    Recompile,
    Rows,
    SourceStatus,
)
from ..formatting import (
    escape_lines,
    format_amount,
    format_first_line,
    format_function,
    format_line,
    format_names,
    format_place,
    format_seconds,
    format_share,
)
from . import diagnose
from .baseline import AcceptedCause, Baseline, compare_with_baseline, count_occurrences
from .evidence import get_place, group_by, sum_seconds
from .finding import Finding
from .incidents import count_incidents, find_incidents, find_warmup_ends, list_cold_compiles
from .rules.break_even import make_eager_call_counter
from .rules.caches import is_loaded_code
from .rules.coverage import explain_gaps, map_collected
from .rules.cudagraphs import GraphFunction, group_by_function

#: Causes that are listed for each broken limit.
SHOWN = 5


@dataclass(frozen=True)
class Limits:
    """What is allowed; None allows anything. `baseline`: the causes that are known and allowed."""

    max_recompiles: int | None = None
    max_compile_s: float | None = None
    max_cold_seconds: float | None = None
    max_graph_breaks: int | None = None
    max_after_warmup: int | None = None
    min_cudagraph_coverage: float | None = None
    no_silent_eager: bool = False
    baseline: Baseline | None = None


@dataclass(frozen=True)
class Broken:
    """A limit that was not kept: what was found, in a sentence, and why, in lines. `findings` are what the program has
    to change, where that is known.
    """

    title: str
    causes: list[str] = field(default_factory=list)
    findings: Sequence[Finding] = ()

    def __str__(self) -> str:
        return _format_list(self.title, self.causes)


def _format_list(title: str, items: Sequence[str]) -> str:
    hidden = len(items) - SHOWN
    rest = [f"... and {hidden} more"] if hidden > 0 else []
    return escape_lines("\n".join([title, *(f"  {item}" for item in [*items[:SHOWN], *rest])]))


def check(data: Rows, limits: Limits, must_compile: bool = True) -> list[Broken]:
    """Find the limits that a session breaks, none if it passes.

    A limit whose table was not collected does not pass, nor does, with `must_compile`, a session in which no compiled
    code was made or loaded.
    """
    if must_compile and not data.rows(Compile) and not any(map(is_loaded_code, data.rows(CacheLookup))):
        return [Broken("nothing was compiled, so the limits cannot be checked", _list_gaps(data))]
    return [broken for check_limit in _CHECKS for broken in check_limit(data, limits)]


def _list_gaps(data: Rows) -> list[str]:
    return [f"not collected: {what}: {why}" for what, why in explain_gaps(data).items()]


def explain_no_warmup(data: Rows, limits: Limits) -> str | None:
    """Why the limit on what compiles after the warm-up can't be checked; None if it can, or if there is none."""
    if limits.max_after_warmup is None:
        return None
    ended = {row.rank for row in find_warmup_ends(data)}
    late = sorted({row.rank for row in data.rows(Compile) if row.rank is not None} - ended)
    if ended and not late:
        return None
    whose = f" of rank {format_names([str(rank) for rank in late])}" if ended else ""
    return (
        f"the warm-up{whose} never ended, so what compiled after it can't be checked; call session.end_warmup(), or "
        "pass warmup_steps=N to watch() and call cd.step()"
    )


def _check_after_warmup(data: Rows, limits: Limits) -> Iterator[Broken]:
    if limits.max_after_warmup is None:
        return
    missing = explain_no_warmup(data, limits)
    if missing is not None:
        yield Broken(missing)
        return
    alone = [one for one in find_incidents(data) if one.part_of is None]
    count = count_incidents(alone)
    if count > limits.max_after_warmup:
        title = f"{format_amount(count, 'incident')} after the warm-up, at most {limits.max_after_warmup} allowed:"
        lacking = [f"\n    the warm-up lacks {one.inputs}" if one.inputs else "" for one in alone]
        yield Broken(title, [f"{format_line(one, 300)}{lacks}" for one, lacks in zip(alone, lacking, strict=True)])


def _check_coverage(data: Rows, limits: Limits) -> Iterator[Broken]:
    """The limits that cannot be checked because their table was not collected."""
    collected = map_collected(data.rows(SourceStatus))
    has_baseline = limits.baseline is not None
    after_warmup = limits.max_after_warmup is not None
    is_timed = limits.max_compile_s is not None or limits.max_cold_seconds is not None
    needed = {
        "recompiles": limits.max_recompiles is not None or has_baseline or after_warmup,
        "compiles": is_timed or limits.no_silent_eager or has_baseline or after_warmup,
        "graph_breaks": limits.max_graph_breaks is not None or has_baseline,
        "cudagraphs": limits.min_cudagraph_coverage is not None,
    }
    for table, is_needed in needed.items():
        if is_needed and not collected[table]:
            name = table.replace("_", " ")
            yield Broken(f"{name} were not collected, so their limit cannot be checked", _list_gaps(data))


def _check_recompiles(data: Rows, limits: Limits) -> Iterator[Broken]:
    rows = data.rows(Recompile)
    if limits.max_recompiles is not None and len(rows) > limits.max_recompiles:
        findings = _find_causes(data, rows)
        causes = [f"{found.title}\n    {found.suggestion}" for found in findings]
        title = f"{format_amount(len(rows), 'recompile')}, at most {limits.max_recompiles} allowed:"
        yield Broken(title, causes, findings)


def _find_causes(data: Rows, rows: Iterable[Event]) -> list[Finding]:
    """The findings on these events."""
    ids = {row.event_id for row in rows}
    return [found for found in diagnose(data) if ids & {*found.evidence}]


def _check_compile_seconds(data: Rows, limits: Limits) -> Iterator[Broken]:
    compiles = data.rows(Compile)
    total = sum_seconds(row.duration_s for row in compiles)
    if limits.max_compile_s is not None and total > limits.max_compile_s:
        allowed = format_seconds(limits.max_compile_s)
        yield Broken(f"{format_seconds(total)} compiling, at most {allowed} allowed:", _list_seconds(compiles))


def _check_cold_seconds(data: Rows, limits: Limits) -> Iterator[Broken]:
    """The process that compiled longest until its warm-up ended: processes start side by side."""
    if limits.max_cold_seconds is None:
        return
    by_process = group_by(list_cold_compiles(data), lambda row: (row.rank, row.pid))
    rows = max(by_process.values(), key=lambda rows: sum_seconds(row.duration_s for row in rows), default=[])
    total = sum_seconds(row.duration_s for row in rows)
    if total > limits.max_cold_seconds:
        whose = f" of rank {rows[0].rank}" if rows[0].rank is not None and len(by_process) > 1 else ""
        allowed = format_seconds(limits.max_cold_seconds)
        title = f"{format_seconds(total)} compiling in the cold start{whose}, at most {allowed} allowed:"
        yield Broken(title, _list_seconds(rows))


def _list_seconds(compiles: Iterable[Compile]) -> list[str]:
    """How long each function compiled, the longest first."""
    by_function = group_by(compiles, _format_function)
    sums = {name: sum_seconds(row.duration_s for row in rows) for name, rows in by_function.items()}
    return [
        f"{name}: {format_seconds(sums[name])} in {format_amount(len(by_function[name]), 'compile')}"
        for name in sorted(sums, key=lambda name: -sums[name])
    ]


def _check_graph_breaks(data: Rows, limits: Limits) -> Iterator[Broken]:
    rows = data.rows(GraphBreak)
    if limits.max_graph_breaks is not None and len(rows) > limits.max_graph_breaks:
        title = f"{format_amount(len(rows), 'graph break')}, at most {limits.max_graph_breaks} allowed:"
        causes = (
            f"{format_place(row.user_file, row.user_line) or 'unknown line'}: {format_line(row.user_code or '', 60)} "
            f"({format_line(row.reason or 'no reason', 100)})"
            for row in rows
        )
        yield Broken(title, list(dict.fromkeys(causes)), _find_causes(data, rows))


def _check_silent_eager(data: Rows, limits: Limits) -> Iterator[Broken]:
    """Functions that fall back to eager at some call, or did so before this session began."""
    if not limits.no_silent_eager:
        return
    count_calls = make_eager_call_counter(data)
    given_up = [row for row in data.rows(Compile) if row.outcome in ("failed", "skipped") or row.limit]
    if given_up:
        causes = (
            ": ".join(filter(None, (_format_function(row), _explain_eager(row), count_calls(get_place(row)))))
            for row in given_up
        )
        title = f"{format_amount(len(given_up), 'compile')} failed, so the function falls back to eager:"
        yield Broken(title, list(dict.fromkeys(causes)), _find_causes(data, given_up))
    known = {get_place(row) for row in given_up}
    places = {get_place(row) for row in data.rows(Calls) if row.ran == "eager"} - known
    if places:
        causes = (f"{format_function(*place)}: {count_calls(place)}" for place in sorted(places, key=str))
        who = format_amount(len(places), "function runs", "functions run")
        yield Broken(f"{who} eagerly since before this session began:", [*causes])


def _format_function(row: Compile) -> str:
    return format_function(*get_place(row))


def _explain_eager(row: Compile) -> str:
    return f"it hit {row.limit}" if row.limit else format_first_line(row.fail_reason or "no reason was given", 100)


def _check_cudagraph_coverage(data: Rows, limits: Limits) -> Iterator[Broken]:
    """Functions of whose calls too few were answered by a replay. Without counts the limit can't be checked."""
    least = limits.min_cudagraph_coverage
    if least is None or not map_collected(data.rows(SourceStatus))["cudagraphs"]:
        return
    if not data.rows(CudaGraphAction):
        yield Broken("no function uses CUDA graphs, so their coverage cannot be checked")
        return
    functions = group_by_function(data)
    if unknown := [_format_graph_function(one) for one in functions if one.coverage is None]:
        title = "replays were not counted, so the coverage of CUDA graphs cannot be checked; record with replays=True:"
        yield Broken(title, list(dict.fromkeys(unknown)))
    low = [one for one in functions if one.coverage is not None and one.coverage < least]
    if low:
        head = f"CUDA graph replays answer too few calls of {format_amount(len(low), 'function')}"
        yield Broken(f"{head}, at least {format_share(least)} required:", list(map(_describe_coverage, low)))


def _format_graph_function(function: GraphFunction) -> str:
    row = function.first
    return format_function(row.function, row.file, row.line)


def _describe_coverage(function: GraphFunction) -> str:
    calls = f" of {format_amount(function.calls, 'call')}" if function.calls else ""
    reason = f": {format_first_line(function.reason, 100)}" if function.reason else ""
    return f"{_format_graph_function(function)}: {format_share(function.coverage)}{calls}{reason}"


def _check_baseline(data: Rows, limits: Limits) -> Iterator[Broken]:
    if limits.baseline is None:
        return
    found = compare_with_baseline(data, limits.baseline)
    if found.new:
        causes = [_describe_cause(findings) for findings in found.new]
        yield Broken(
            f"{format_amount(len(causes), 'cause')} not in the baseline:",
            causes,
            [one for findings in found.new for one in findings],
        )
    if found.worse:
        causes = [
            f"{_describe_cause(findings)}\n    {cause.count} accepted, {count_occurrences(findings)} found"
            for cause, findings in found.worse
        ]
        amount = format_amount(len(causes), "cause occurs", "causes occur")
        worse = [one for _, findings in found.worse for one in findings]
        yield Broken(f"{amount} more often than the baseline accepts:", causes, worse)


def _describe_cause(findings: Sequence[Finding]) -> str:
    return f"{findings[0].fingerprint}: {findings[0].title}\n    {findings[0].suggestion}"


def find_fixed(data: Rows, limits: Limits) -> Sequence[AcceptedCause]:
    """The accepted causes that are gone. They break no limit."""
    if not limits.baseline or not data.rows(Compile) or any(_check_coverage(data, limits)):
        return ()
    return compare_with_baseline(data, limits.baseline).fixed


def format_fixed(fixed: Sequence[AcceptedCause]) -> str | None:
    """The accepted causes that are gone, as text; None if there are none."""
    names = [" ".join(filter(None, (f"{one.fingerprint}:", one.rule, one.function, one.cause))) for one in fixed]
    return (
        _format_list(f"{format_amount(len(fixed), 'cause')} of the baseline did not occur:", names) if fixed else None
    )


_CHECKS: tuple[Callable[[Rows, Limits], Iterable[Broken]], ...] = (
    _check_coverage,
    _check_recompiles,
    _check_compile_seconds,
    _check_cold_seconds,
    _check_graph_breaks,
    _check_after_warmup,
    _check_cudagraph_coverage,
    _check_silent_eager,
    _check_baseline,
)
