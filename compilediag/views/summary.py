"""A session in words: its summary, what a notebook shows for it, a job's last line, the states of its sources."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ..diagnosis import Finding, diagnose, explain_gaps, find_gaps, fix_code
from ..diagnosis.evidence import Evidence
from ..diagnosis.finding import locate_finding
from ..diagnosis.plan import Plan, make_plan
from ..diagnosis.plan.plan import describe_plan
from ..diagnosis.registry import load_examples
from ..document import Block, Code, Items, Lines, Para, Section, Table, escape_unprintable, to_text
from ..events import SourceStatus
from ..formatting import format_amount, format_count, format_line, format_seconds, format_share
from ..storage.data import SessionData
from ..system import plugins
from .totals import TotalsDict, compute_totals

#: Findings that the summary lists, and characters of a reason or of a title in a notebook.
SHOWN, MAX_TITLE = 10, 400
#: The path of a session that `compilediag last` opens.
LAST = ""
#: What to call next, and what it gives.
_NEXT = (
    ("session.plan()", "what to change"),
    ("session.dashboard()", "the page"),
    ("session.recompiles", "a DataFrame"),
    ('session.report("report.html")', "one file to send"),
)


@dataclass(frozen=True)
class NextSteps:
    """What a summary names, in the words of the place where it is read: where the findings are that it leaves out, how
    an example is printed, and what to call next.
    """

    findings: str
    example: str
    more: str


IN_PYTHON = NextSteps(
    "session.findings()",
    "compilediag example",
    'session.dashboard(), session.compiles, session.recompiles, session.report("report.html")',
)
IN_NOTEBOOK = NextSteps(
    "session.findings()", "!compilediag example", "%compilewatch plan, %compilewatch explore, %compilewatch report PATH"
)


def suggest_commands(path: str | None) -> NextSteps:
    """What a terminal suggests for a session; `path` is as the user named it, LAST, or None if it is not kept."""
    if path is None:
        return NextSteps("the report", IN_PYTHON.example, "")
    commands = [format_command(name, path) for name in ("report", "plan")]
    return NextSteps(commands[0], IN_PYTHON.example, f"{commands[1]} --patch, {commands[0]}")


def format_command(name: str, path: str) -> str:
    """`compilediag plan run.cdiag`; `compilediag last plan` for LAST."""
    return f"compilediag {name} {shlex.quote(path)}" if path else f"compilediag last {name}"


@dataclass(frozen=True)
class SessionResults:
    """What the summary and the record of a session show.

    `findings` are those about the program: what was not collected is in `gaps`, with the reason. `missing` has the
    tables that are incomplete because of it.
    """

    totals: TotalsDict
    findings: list[Finding]
    plan: Plan
    gaps: dict[str, str]
    missing: Set[str]


def collect_results(data: SessionData) -> SessionResults:
    """The totals, findings and plan of a session."""
    with data.settled():
        totals, evidence = compute_totals(data), Evidence.of(data)
        plan = make_plan(evidence)
        findings = [finding for finding in diagnose(data) if finding.rule != "not_observed"]
        gaps = explain_gaps(evidence) | plugins.explain_failures()  # A plug-in that failed is known once it was asked.
        return SessionResults(totals, findings, plan, gaps, find_gaps(evidence))


def format_summary(data: SessionData, steps: NextSteps = IN_PYTHON) -> str:
    """The session as text, see `format_results`."""
    return format_results(collect_results(data), steps=steps)


def format_results(results: SessionResults, encoding: str | None = None, steps: NextSteps = IN_PYTHON) -> str:
    """The summary as text of at most 100 columns; only a single word that is longer exceeds that.

    `encoding` is the encoding that the text must be printable in, by default that of standard output. Characters
    that it lacks are escaped, so printing never fails.
    """
    return escape_unprintable(f"{to_text(describe_summary(results, steps))}\n", encoding)


def describe_summary(results: SessionResults, steps: NextSteps) -> Section:
    """The plan, if something recompiled, the totals, the findings with what to do, and what was not collected."""
    plan, findings = results.plan, results.findings
    rule = next((finding.rule for finding in findings if finding.rule in load_examples()), None)
    last = [f"A worked example: {steps.example} {rule}"] if rule else []
    last += [f"More: {steps.more}"] if steps.more else []
    return Section(
        *([describe_plan(plan)] if plan.recompiles else []),
        Section(*format_totals(results.totals, results.missing)),
        _list_findings(results, [_describe_finding(finding, plan) for finding in findings[:SHOWN]], steps.findings),
        Section(*describe_gaps(results.gaps)),
        Section(*last),
    )


def describe_session(data: SessionData) -> Section:
    """What a notebook shows for a session: its state, totals and findings, what the plan saves, what to call next."""
    results, state = collect_results(data), data.state
    plan = results.plan
    headline, *others = format_totals(results.totals, results.missing)
    findings = [[Para(format_line(f.title, MAX_TITLE)), *_point_to_step(f, plan)] for f in results.findings[:SHOWN]]
    calls = [part for call, what in _NEXT for part in (", ", Code(call), f" ({what})")]
    return Section(
        Para("compilediag session ", Code(data.path.name), f" ({state})"),
        *([Para(plan.headline, strong=True)] if plan.recompiles else []),
        *([str(plan.tried["text"])] if plan.tried else []),
        Lines(headline.removeprefix("compilediag: "), *others),
        _list_findings(results, findings, IN_PYTHON.findings),
        *describe_gaps(results.gaps),
        Para("Next: ", *calls[1:]),
    )


def _list_findings(results: SessionResults, items: Sequence[Sequence[Block]], others: str) -> Section:
    """The first findings and where the others are, or why there are none."""
    if not items:
        return Section(explain_no_findings(results))
    return Section(Items(items, "numbered", (" in ", Code(others)), len(results.findings) - len(items)))


def explain_no_findings(results: SessionResults) -> str:
    """Data that was not collected is not a clean bill of health, so the text keeps the two apart."""
    if "compiles" not in results.missing and not results.totals["compiles"]:
        return "Nothing was compiled during this watch."
    return "Nothing to fix in the collected data." if results.gaps else "Nothing to fix."


def _describe_finding(finding: Finding, plan: Plan) -> list[Block]:
    """A finding with what to do, unless the plan above says that."""
    found: list[Block] = [finding.title, *locate_finding(finding)]
    if step := _point_to_step(finding, plan):
        return [*found, *step]
    if plan.recompiles and plan.has_cost(finding):
        return [*found, "In the plan, where compile time goes."]
    code = fix_code(finding.fix)
    return [*found, finding.suggestion, *([f"As a setting: {code}"] if code else [])]


def _point_to_step(finding: Finding, plan: Plan) -> list[Block]:
    step = plan.find_step(finding)
    return [f"Step {step} of the plan."] if step else []


def describe_gaps(gaps: Mapping[str, str]) -> list[Block]:
    """What was not collected, one sentence per reason."""
    subjects: dict[str, list[str]] = {}
    for subject, reason in gaps.items():
        subjects.setdefault(reason, []).append(subject)
    sentences = (f"Not collected: {', '.join(names)}: {format_line(r, MAX_TITLE)}" for r, names in subjects.items())
    return [Items([[sentence] for sentence in sentences], "plain")]


# Totals


def format_headline(totals: Mapping[str, Any], missing: Set[str]) -> str:
    """Compiles and recompiles with their cost, in one line. Tables in `missing` are "not collected"."""
    parts = []
    for name, verb, seconds in (("compile", "took", "compile_s"), ("recompile", "cost", "lost_s")):
        count = totals[f"{name}s"]
        known = format_amount(count, name) + (f" {verb} {format_seconds(totals[seconds])}" if count else "")
        parts.append(f"{name}s not collected" if f"{name}s" in missing else known)
    return f"compilediag: {'; '.join(parts)}"


def format_totals(totals: TotalsDict, missing: Set[str]) -> list[str]:
    """The totals as two or three lines, which are not wrapped."""
    usual, rare = _list_usual(totals, missing), _list_rare(totals, missing)
    lines = (format_headline(totals, missing), "; ".join(usual), "; ".join(rare))
    return [line for line in lines if line]


def _list_usual(totals: TotalsDict, missing: Set[str]) -> Iterator[str]:
    """Cache lookups, graph breaks and the overhead: every program has them, if only as zeros."""
    hits, misses = totals["cache_hits"], totals["cache_misses"]
    if "compile_caches" in missing and not hits + misses:
        yield "cache lookups not collected"
    else:
        partly = "cache lookups partly collected: " if "compile_caches" in missing else ""
        saved = f" saved {format_seconds(totals['cache_saved_s'])}" if hits else ""
        yield f"{partly}{format_amount(hits, 'cache hit')}{saved}, {format_amount(misses, 'miss', 'misses')}"
    breaks = format_amount(totals["graph_breaks"], "graph break")
    limits = f", {format_amount(totals['limit_hits'], 'recompile limit')} reached" if totals["limit_hits"] else ""
    yield ("graph breaks not collected" if "graph_breaks" in missing else breaks) + limits
    share = f" ({format_share(totals['own_share'])})" if totals["own_share"] is not None else ""
    yield f"compilediag overhead {format_seconds(totals['own_s'])}{share}"


def _list_rare(totals: TotalsDict, missing: Set[str]) -> Iterator[str]:
    """What only some programs have; calls are left out unless an entry was called once, or a call fell back."""
    least = {table: "at least " if table in missing else "" for table in ("autotune", "cudagraphs", "refused_calls")}
    if totals["tuning_runs"]:
        failed = f", {format_amount(totals['tuning_failed'], 'choice')} failed" if totals["tuning_failed"] else ""
        runs = format_amount(totals["tuning_runs"], "autotuning run")
        yield f"{least['autotune']}{runs} took {format_seconds(totals['tuning_s'])}{failed}"
    graphs = {
        "captured": totals["graph_records"],
        "re-recorded": totals["graph_rerecords"],
        "skipped": totals["graph_skips"],
        "replayed": totals["graph_replays"],
    }
    if listed := ", ".join(f"{format_count(count)}x {action}" for action, count in graphs.items() if count):
        yield f"CUDA graphs: {least['cudagraphs']}{listed}"
    if totals["refused_calls"]:
        yield least["refused_calls"] + format_amount(totals["refused_calls"], "refused call")
    if once := totals["used_once"]:
        entries = format_amount(once, "entry was", "entries were")
        yield f"{entries} compiled and called once: {format_seconds(totals['used_once_s'])}"
    if eager := totals["eager_calls"]:
        yield f"{format_amount(eager, 'call')} fell back to eager: {format_seconds(totals['eager_s'])}"
    # Of a long run: the share of its time, and since when nothing compiles.
    if totals["wall_share"] is not None:
        yield f"compiling took {format_share(totals['wall_share'])} of {format_seconds(totals['wall_s'])}"
    last, end = totals["last_step"], totals["end_step"]
    if last is not None:
        yield f"nothing since step {last}" if end is not None and end > last else f"the last compile at step {last}"
    if totals["after_warmup"] is not None:
        yield f"{format_amount(totals['after_warmup'], 'incident')} after the warm-up"
    if totals["vllm_compiles"]:
        pieces = format_amount(totals["vllm_compiles"], "compile of a piece", "compiles of pieces")
        yield f"vLLM: {pieces} took {format_seconds(totals['vllm_s'])}"
    if totals["ranks"]:
        read = format_count(totals["ranks_read"] or 0)
        yield f"rows of {read} of {format_amount(totals['ranks'], 'rank')}; the others compiled the same"


# The last line of a job


def format_closing_line(
    data: SessionData, path: str | None, ending: str | None = None, keep: str = "--save run.cdiag keeps it"
) -> str:
    """`11 compiles, 4 recompiles, 2 min 46 s compiling; 3 changes save 1 min 20 s: compilediag plan run.cdiag`.

    `path`: the session as the user named it, LAST, or None if it is not kept. `ending`: how the job ended, if not by
    itself. `keep`: how to keep the session.
    """
    with data.settled():
        totals, missing, plan = compute_totals(data), find_gaps(data), make_plan(data)
        reasons = [state.reason for state in data.rows(SourceStatus) if state.reason_code == "lost" and state.reason]
    parts = [format_line(ending)] if ending else []
    counts = (format_amount(totals["compiles"], "compile"), format_amount(totals["recompiles"], "recompile"))
    compiled = f"{', '.join(counts)}, {format_seconds(totals['compile_s'])} compiling"
    known = compiled if totals["compiles"] else "nothing was compiled"
    parts.append("compiles were not collected" if "compiles" in missing else known)
    parts += [format_line(reason) for reason in reasons[:1]]
    saving = describe_saving(plan)
    if saving and path is not None:
        parts.append(f"{saving}: {format_command('plan', path)}")
    else:
        parts += [saving] if saving else []
        where = None if path is None else shlex.quote(path) if path else "compilediag last"
        parts.append(f"session: {where}" if where else f"the session was not kept ({keep})")
    return "compilediag: " + "; ".join(parts)


def describe_saving(plan: Plan) -> str:
    """`3 changes save 1 min 20 s`; "" for a plan without changes."""
    if not plan.steps:
        return ""
    changes, may = format_amount(len(plan.steps), "change"), "" if plan.is_certain else "may "
    ending = "s" if len(plan.steps) == 1 and not may else ""
    if plan.seconds_saved:
        return f"{changes} {may}save{ending} {format_seconds(plan.seconds_saved)}"
    return f"{changes} {may}remove{ending} {plan.recompiles_saved} of {format_amount(plan.recompiles, 'recompile')}"


# Sources


def format_status(sources: Sequence[dict[str, Any]]) -> str:
    """One line per row of `Session.status()`; a source that is not active has no number of events."""
    rows = []
    for source in sources:
        events, is_active = source["events"], source["status"] == "active"
        shown = format_count(events) if events is not None and (is_active or events) else ""
        name, status = (format_line(source[part] or "", 60) for part in ("name", "status"))
        rows.append((name, status, shown, format_line(source["reason"] or "", 200)))
    return to_text(Table(("source", "status", "events", "why"), rows, right=(2,)), width=None)
