"""What is wrong with compilediag's causes, advice and plan for a program: lists of problems, empty where all works."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compilediag.diagnosis import fix_code, merge_fixes

from .known_programs import KnownCause, Program, Way
from .runs import find_problems, run_original, run_source
from .source_changes import CannotApply, apply_edits, apply_patch, insert_setup, replace_texts, set_compile_option

#: What an expression says of a value: a size, a dtype, a length.
_PROPERTY = re.compile(r"\.shape\[\d+\]$|\.(?:stride|dim)\(.*\)$|\.(?:dtype|device|requires_grad|shape)$|^len\(|\)$")

#: Words of an advice -> the option of torch.compile that it asks for.
COMPILE_OPTIONS: dict[str, tuple[str, bool | None]] = {
    "dynamic=None": ("dynamic", None),
    "dynamic=True": ("dynamic", True),
    "isolate_recompiles=True": ("isolate_recompiles", True),
}

Settings = dict[str, str | int | bool]
Finding = dict[str, Any]
Change = dict[str, Any]


@dataclass(frozen=True)
class Judgement:
    """One piece of advice that was followed: what it was, and what is wrong with it."""

    rule: str
    advice: str
    problems: tuple[str, ...]
    recompiles: int | None = None


def judge_original(program: Program) -> list[str]:
    """The program runs, computes something, and recompiles as often as is known."""
    run = run_original(program)
    if error := run.get("worker_error") or run["error"]:
        return [str(error)]
    problems = [] if run["results"] is not None else ["it computes no `results`"]
    if len(run["recompiles"]) != program.recompiles:
        reasons = [f"{row['function']}: {row['reason']}" for row in run["recompiles"]]
        problems.append(f"{len(reasons)} recompiles, not {program.recompiles}: {reasons}")
    return problems


# Ways that a person wrote


def judge_way(program: Program, number: int, way: Way) -> Judgement:
    """Follow one way of a cause, and the first way of each other cause."""
    rule = program.causes[number].rule
    if way.nothing:
        return Judgement(rule, "no change", (), program.recompiles)
    try:
        source = write_changed(program, [way, *_list_other_ways(program, {number, *way.covers})])
    except CannotApply as problem:
        return Judgement(rule, describe_way(way), (str(problem),))
    return _judge_source(program, rule, describe_way(way), source, way.after)


def describe_way(way: Way) -> str:
    """A way in a few words."""
    return way.text or fix_code(way.settings) or way.setup or "; ".join(new.strip() for _, new in way.change)


def write_changed(program: Program, ways: Iterable[Way]) -> str:
    """The program's source with these ways followed; their settings are one block."""
    source, ways = program.source, list(ways)
    for way in ways:
        source = replace_texts(source, way.change)
    return insert_setup(source, _write_setup([way.settings for way in ways], ways))


def _write_setup(settings: Iterable[Settings | None], ways: Iterable[Way]) -> str:
    """All settings, merged, as one block, and the other statements of the ways."""
    lines = (fix_code(merge_fixes(settings)) or "").split("; ")
    return "\n".join(filter(None, [*lines, *(way.setup for way in ways)]))


def _list_other_ways(program: Program, covered: set[int]) -> list[Way]:
    """The first way of each cause that is not covered yet."""
    ways = []
    for number, cause in enumerate(program.causes):
        if number not in covered and cause.ways and not cause.ways[0].nothing:
            covered |= {number, *cause.ways[0].covers}
            ways.append(cause.ways[0])
    return ways


def _judge_source(program: Program, rule: str, advice: str, source: str, after: int | None) -> Judgement:
    expected = program.after if after is None else after
    before, run = run_original(program), run_source(program, source)
    keeps = program.keeps_operations if rule == "plan" else program.gains_operations or program.keeps_operations
    problems = find_problems(program, before, run, expected, keeps)
    return Judgement(rule, advice, tuple(problems), len(run.get("recompiles", ())))


# Causes


def judge_causes(program: Program) -> list[str]:
    """Each known cause is a finding, and nothing else is."""
    findings = _list_cause_findings(program)
    known, found = Counter(cause.rule for cause in program.causes), Counter(f["rule"] for f in findings)
    beside = {finding["rule"] for finding in run_original(program)["findings"]}
    # One finding may name two sizes of a tensor that were written down one by one.
    problems = [f"no finding {rule}" for rule in {*known, *program.beside} - {*found, *beside}]
    problems += [f"a finding {rule} too many" for rule in (found - known).elements()]
    titles = " ".join(finding["title"] for finding in findings)
    problems += [f"no title says {c.says!r}: {titles}" for c in program.causes if c.says and c.says not in titles]
    return problems


def _list_cause_findings(program: Program) -> list[Finding]:
    return [finding for finding in run_original(program)["findings"] if finding["rule"] not in program.beside]


#: The rule about calls that did not recompile but whose guards failed.
REFUSED = "refused_calls"


