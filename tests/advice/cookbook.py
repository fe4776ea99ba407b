"""The pages of docs/cookbook and the examples that the package shows: per rule a program, what compilediag prints
for it, and the program with the change."""

from __future__ import annotations

import difflib
import json
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from compilediag.diagnosis import Rule
from compilediag.diagnosis.registry import RULES_BY_SUBJECT

from .judgements import Change, Finding, follow_change, list_changes, write_changed
from .known_programs import NOT_RUN, KnownCause, Program, Way, load_failures
from .rules import NOT_HERE, list_rules
from .runs import run_original

REPOSITORY = "https://github.com/"
#: Columns of what compilediag prints.
WIDTH = 110

INDEX = """# Cookbook

What compilediag says about each cause, by rule. The page of a rule has a small program, what compilediag prints, and
the program with the change; `compilediag example RULE` prints it. In the texts below, `x` is your value, and "..." is
what depends on your program.

The test suite follows every piece of advice in these programs. It checks that the recompiles are gone, that results and
gradients are the same, that the work still runs in compiled code, and that no graph break is new: [all
programs](programs.md) has the outcome. Times are shown as if each compile took one second.
"""
#: What texts name of a program, in general.
FACTS = {"name": "x", "container": "x", "tensor": "x", "dynamic": 'torch.compiler.config.dynamic_sources = "..."'}
_FACT = re.compile(r"\{(\w+)\}")

PROGRAMS = """# Programs with known causes

Causes and ways to fix them were written down before compilediag saw a program. "cause": each cause is one finding.
"advice": every change that is printed works, and every text says what one of the ways does. "plan": the plan, followed,
leaves as many recompiles as it claims. The last column has the recompiles without and with the ways that were written
down.

| program | causes | found | cause | advice | plan | recompiles |
|---|---|---|---|---|---|---|
"""


def write_pages(programs: Sequence[Program]) -> dict[str, str]:
    """The text of each page by its file name."""
    examples = choose_examples(programs)
    pages = {f"{rule}.md": _write_page(rule, found) for rule, found in examples.items()}
    table = PROGRAMS + "\n".join(map(_write_row, programs)) + "\n\n" + _summarize(programs) + "\n"
    return {"index.md": _write_index(examples), "programs.md": table, **pages}


def _write_index(examples: dict[str, list[Program]]) -> str:
    parts = [INDEX]
    for title, rules in RULES_BY_SUBJECT.items():
        rows = [_write_rule(rule, examples.get(rule.id, [])) for rule in rules]
        parts.append(
            "\n".join([f"## {title}\n", "| rule | what you notice | what compilediag says |", "|---|---|---|", *rows])
        )
    return "\n\n".join(parts).replace("\n\n\n", "\n\n") + "\n"


def _write_rule(rule: Rule, programs: Sequence[Program]) -> str:
    """The row of a rule; one without a program has no page, and the reason."""
    name = f"[{rule.id}]({rule.id}.md)" if programs else rule.id
    notice = programs[0].symptom if programs else f"No small program shows it: {NOT_HERE[rule.id]}."
    texts = dict.fromkeys(text for case in (rule, *rule.cases) if (text := _choose_text(case.action)))
    says = "<br>".join([*([f"*{_fill(rule.title)}*"] if rule.title else []), *texts])
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in (name, notice, says))} |"


def _choose_text(action: str | tuple[str, ...]) -> str:
    """The first text of an action that says something without the facts of a program."""
    texts = [action] if isinstance(action, str) else [*action]
    return next((filled for text in texts if (filled := _fill(text)).strip(". ")), "")


def _fill(text: str) -> str:
    """The text in general, as Markdown."""
    general = _FACT.sub(lambda found: FACTS.get(found[1], "..."), text).strip()
    return re.sub(r"([*_<>])", r"\\\1", general)


def _write_row(program: Program) -> str:
    known = ", ".join(cause.rule for cause in program.causes)
    found = ", ".join(finding["rule"] for finding in run_original(program)["findings"])
    works = [_describe_outcome(program, check) for check in ("causes", "advice", "plan")]
    return f"| {' | '.join([program.name, known, found, *works])} | {program.recompiles} -> {program.after} |"


def _describe_outcome(program: Program, check: str) -> str:
    """yes, no, or open where the check has not run since the advice changed."""
    reason = load_failures().get(check, {}).get(program.name)
    return "yes" if reason is None else "open" if reason == NOT_RUN else "no"


def _summarize(programs: Sequence[Program]) -> str:
    def count(check: str) -> str:
        outcomes = [_describe_outcome(program, check) for program in programs]
        return f"{outcomes.count('yes')} of {len(programs) - outcomes.count('open')}"

    return (
        f"Right causes {count('causes')}, working advice {count('advice')}, working plan {count('plan')}. "
        f"{sum(bool(program.threads) for program in programs)} of {len(programs)} programs follow users' threads; in "
        f"{sum(program.same_calls for program in programs)}, several causes fail at the same calls."
    )


def choose_examples(programs: Iterable[Program]) -> dict[str, list[Program]]:
    """Rule -> the programs of this rule, that with the page first: advice that works, one cause, a short source."""
    known = sorted(programs, key=_rate)
    found = {rule: [program for program in known if rule in _list_rules(program)] for rule in sorted(list_rules())}
    return {rule: examples for rule, examples in found.items() if examples}


