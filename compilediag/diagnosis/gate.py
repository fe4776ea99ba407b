"""Limits that a session has to keep, for `compilediag check` and the pytest plugin: which are broken, and why.

Accepted causes are a text file for git, which a session is compared with. A cause is a finding on the program, named by
its fingerprint. What depends on caches, on the machine or on the recording is none: it differs between two runs of the
same program.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

from ..decode.guards.path import format_expression
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
    get_basename,
)
from . import diagnose
from .evidence import get_place, group_by, sum_seconds
from .finding import Finding
from .incidents import count_incidents, find_incidents, find_warmup_ends, list_cold_compiles
from .rules import autotune, break_even, caches, coverage, ranks
from .rules.break_even import make_eager_call_counter
from .rules.caches import is_loaded_code
from .rules.coverage import explain_gaps, map_collected
from .rules.cudagraphs import group_by_function

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
    ids = {row.event_id for row in rows}
    return [found for found in diagnose(data) if ids & {*found.evidence}]


def _check_seconds(data: Rows, limits: Limits) -> Iterator[Broken]:
    """All compiles, and the cold start of the process in which it took longest: processes start side by side."""
    by_process = group_by(list_cold_compiles(data), lambda row: (row.rank, row.pid))
    cold = max(by_process.values(), key=lambda rows: sum_seconds(row.duration_s for row in rows), default=[])
    whose = f" of rank {cold[0].rank}" if cold and cold[0].rank is not None and len(by_process) > 1 else ""
    for allowed, compiles, where in (
        (limits.max_compile_s, data.rows(Compile), ""),
        (limits.max_cold_seconds, cold, f" in the cold start{whose}"),
    ):
        total = sum_seconds(row.duration_s for row in compiles)
        if allowed is None or total <= allowed:
            continue
        functions = group_by(compiles, _format_function)
        sums = {name: sum_seconds(row.duration_s for row in rows) for name, rows in functions.items()}
        causes = [
            f"{name}: {format_seconds(sums[name])} in {format_amount(len(functions[name]), 'compile')}"
            for name in sorted(sums, key=lambda name: -sums[name])
        ]
        yield Broken(f"{format_seconds(total)} compiling{where}, at most {format_seconds(allowed)} allowed:", causes)


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
        causes = []
        for row in given_up:
            failure = format_first_line(row.fail_reason or "no reason was given", 100)
            reason = f"it hit {row.limit}" if row.limit else failure
            causes.append(": ".join(filter(None, (_format_function(row), reason, count_calls(get_place(row))))))
        title = f"{format_amount(len(given_up), 'compile')} failed, so the function falls back to eager:"
        yield Broken(title, list(dict.fromkeys(causes)), _find_causes(data, given_up))
    known = {get_place(row) for row in given_up}
    places = {get_place(row) for row in data.rows(Calls) if row.ran == "eager"} - known
    if places:
        causes = [f"{format_function(*place)}: {count_calls(place)}" for place in sorted(places, key=str)]
        who = format_amount(len(places), "function runs", "functions run")
        yield Broken(f"{who} eagerly since before this session began:", causes)


def _format_function(row: Compile) -> str:
    return format_function(*get_place(row))


def _check_cudagraph_coverage(data: Rows, limits: Limits) -> Iterator[Broken]:
    """Functions of whose calls too few were answered by a replay. Without counts the limit can't be checked."""
    least = limits.min_cudagraph_coverage
    if least is None or not map_collected(data.rows(SourceStatus))["cudagraphs"]:
        return
    if not data.rows(CudaGraphAction):
        yield Broken("no function uses CUDA graphs, so their coverage cannot be checked")
        return
    unknown, low = [], []
    for one in group_by_function(data):
        name = format_function(one.first.function, one.first.file, one.first.line)
        if one.coverage is None:
            unknown.append(name)
        elif one.coverage < least:
            calls = f" of {format_amount(one.calls, 'call')}" if one.calls else ""
            reason = f": {format_first_line(one.reason, 100)}" if one.reason else ""
            low.append(f"{name}: {format_share(one.coverage)}{calls}{reason}")
    if unknown:
        title = "replays were not counted, so the coverage of CUDA graphs cannot be checked; record with replays=True:"
        yield Broken(title, list(dict.fromkeys(unknown)))
    if low:
        head = f"CUDA graph replays answer too few calls of {format_amount(len(low), 'function')}"
        yield Broken(f"{head}, at least {format_share(least)} required:", low)


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
    _check_seconds,
    _check_graph_breaks,
    _check_after_warmup,
    _check_cudagraph_coverage,
    _check_silent_eager,
    _check_baseline,
)


# Accepted causes

FORMAT = "compilediag.baseline/1"
_HEAD = f"""\
# Causes that `compilediag check --baseline` accepts. With --update it writes this file again: reasons stay, causes that
# did not occur are removed. An entry without a count accepts its cause however often it occurs.
format = "{FORMAT}"
"""
_OF_ONE_RUN = {rule.id for rules in (autotune, break_even, caches, coverage) for rule in rules.RULES} | {ranks.CACHES}


