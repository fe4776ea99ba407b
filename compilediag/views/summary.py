"""The summary of a session as plain text: what compiled, what it cost, what to change first."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from .. import plugins
from ..diagnosis import Finding, diagnose, explain_gaps, find_causes, find_gaps, fix_code
from ..diagnosis.examples import load_examples
from ..diagnosis.plan import Plan, make_plan
from ..formatting import format_amount, format_count, format_line, format_place, format_seconds, format_share
from ..storage.data import SessionData
from .text_layout import escape_unprintable, wrap
from .totals import TotalsDict, compute_totals

#: Findings that the summary lists.
SHOWN = 10


@dataclass(frozen=True)
class SessionResults:
    """What the summary and the record of a session show.

    `gaps` maps what was not collected to the reason, `missing` has the tables that are incomplete because of it.
    """

    totals: TotalsDict
    findings: list[Finding]
    plan: Plan
    gaps: dict[str, str]
    missing: Set[str]


def collect_results(data: SessionData) -> SessionResults:
    """The totals, findings and plan of a session."""
    with data.settled():
        causes = find_causes(data)
        findings = diagnose(data, causes)
        gaps = explain_gaps(data) | plugins.explain_failures()  # A plug-in that failed is known once it was asked.
        return SessionResults(compute_totals(data), findings, make_plan(data, causes), gaps, find_gaps(data))


def format_summary(data: SessionData, encoding: str | None = None) -> str:
    """The session as text of at most 100 columns; only a single word that is longer exceeds that.

    `encoding` is the encoding that the text must be printable in, by default that of standard output. Characters
    that it lacks are escaped, so printing never fails.
    """
    return format_results(collect_results(data), encoding)


def format_results(results: SessionResults, encoding: str | None = None) -> str:
    """The summary of results; see `format_summary`."""
    text = render_summary(results.totals, results.findings, results.gaps, results.missing, results.plan)
    return escape_unprintable(text, encoding)


def render_summary(
    totals: TotalsDict, findings: list[Finding], gaps: dict[str, str], missing: Set[str], plan: Plan | None = None
) -> str:
    """The text of a session: its plan first, if it has one.

    `gaps` maps what was not collected to the reason, `missing` has the tables that are incomplete because of it.
    """
    shown = [finding for finding in findings if finding.rule != "not_observed"]
    above = plan if plan is not None and plan.recompiles else Plan()
    listed = _list_findings(shown, above, totals, missing, bool(gaps))
    first = [str(above), ""] if above.recompiles else []
    more = [*_point_to_example(shown), *wrap(_point_to_more(shown))]
    parts = [*first, *_format_header(totals, missing), "", *listed, *_list_gaps(gaps), "", *more]
    return "\n".join(parts) + "\n"


def format_headline(compiles: int, compile_s: float, recompiles: int, lost_s: float, missing: Set[str]) -> str:
    """Compiles and recompiles with their cost, in one line. Tables in `missing` are "not collected"."""
    first = format_amount(compiles, "compile") + (f" took {format_seconds(compile_s)}" if compiles else "")
    second = format_amount(recompiles, "recompile") + (f" cost {format_seconds(lost_s)}" if recompiles else "")
    parts = (
        "compiles not collected" if "compiles" in missing else first,
        "recompiles not collected" if "recompiles" in missing else second,
    )
    return f"compilediag: {'; '.join(parts)}"


def _format_header(totals: TotalsDict, missing: Set[str]) -> list[str]:
    return [part for line in format_totals(totals, missing) for part in wrap(line)]


def format_totals(totals: TotalsDict, missing: Set[str]) -> list[str]:
    """The totals as two or three lines, which are not wrapped."""
    usual = (_format_caches(totals, missing), _format_breaks(totals, missing), _format_overhead(totals))
    rare = (
        _format_tuning(totals, missing),
        _format_graphs(totals, missing),
        _format_refused(totals, missing),
        _format_calls(totals),
        _format_vllm(totals),
        _format_ranks(totals),
    )
    counts = (totals["compiles"], totals["compile_s"], totals["recompiles"], totals["lost_s"])
    lines = (format_headline(*counts, missing), "; ".join(usual), "; ".join(filter(None, rare)))
    return [line for line in lines if line]


def _format_caches(totals: TotalsDict, missing: Set[str]) -> str:
    seen = totals["cache_hits"] + totals["cache_misses"]
    if "compile_caches" in missing and not seen:
        return "cache lookups not collected"
    partly = "cache lookups partly collected: " if "compile_caches" in missing else ""
    saved = f" saved {format_seconds(totals['cache_saved_s'])}" if totals["cache_hits"] else ""
    hits, misses = totals["cache_hits"], totals["cache_misses"]
    return f"{partly}{format_amount(hits, 'cache hit')}{saved}, {format_amount(misses, 'miss', 'misses')}"


def _format_breaks(totals: TotalsDict, missing: Set[str]) -> str:
    breaks = format_amount(totals["graph_breaks"], "graph break")
    limits = f", {format_amount(totals['limit_hits'], 'recompile limit')} reached" if totals["limit_hits"] else ""
    return ("graph breaks not collected" if "graph_breaks" in missing else breaks) + limits


def _format_overhead(totals: TotalsDict) -> str:
    share = totals["own_share"]
    return f"compilediag overhead {format_seconds(totals['own_s'])}" + (
        f" ({format_share(share)})" if share is not None else ""
    )


def _format_tuning(totals: TotalsDict, missing: Set[str]) -> str:
    """Empty if nothing was tuned: most programs tune nothing."""
    if not totals["tuning_runs"]:
        return ""
    failed = f", {format_amount(totals['tuning_failed'], 'choice')} failed" if totals["tuning_failed"] else ""
    least = "at least " if "autotune" in missing else ""
    runs = format_amount(totals["tuning_runs"], "autotuning run")
    return f"{least}{runs} took {format_seconds(totals['tuning_s'])}{failed}"


def _format_graphs(totals: TotalsDict, missing: Set[str]) -> str:
    """Empty if no CUDA graph was captured or skipped."""
    counts = {
        "captured": totals["graph_records"],
        "re-recorded": totals["graph_rerecords"],
        "skipped": totals["graph_skips"],
        "replayed": totals["graph_replays"],
    }
    listed = ", ".join(f"{format_count(count)}x {action}" for action, count in counts.items() if count)
    least = "at least " if "cudagraphs" in missing else ""
    return f"CUDA graphs: {least}{listed}" if listed else ""


def _format_refused(totals: TotalsDict, missing: Set[str]) -> str:
    """Empty if torch refused no call: only stances and `aot_compile` do."""
    least = "at least " if "refused_calls" in missing else ""
    return least + format_amount(totals["refused_calls"], "refused call") if totals["refused_calls"] else ""


def _format_calls(totals: TotalsDict) -> str:
    """Empty if calls were not counted, or every entry was called again and no call fell back to eager."""
    parts = []
    if once := totals["used_once"]:
        entries = format_amount(once, "entry was", "entries were")
        parts.append(f"{entries} compiled and called once: {format_seconds(totals['used_once_s'])}")
    if eager := totals["eager_calls"]:
        parts.append(f"{format_amount(eager, 'call')} fell back to eager: {format_seconds(totals['eager_s'])}")
    return "; ".join(parts)


def _format_vllm(totals: TotalsDict) -> str:
    if not totals["vllm_compiles"]:
        return ""
    pieces = format_amount(totals["vllm_compiles"], "compile of a piece", "compiles of pieces")
    return f"vLLM: {pieces} took {format_seconds(totals['vllm_s'])}"


def _format_ranks(totals: TotalsDict) -> str:
    if not totals["ranks"]:
        return ""
    read = format_count(totals["ranks_read"] or 0)
    return f"rows of {read} of {format_amount(totals['ranks'], 'rank')}; the others compiled the same"


def _list_findings(
    findings: list[Finding], plan: Plan, totals: TotalsDict, missing: Set[str], has_gaps: bool
) -> list[str]:
    if not findings:
        return [explain_no_findings(totals, missing, has_gaps)]
    numbered = enumerate(findings[:SHOWN], 1)
    lines = [line for number, finding in numbered for line in _format_finding(number, finding, plan)]
    rest = len(findings) - SHOWN
    return [*lines, f"... and {rest} more in session.findings()"] if rest > 0 else lines


def explain_no_findings(totals: TotalsDict, missing: Set[str], has_gaps: bool) -> str:
    """Data that was not collected is not a clean bill of health, so the text keeps the two apart."""
    if "compiles" not in missing and not totals["compiles"]:
        return "Nothing was compiled during this watch."
    return "Nothing to fix in the collected data." if has_gaps else "Nothing to fix."


def _format_finding(number: int, finding: Finding, plan: Plan) -> list[str]:
    """A finding with what to do, unless the plan above says that."""
    title = wrap(finding.title, f"{number}. ", "   ") + _format_user_line(finding)
    if step := plan.find_step(finding):
        return [*title, f"   Step {step} of the plan."]
    if plan.has_cost(finding):
        return [*title, "   In the plan, where compile time goes."]
    lines = title + wrap(finding.suggestion, "   ", "   ")
    code = fix_code(finding.fix)
    return lines + wrap(f"To try it without editing code: {code}", "   ", "   ") if code else lines


def _format_user_line(finding: Finding) -> list[str]:
    """The user's line that made the guard, or that calls it. The title of a graph break already has the place."""
    call = format_place(finding.call_file, finding.call_line)
    if not finding.user_code:
        return [f"   called at {call}"] if call and finding.source is None and finding.user_line is None else []
    place = format_place(finding.user_file, finding.user_line)
    return wrap(
        f"at {place}: {format_line(finding.user_code)}" if place else format_line(finding.user_code), "   ", "   "
    )


def _list_gaps(gaps: dict[str, str]) -> list[str]:
    """What was not collected, one sentence per reason."""
    if not gaps:
        return []
    subjects: dict[str, list[str]] = {}
    for subject, reason in gaps.items():
        subjects.setdefault(reason, []).append(subject)
    sentences = (f"Not collected: {', '.join(names)}: {reason}" for reason, names in subjects.items())
    return ["", *(line for sentence in sentences for line in wrap(sentence, "", "  "))]


def _point_to_more(findings: list[Finding]) -> str:
    if not findings:
        return "More: session.dashboard(), session.compiles"
    return 'More: session.dashboard(), session.recompiles, session.report("report.html")'


def _point_to_example(findings: list[Finding]) -> list[str]:
    rule = next((finding.rule for finding in findings if finding.rule in load_examples()), None)
    return [f"A worked example: compilediag example {rule}"] if rule else []
