"""The findings of a session as a document for other programs: `compilediag.findings/1`, see `docs/findings.md`."""

from __future__ import annotations

import bisect
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from ..decode.guards.path import format_expression
from ..diagnosis import Finding, diagnose, explain_gaps, find_gaps, map_collected
from ..diagnosis.change import CodeChange
from ..diagnosis.evidence import map_compile_keys
from ..diagnosis.finding import MAX_TITLE, describe_finding
from ..diagnosis.plan import Plan, PlanStep, make_plan
from ..diagnosis.plan.plan import list_changed_sources, make_patch
from ..diagnosis.registry import find_torch_page
from ..diagnosis.rules import graph_breaks
from ..document import WIDTH, Items, Section, to_text
from ..errors import CompilediagError
from ..events import Compile, Recompile, SourceStatus
from ..formatting import cut_text, escape_lines, format_amount, format_line
from ..json_document import JsonDocument, described
from ..storage.data import SessionData
from ..system.arguments import find_closest
from ..system.program import read_program
from .summary import collect_results, explain_no_findings, format_command
from .totals import compute_totals

#: Values and compile keys of a finding, and characters of an advice.
MAX_VALUES, MAX_KEYS, MAX_TEXT = 8, 20, 1_000
#: Tables without which nothing can be said about a program.
NEEDED = ("compiles", "recompiles", "graph_breaks")
#: Rules about what was not collected: that is in the facts of the session.
_GAPS = ("not_observed", "dropped")

Verdict = Literal["clean", "costs", "incomplete"]
Proof = Literal["predicted", "tried", "failed"]


@dataclass(frozen=True)
class SessionValues:
    """The session as a whole. What was not collected is null, and named in `not_collected`."""

    path: str = described("the session or logs, as commands name them")
    torch: str | None = described("version of torch")
    device: str | None = described("the GPU, or the processor")
    state: str = described("watching, stopped, lost or loaded")
    wall_s: float | None = described("seconds that the recording took")
    compile_s: float | None = described("seconds of all compiles")
    lost_s: float | None = described("seconds of the compiles that recompiles caused")
    compiles: int | None = described("number of compiles")
    recompiles: int | None = described("number of recompiles")
    after_warmup: int | None = described("incidents after the warm-up; null if no warm-up ended")
    not_collected: tuple[str, ...] = described("fields that are null here, and tables that are incomplete")


@dataclass(frozen=True)
class ProposedFix:
    """What to change."""

    kind: Literal["setting", "edit", "text"] = described(
        "setting: of torch's configuration; edit: of your source; text: only a person can follow it"
    )
    text: str = described("the code to paste; for kind text, what to do")
    diff: str | None = described("a unified diff; null if no program can apply it, or the file was changed since")
    unsafe: bool = described("it hides the cause, or can change what the program computes: the last one to try")


@dataclass(frozen=True)
class FindingValues:
    """One cause, reported once however often it happened."""

    fingerprint: str = described("names the cause: it is the same in other sessions")
    rule: str = described("what kind of finding it is: `compilediag example RULE` explains it")
    title: str = described("what it cost and what changed")
    file: str | None = described("file of the line to look at: your own, if it is known")
    line: int | None = described("that line")
    function: str | None = described("the compiled function")
    expression: str | None = described("what varies, in the names of that line if it has one there")
    values: tuple[str, ...] = described("what it was, in order of appearance; at most 8")
    count: int = described("how often it happened; 0 for what only happened together with other causes")
    first_step: int | None = described("the program's own step in which it happened first")
    seconds: float | None = described("seconds that a fix can save at most; null if nothing was timed")
    proof: Proof = described("predicted: no run has shown that the fix works; tried: one has; failed: it does not work")
    fix: ProposedFix | None = described("what to change; null if each compiled version is needed")
    evidence: tuple[str, ...] = described("compile keys, as in the tables of the session; at most 20")
    page: str | None = described("torch's page about it")


@dataclass(frozen=True)
class FindingsDocument(JsonDocument):
    """What cost compile time in a session, why, and what to change, most important first."""

    SCHEMA: ClassVar[str] = "compilediag.findings/1"

    verdict: Verdict = described(
        "costs: there is something to change; clean: there is nothing; incomplete: nothing was found, but the session "
        "lacks what that needs to mean anything"
    )
    incomplete: tuple[str, ...] = described("why the session is not complete; empty if it is")
    session: SessionValues = described("the session as a whole")
    findings: tuple[FindingValues, ...] = described("the findings, most important first")
    next: tuple[str, ...] = described("commands that go on from here")