@dataclass(frozen=True)
class AcceptedCause:
    """An entry: `function` and `cause` are for the reader, `reason` is the user's. `count` is how often the cause may
    occur, None any number of times.
    """

    fingerprint: str
    rule: str = ""
    function: str = ""
    cause: str = ""
    count: int | None = None
    reason: str = ""


#: Fingerprint -> what is accepted.
Baseline = Mapping[str, AcceptedCause]


@dataclass(frozen=True)
class Deviations:
    """How the causes of a session differ from a baseline; a cause of the session is all findings on it."""

    new: Sequence[Sequence[Finding]]
    worse: Sequence[tuple[AcceptedCause, Sequence[Finding]]]
    fixed: Sequence[AcceptedCause]


def group_causes(data: Rows) -> dict[str, list[Finding]]:
    """Fingerprint -> the findings of a session on that cause, the most expensive cause first."""
    findings = (finding for finding in diagnose(data) if finding.rule not in _OF_ONE_RUN)
    return group_by(findings, lambda finding: finding.fingerprint)


def count_occurrences(findings: Sequence[Finding]) -> int:
    """How often a cause occurred."""
    return sum(finding.count for finding in findings)


def compare_with_baseline(data: Rows, baseline: Baseline) -> Deviations:
    """Find the causes that a baseline does not have, those that occur more often than it accepts, and those that are
    gone.
    """
    causes = group_causes(data)
    again = [(cause, causes[name]) for name, cause in baseline.items() if name in causes]
    return Deviations(
        new=[findings for name, findings in causes.items() if name not in baseline],
        worse=[
            (cause, findings)
            for cause, findings in again
            if cause.count is not None and count_occurrences(findings) > cause.count
        ],
        fixed=[cause for name, cause in baseline.items() if name not in causes],
    )


def accept(data: Rows, earlier: Baseline | None = None) -> Baseline:
    """The baseline that accepts the causes of a session as often as they occurred, with the reasons of an earlier one.

    An entry of the earlier one without a count stays without.
    """
    made = {}
    for name, findings in group_causes(data).items():
        first, count = findings[0], count_occurrences(findings)
        # Without a line: an edit above it must not change the file in git.
        file = format_line(get_basename(first.user_file or first.file or "?"), 60)
        known = (earlier or {}).get(name, AcceptedCause(name, count=count))
        made[name] = replace(
            known,
            rule=first.rule,
            function=file if first.function is None else format_function(first.function, first.file, None),
            cause=_name_cause(first),
            count=None if known.count is None else count,
        )
    return made


def _name_cause(finding: Finding) -> str:
    """The guarded value and the kind of guard, or the line of code; no values, which may be secret or differ by run."""
    if finding.source is None:
        return format_line(finding.user_code or "", 100)
    kind = (finding.kind or "other").replace("_", " ")
    return f"{format_line(format_expression(finding.source), 100)} ({kind})"


def format_baseline(baseline: Baseline) -> str:
    """A baseline as text: TOML, one table per cause, in an order that does not depend on the run."""
    lines = [_HEAD]
    for cause in sorted(baseline.values(), key=lambda one: (one.function, one.rule, one.cause, one.fingerprint)):
        lines.append("[[accepted]]")
        for name, value in asdict(cause).items():
            if value is not None:
                # A string of TOML is one of JSON, except that it has DEL as an escape.
                text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
                lines.append(f"{name} = {text}")
        lines.append("")
    return "\n".join(lines)


def parse_baseline(text: str) -> Baseline:
    """Read a baseline. ValueError, with what is wrong in a few words, if the text is none."""
    values = tomllib.loads(text)
    if values.get("format") != FORMAT:
        raise ValueError(f"it has no line format = {json.dumps(FORMAT)}")
    unknown = [*(values.keys() - {"format", "accepted"})]
    entries = values.get("accepted", [])
    if unknown or not isinstance(entries, list):
        raise ValueError(f"unknown entry {unknown[0]!r}" if unknown else "accepted is not a list of tables")
    causes = [_read_cause(entry) for entry in entries]
    found = {cause.fingerprint: cause for cause in causes}
    if len(found) < len(causes):
        twice = next(one.fingerprint for one in causes if found[one.fingerprint] is not one)
        raise ValueError(f"{twice!r} is accepted twice")
    return found


def _read_cause(entry: object) -> AcceptedCause:
    values = entry if isinstance(entry, dict) else {}
    name, count = values.get("fingerprint"), values.get("count")
    if not isinstance(name, str):
        raise ValueError("an entry has no fingerprint")
    for key, value in values.items():
        if key not in AcceptedCause.__annotations__:
            raise ValueError(f"{name!r} has the unknown key {key!r}")
        if not isinstance(value, int if key == "count" else str):
            raise ValueError(f"{key} of {name!r} is {value!r}")
    if isinstance(count, bool) or (count is not None and count < 0):
        raise ValueError(f"count of {name!r} is {count!r}")
    return AcceptedCause(**values)