def judge_places(program: Program) -> list[str]:
    """The plan names each cause at the user's line, in the user's names; what did not recompile, its finding does."""
    run = run_original(program)
    plan, others = run["plan"], [found for found in run["findings"] if not found["source"] or found["rule"] == REFUSED]
    shown = [*plan["shown"]["steps"], *plan["shown"]["unresolved"]]
    shown += [
        {
            "place": f"{Path(finding[f'{line}_file']).name}:{finding[f'{line}_line']}",
            "what": finding["title"],
            "only": finding["rule"],
        }
        for finding in others
        for line in ("call", "user")
        if finding[f"{line}_file"] is not None
    ]
    return [
        f"nothing names {cause.expression or cause.rule} at line {program.find_line(cause.at)}: "
        f"{[(step['place'], step.get('expression'), step['what']) for step in shown]}"
        for cause in program.causes
        if not any(_is_named(program, cause, step) for step in shown)
    ]


def _is_named(program: Program, cause: KnownCause, step: dict[str, Any]) -> bool:
    """True if a step of the plan, or a cause that it leaves, is at the user's line and names the value."""
    if (
        step.get("only", cause.rule) != cause.rule
        or step["place"] != f"{program.path.name}:{program.find_line(cause.at)}"
    ):
        return False
    base = _PROPERTY.sub("", cause.expression or "")
    return base in (step.get("expression") or step["what"])


# Advice that compilediag prints


def judge_advice(program: Program) -> list[Judgement]:
    """Follow every piece of advice of every finding, the first way of each other cause beside it."""
    return [
        _judge_change(program, finding, change)
        for finding in run_original(program)["findings"]
        for change in list_changes(finding)
    ]


def list_changes(finding: Finding) -> list[Change]:
    """The ways to follow a finding; the text, if no program can."""
    if not finding["changes"]:
        return [{"settings": finding["fix"], "edits": [], "text": finding["suggestion"]}]
    return finding["changes"]


def _judge_change(program: Program, finding: Finding, change: Change) -> Judgement:
    rule, numbers = finding["rule"], _match_causes(program, finding)
    advice = change.get("code") or fix_code(change["settings"]) or change["text"]
    if not change["settings"] and not change["edits"]:
        return _judge_text(program, rule, numbers, change["text"], finding["is_expected"])
    try:
        source, after = follow_change(program, finding, change)
    except CannotApply as problem:
        return Judgement(rule, advice, (str(problem),))
    return _judge_source(program, rule, advice, source, after)


def follow_change(program: Program, finding: Finding, change: Change) -> tuple[str, int]:
    """The program's source with a printed change and the first way of each other cause, and the recompiles it leaves.

    CannotApply if the change does not fit.
    """
    numbers = _match_causes(program, finding)
    covered = set(numbers) or ({*range(len(program.causes))} if finding["rule"] in program.beside else set())
    source = apply_edits(program.source, change["edits"], str(program.path))
    ways = _list_ways(program, numbers)
    alike = [way for way in ways if way.settings == change["settings"]]
    known = next((way for way in ways if _has_source(program, way, source)), next(iter(alike), None))
    if known:
        covered |= {*known.covers, *(n for n, cause in enumerate(program.causes) if known in cause.ways)}
    others = _list_other_ways(program, covered)
    for way in others:
        source = replace_texts(source, way.change)
    setup = _write_setup([change["settings"], *(way.settings for way in others)], others)
    return insert_setup(source, setup), program.after if known is None or known.after is None else known.after


def _has_source(program: Program, way: Way, source: str) -> bool:
    """True if a way that was written down is exactly this change of the source."""
    return bool(way.change) and source == replace_texts(program.source, way.change)


def _match_causes(program: Program, finding: Finding) -> list[int]:
    """The known causes that a finding is about: those of its rule, and of its title if several have that rule."""
    alike = [n for n, cause in enumerate(program.causes) if cause.rule == finding["rule"]]
    named = [n for n in alike if (says := program.causes[n].says) and says in finding["title"]]
    return named or alike


def _list_ways(program: Program, numbers: Iterable[int]) -> list[Way]:
    """The ways of these causes, and those of other causes that fix one of these too."""
    numbers = set(numbers)
    every = [(number, way) for number, cause in enumerate(program.causes) for way in cause.ways]
    return [way for number, way in every if numbers & {number, *way.covers}]


def _judge_text(program: Program, rule: str, numbers: Sequence[int], text: str, is_expected: bool) -> Judgement:
    """Advice for a person: one of the ways written down says the same, and works."""
    if rule in program.beside and not numbers:
        return Judgement(rule, text, (), None)
    if is_expected and any(way.nothing for way in _list_ways(program, numbers)):
        return Judgement(rule, text, (), program.recompiles)
    for way in _list_ways(program, numbers):
        if way.text and _is_said(way.text, text):
            owner = next(number for number, cause in enumerate(program.causes) if way in cause.ways)
            judged = judge_way(program, owner, way)
            return Judgement(rule, text, judged.problems, judged.recompiles)
    option = next((option for words, option in COMPILE_OPTIONS.items() if words in text), None)
    if option is None:
        return Judgement(rule, text, ("no way that was written down follows this advice",))
    source = set_compile_option(write_changed(program, _list_other_ways(program, set(numbers))), *option)
    return _judge_source(program, rule, text, source, _expect(program, option[0], option[1]))