def make_findings_document(
    data: SessionData,
    named: str | None = None,
    budget: int | None = None,
    after: str | None = None,
    only: str | None = None,
) -> FindingsDocument:
    """The document of a session.

    `named` is the session as commands name it. `budget` is the number of characters that the JSON may have: whole
    findings are left out, the least important first. `after` is the fingerprint of the finding before the first one,
    `only` that of the only one. CompilediagError if there is no such finding.
    """
    named = named or str(data.path)
    with data.settled():
        plan, gaps = make_plan(data), _explain_incomplete(data)
        every = list_program_findings(data)
        keys = map_compile_keys(data, {number for finding in every for number in finding.evidence})
        rows = [_describe(finding, plan, keys) for finding in every]
        can_improve = any(not finding.is_expected for finding in every)
        document = FindingsDocument(
            verdict="costs" if can_improve else "incomplete" if gaps else "clean",
            incomplete=tuple(gaps),
            session=describe_session_values(data, named),
            findings=tuple(_select(rows, after, only)),
            omitted={"findings": 0},
            next=tuple(_suggest(data, plan, every, named)),
        )
    return document if budget is None else _fit(document, budget, named)


def list_program_findings(data: SessionData) -> list[Finding]:
    """The findings about the program, without those about what was not collected."""
    return [finding for finding in diagnose(data) if finding.rule not in _GAPS]


def format_findings(data: SessionData, document: FindingsDocument) -> str:
    """The findings of a document as text, each with its fingerprint."""
    shown = {row.fingerprint for row in document.findings}
    found = [finding for finding in list_program_findings(data) if finding.fingerprint in shown]
    items = Items(
        [[*describe_finding(finding), f"fingerprint: {finding.fingerprint}"] for finding in found], "numbered"
    )
    left = document.omitted["findings"]
    blocks = [items] if found else [explain_no_findings(collect_results(data))]
    more = [f"{format_amount(left, 'more finding')}: {document.next[0]}"] if left else []
    gaps = [f"The session is not complete: {reason}." for reason in document.incomplete]
    return to_text(Section(*blocks, *more, *gaps))


def _select(rows: Sequence[FindingValues], after: str | None, only: str | None) -> Sequence[FindingValues]:
    numbers = {row.fingerprint: number for number, row in enumerate(rows)}
    for name in (after, only):
        if name is not None and name not in numbers:
            closest = find_closest(name, numbers)
            meant = f"did you mean {closest!r}?" if closest else f"there are {len(rows)} findings"
            raise CompilediagError(f"no finding has the fingerprint {name!r}; {meant}")
    if only is not None:
        return [rows[numbers[only]]]
    return rows if after is None else rows[numbers[after] + 1 :]


def _fit(document: FindingsDocument, budget: int, named: str) -> FindingsDocument:
    """The document with so many findings that its JSON has at most `budget` characters, and what to call for more."""
    count = len(document.findings)

    def cut(shown: int) -> FindingsDocument:
        if shown == count:
            return document
        found = document.findings[:shown]
        more = f"{format_command('findings', named)} --json"
        more += f" --after {found[-1].fingerprint}" if found else f" --budget {least}"
        return replace(document, findings=found, omitted={"findings": count - shown}, next=(more, *document.next))

    if len(document.to_json()) <= budget:
        return document
    # With so many characters, at least the first finding is shown.
    least = len(replace(document, findings=document.findings[:1]).to_json()) + 200
    fitting = bisect.bisect_right(range(count), budget, key=lambda shown: len(cut(shown).to_json()))
    return cut(max(0, fitting - 1))


# The session


def _explain_incomplete(data: SessionData) -> list[str]:
    """Why nothing can be concluded from an absence of findings; empty if it can."""
    collected, gaps, totals = map_collected(data.rows(SourceStatus)), explain_gaps(data), compute_totals(data)
    found = [
        f"{table.replace('_', ' ')} were not collected" + (f": {gaps[table]}" if table in gaps else "")
        for table in NEEDED
        if not collected[table]
    ]
    if not data.rows(Compile):
        found.append("nothing was compiled")
    if totals["dropped"]:
        found.append(f"{totals['dropped']} events or payloads were dropped")
    if data.state in ("watching", "lost"):
        found.append("the program still runs" if data.state == "watching" else "the session's file was lost")
    elif data.meta.get("created_ns") and not data.meta.get("stopped_ns"):
        found.append("the recording did not end by itself")
    return found