def _list_rules(program: Program) -> set[str]:
    return {*program.beside, *(cause.rule for cause in program.causes)}


def _rate(program: Program) -> tuple[int, int, int, str]:
    failures = sum(program.name in load_failures().get(check, {}) for check in ("causes", "advice"))
    return failures, len(program.causes) + len(program.beside), len(program.source), program.name


def make_example(rule: str, program: Program) -> dict[str, Any]:
    """The example of a rule, as `compilediag.diagnosis.examples` reads it."""
    cause = next((cause for cause in program.causes if cause.rule == rule), program.causes[0])
    return {
        "symptom": program.symptom,
        "program": program.source.rstrip(),
        "printed": "\n".join(_list_printed(rule, program)),
        "changes": _list_changes(rule, program, cause),
    }


def write_examples(programs: Sequence[Program]) -> str:
    """The text of compilediag/diagnosis/examples.json: rule -> its example."""
    examples = {rule: make_example(rule, found[0]) for rule, found in choose_examples(programs).items()}
    return json.dumps(examples, indent=1, ensure_ascii=False) + "\n"


def _write_page(rule: str, examples: list[Program]) -> str:
    program, *others = examples
    example = make_example(rule, program)
    parts = [f"# {rule}", example["symptom"], _fence("python", example["program"]), "compilediag prints:"]
    parts += [_fence("text", example["printed"])]
    for change in example["changes"]:
        parts += [change["outcome"], *([_fence("diff", change["diff"])] if change["diff"] else [])]
    if program.threads:
        parts += [f"Seen by users in {_link_threads(program.threads)}."]
    if others:
        parts += ["## More programs", "\n".join(map(_describe_other, others))]
    return "\n\n".join(parts) + "\n"


def _fence(language: str, text: str) -> str:
    return f"```{language}\n{text}\n```"


def _list_printed(rule: str, program: Program) -> list[str]:
    """The title and the suggestion of each finding of the rule."""
    findings = [finding for finding in run_original(program)["findings"] if finding["rule"] == rule]
    return [line for finding in findings for line in _format_finding(finding)] or ["nothing"]


def _format_finding(finding: dict[str, Any]) -> list[str]:
    suggestion = textwrap.wrap(finding["suggestion"], WIDTH, initial_indent="    ", subsequent_indent="    ")
    return [*textwrap.wrap(finding["title"], WIDTH), *suggestion]


def _list_changes(rule: str, program: Program, cause: KnownCause) -> list[dict[str, str]]:
    """What compilediag prints, followed, as differences to the program; and edits that were written down, unless it
    prints an edit itself.
    """
    printed = _list_printed_changes(rule, program)
    has_edit = any(change["edits"] for _, change in printed)
    written = [way for way in cause.ways if not way.nothing and not has_edit and (way.change or not printed)]
    if not printed and not written:
        return [
            {"outcome": f"No change is needed: {program.recompiles + 1} compiled versions are expected.", "diff": ""}
        ]
    sources = [follow_change(program, finding, change) for finding, change in printed]
    for way in written:
        after = program.after if way.after is None else way.after
        sources.append((write_changed(program, [way, *_list_others(program, cause, way)]), after))
    alternatives = enumerate(dict.fromkeys(sources))
    return [_describe_change(program, source, after, number > 0) for number, (source, after) in alternatives]


def _list_printed_changes(rule: str, program: Program) -> list[tuple[Finding, Change]]:
    """The changes that compilediag prints for a rule; none where a person has to write them, or one does not work."""
    if program.name in load_failures().get("advice", {}):
        return []
    findings = [finding for finding in run_original(program)["findings"] if finding["rule"] == rule]
    pairs = [(finding, change) for finding in findings for change in list_changes(finding)]
    return [(finding, change) for finding, change in pairs if change["settings"] or change["edits"]]


def _describe_change(program: Program, source: str, after: int, is_other: bool) -> dict[str, str]:
    with_it = "Or with this change" if is_other else "With this change"
    is_one = program.recompiles == 1
    outcome = f", {program.recompiles:,} recompile{'s' * (not is_one)} become{'s' * is_one} {after}"
    return {"outcome": f"{with_it}{outcome if program.recompiles else ''}:", "diff": _diff(program, source)}


def _list_others(program: Program, cause: KnownCause, way: Way) -> list[Way]:
    """The first way of each other cause, since the recompiles stay until all are fixed."""
    others = [c for n, c in enumerate(program.causes) if c is not cause and n not in way.covers and c.ways]
    return [other.ways[0] for other in others if not other.ways[0].nothing]


def _diff(program: Program, source: str) -> str:
    before, after = program.source.splitlines(), source.splitlines()
    return "\n".join(list(difflib.unified_diff(before, after, lineterm="", n=1))[2:])


def _link_threads(threads: Iterable[str]) -> str:
    return ", ".join(f"[{thread}]({REPOSITORY}{thread.replace('#', '/issues/')})" for thread in threads)


def _describe_other(program: Program) -> str:
    threads = f" ({_link_threads(program.threads)})" if program.threads else ""
    return f"- `{program.name}.py`: {program.symptom}{threads}"