def _expect(program: Program, name: str, value: bool | None) -> int:
    """How many recompiles an option of torch.compile promises to leave."""
    if name == "isolate_recompiles":
        return program.recompiles  # each compiled object has its own limit
    # By default torch recompiles once before a value becomes dynamic.
    return program.after if value else max(program.recompiles - 1, program.after)


def _is_said(part: str, text: str) -> bool:
    """True if an advice contains the words of a way."""
    return " ".join(part.split()) in " ".join(text.split())


# The plan


def judge_plan(program: Program) -> list[str]:
    """Follow the plan: its patch, or its block of code at the top; it saves what it claims."""
    plan = run_original(program)["plan"]
    try:
        source = apply_plan(program, plan)
    except CannotApply as problem:
        return [str(problem)]
    claimed = plan["shown"]["recompiles"] - plan["shown"]["recompiles_saved"]
    judged = _judge_source(program, "plan", "plan", source, claimed)
    expected = max([program.after, *(way.after or 0 for way in _list_ways(program, range(len(program.causes))))])
    if claimed > expected and _can_apply_all(program):
        return [*judged.problems, f"it leaves {claimed} recompiles, not {expected}"]
    return [*judged.problems]


def apply_plan(program: Program, plan: dict[str, Any]) -> str:
    """The patch, which holds all edits, or the edits; then the block of settings at the top."""
    ways = _list_ways_of_texts(program, plan["steps"])
    if plan["patch"] and not any(way.settings for way in ways):
        source, settings = apply_patch(program.source, plan["patch"]), {}
    else:
        edits = [edit for step in plan["steps"] for edit in step["edits"]]
        source, settings = apply_edits(program.source, edits, str(program.path)), plan["shown"]["settings"]
    for way in ways:
        source = replace_texts(source, way.change)
    return insert_setup(source, _write_setup([settings, *(way.settings for way in ways)], ways))


def judge_specs(program: Program) -> list[Judgement]:
    """Follow each specification that the plan offers instead of some of its steps, and the other steps as they are.

    Code to paste, and plans with steps that only a person can follow, are left out.
    """
    plan = run_original(program)["plan"]
    can_apply = all(step["edits"] or step["settings"] for step in plan["steps"])
    specs = [spec for spec in plan["specs"] if spec["change"]["edits"]] if can_apply else []
    return [_judge_spec(program, plan, spec) for spec in specs]


def _judge_spec(program: Program, plan: dict[str, Any], spec: dict[str, Any]) -> Judgement:
    steps = [step for number, step in enumerate(plan["steps"], 1) if number not in spec["steps"]]
    claimed = plan["shown"]["recompiles"] - plan["shown"]["recompiles_saved"]
    edits = [edit for step in [spec["change"], *steps] for edit in step["edits"]]
    try:
        source = apply_edits(program.source, edits, str(program.path))
    except CannotApply as problem:
        return Judgement("spec", spec["change"]["code"], (str(problem),))
    source = insert_setup(source, _write_setup([step["settings"] for step in steps], ()))
    return _judge_source(program, "spec", spec["change"]["code"], source, claimed)


def _list_ways_of_texts(program: Program, steps: Iterable[dict[str, Any]]) -> list[Way]:
    """The way that says the same as each step that only a person can follow; the first way if none does."""
    ways = []
    for step in steps:
        if not step["edits"] and not step["settings"]:
            known = [way for cause in program.causes if cause.rule == step["rule"] for way in cause.ways]
            if not known:
                raise CannotApply(f"no way that was written down follows {step['rule']}")
            ways.append(next((way for way in known if way.text and _is_said(way.text, step["text"])), known[0]))
    return list(dict.fromkeys(ways))


def _can_apply_all(program: Program) -> bool:
    """True if a setting or an edit fixes each cause: what the plan has to find."""
    return all(cause.ways and not cause.ways[0].text and not cause.ways[0].nothing for cause in program.causes)


#: Name -> what is checked of every program.
JUDGES: dict[str, Callable[[Program], list[str]]] = {
    "original": judge_original,
    "ways": lambda program: _list_problems(judge_all_ways(program)),
    "causes": judge_causes,
    "places": judge_places,
    "advice": lambda program: _list_problems(judge_advice(program)),
    "plan": judge_plan,
}


def judge_all_ways(program: Program) -> list[Judgement]:
    """Every way that was written down, followed."""
    return [judge_way(program, n, way) for n, cause in enumerate(program.causes) for way in cause.ways]


def _list_problems(judged: Iterable[Judgement]) -> list[str]:
    return [f"{one.rule}: {one.advice[:160]}: {problem}" for one in judged for problem in one.problems]