def describe_session_values(data: SessionData, named: str) -> SessionValues:
    """The session as a whole; `named` is the session as commands name it."""
    totals, collected = compute_totals(data), map_collected(data.rows(SourceStatus))
    compiles, recompiles = data.rows(Compile), data.rows(Recompile)
    has_compiles, has_recompiles = collected["compiles"], collected["recompiles"]
    known: dict[str, Any] = {
        "torch": data.meta.get("torch_version"),
        "device": data.meta.get("device"),
        "wall_s": _round(totals["wall_s"]),
        "compile_s": _round(totals["compile_s"]) if has_compiles and _is_timed(compiles, "duration_s") else None,
        "lost_s": _round(totals["lost_s"]) if has_recompiles and _is_timed(recompiles, "lost_s") else None,
        "compiles": totals["compiles"] if has_compiles else None,
        "recompiles": totals["recompiles"] if has_recompiles else None,
        "after_warmup": totals["after_warmup"],
    }
    missing = [name for name, value in known.items() if value is None]
    return SessionValues(
        path=named,
        state=data.state,
        not_collected=tuple(dict.fromkeys([*missing, *sorted(find_gaps(data))])),
        **known,
    )


def _is_timed(rows: Sequence[Any], column: str) -> bool:
    """True if there is nothing to time, or something was timed."""
    return not rows or any(getattr(row, column) is not None for row in rows)


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)


def _suggest(data: SessionData, plan: Plan, found: Sequence[Finding], named: str) -> Iterator[str]:
    """Commands: the whole change as a patch, and what finds a change that holds."""
    if plan.steps and plan.patch() is not None:
        yield f"{format_command('plan', named)} --patch"
    program = read_program(data.meta)
    breaks = {rule.id for rule in graph_breaks.RULES}
    if program is not None and (plan.recompiles or any(finding.rule in breaks for finding in found)):
        words = ["-m", program.module] if program.module else [program.script or ""]
        yield shlex.join(["compilediag", "fix", *words, *program.arguments])


# A finding


def _describe(finding: Finding, plan: Plan, keys: dict[int, str]) -> FindingValues:
    number = plan.find_step(finding)
    step = None if number is None else plan.steps[number - 1]
    # The line where the plan changes something, or the first one of the finding.
    file, line = (step.file, step.line) if step is not None and step.file else next(iter(finding.lines), (None, None))
    fix = None if finding.is_expected else _make_fix(finding, step, plan)
    is_proven = _is_proven(plan)
    proof: Proof = "predicted"
    if step is not None and (is_proven or plan.tried is not None):
        proof = "tried" if is_proven or (plan.tried or {}).get("holds") else "failed"
    expression = (step.expression if step is not None else None) or format_expression(finding.source or "")
    known = (keys[event] for event in finding.evidence if event in keys)
    page = find_torch_page(finding.rule)
    lost = max(finding.seconds_lost, finding.seconds_at_stake)
    return FindingValues(
        fingerprint=finding.fingerprint,
        rule=finding.rule,
        title=format_line(finding.title, MAX_TITLE),
        file=file,
        line=line,
        function=finding.function,
        expression=format_line(expression, MAX_TITLE) or None,
        values=tuple(format_line(value, WIDTH) for value in finding.details[:MAX_VALUES]),
        count=finding.count,
        first_step=min(finding.steps, default=None),
        seconds=_round(finding.seconds_recoverable) if lost else None,
        proof=proof,
        fix=fix,
        evidence=tuple(dict.fromkeys(known))[:MAX_KEYS],
        page=page.url if page is not None else None,
    )


def _is_proven(plan: Plan) -> bool:
    """True if a search has found a change that leaves no recompile: it is the fix of each of them."""
    searched = plan.searched or {}
    return bool(searched.get("holds") and searched.get("patch")) and searched.get("recompiles_after") == 0


def _make_fix(finding: Finding, step: PlanStep | None, plan: Plan) -> ProposedFix:
    """The change of the plan's step, or the first way to follow the advice."""
    if step is not None and _is_proven(plan):
        patch = str((plan.searched or {}).get("patch"))
        return ProposedFix("edit", "Apply the patch; runs have proven it.", patch, False)
    blocked = next((cause for cause in plan.unresolved if set(cause.evidence) & set(finding.evidence)), None)
    if step is None and blocked is not None:
        return ProposedFix("text", cut_text(escape_lines(blocked.reason), MAX_TEXT), None, False)
    first = finding.changes[0] if finding.changes else CodeChange(text=finding.suggestion)
    change = first if step is None else CodeChange(step.settings, step.edits, step.change)
    kind: Literal["setting", "edit", "text"] = "edit" if change.edits else "setting" if change.settings else "text"
    text = change.code if change.can_be_applied else finding.suggestion
    diff = None
    if step is not None and step.can_be_applied:
        diff = make_patch(list_changed_sources([step], step.settings or {}, plan.is_own))
    return ProposedFix(kind, cut_text(escape_lines(text), MAX_TEXT), diff, change.is_unsafe)
