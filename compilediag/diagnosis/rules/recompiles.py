"""Findings of recompiles: one for each root cause, and one for each function that reached a recompile limit.

`advise` says what to do about a root cause: the rule that applies, and what is known of its calls beside that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...decode.guards.path import Path, format_expression
from ...events import Compile, Recompile
from ...formatting import (
    format_amount,
    format_change,
    format_function,
    format_line,
    format_lost,
    format_names,
    format_place,
    format_times,
)
from ...system import plugins
from ..causes.call_sites import find_call_fields, make_call_fields
from ..causes.cause import MODES, ZERO_ONE, Cause, find_causes, list_unique
from ..causes.value_facts import find_threads
from ..change import CallSite, CodeChange, merge_fixes, place_settings
from ..evidence import Evidence, find_first, get_ids, get_place, group_by, is_timed, kept_after
from ..finding import Finding, find_program_file, get_severity, list_steps, name_findings
from ..recipes import find_recipe
from ..rule import Advice, Rule, apply_rule, begin_lower, list_changes, report
from . import guards_on_numbers, guards_on_objects
from .break_even import make_eager_call_counter
from .graph_breaks import describe_remedy
from .guards_on_numbers import DYNAMIC_BY_DEFAULT, SIZE_KINDS, find_kind, is_surely_dynamic, list_static_choices

#: The rules about guards, in the order in which they are tried.
GUARD_RULES = (
    guards_on_objects.FRESH_CLASS,
    *guards_on_numbers.RULES,
    *guards_on_objects.RULES,
    guards_on_objects.OTHER,
)
_SECOND_CALL = (
    "No change is needed: under the stance aot_eager_then_compile torch compiles the first call with aot_eager, and "
    "the next call with other inputs with the backend of torch.compile."
)


def advise(cause: Cause) -> Advice:
    """What the first rule says that applies, one of a plug-in, then ours, with what the stance, the graph break and the
    thread of its recompiles and the library whose code recompiled add to it.
    """
    kind = find_kind(cause)

    def apply(rule: object) -> Advice | None:
        """What a rule of a plug-in says; None if it is not about this kind, or does not apply."""
        if isinstance(rule, Rule) and kind in rule.kinds and rule.when(cause):
            return apply_rule(rule, cause)
        return None

    advice = find_first(plugin.use(apply) for plugin in plugins.list_plugins("rules"))
    if advice is None:
        ours = (rule for rule in GUARD_RULES if kind in rule.kinds and rule.when(cause))
        advice = apply_rule(next(ours, guards_on_objects.OTHER), cause)
    if cause.facts.replaces_aot_eager:
        advice = replace(advice, action=_SECOND_CALL, explanation="", changes=(), ceiling="low", is_expected=True)
    else:
        advice = _add_thread(_add_graph_break(_undo_static(advice, cause), cause), cause)
    # `x.size(0) was 4, then 6`, and how many items of its container changed with it.
    others = f"; {cause.item_count} more items changed with it" if cause.item_count else ""
    change = f"{cause.name or 'the guarded value'} {format_change(cause.values)}{others}"
    advice = replace(_add_recipe(advice, cause), what_changed=advice.what_changed or change)
    return replace(advice, is_certain=_is_certain(advice, cause))


def _is_certain(advice: Advice, cause: Cause) -> bool:
    """True if it is proven that following the advice removes the recompiles: not of words about a value that has no
    name at the user's call, as a person has to find out what it is there.
    """
    is_named = cause.user.reason is None or cause.path.is_module_attribute or cause.family in MODES
    is_applicable = any(change.can_be_applied for change in advice.changes)
    return advice.has_recipe or (advice.rule.is_certain(cause) and (is_named or is_applicable))


def _undo_static(advice: Advice, cause: Cause) -> Advice:
    """The user's own `dynamic=False`, or a setting like it, is the first to go; the last where only a person can do
    that. It is not named beside other ways where the backend may need the number all the same.
    """
    choices = () if advice.is_expected or advice.rule.gives_fewer else list_static_choices(cause)
    if not choices:
        return advice
    edits = tuple(choice.edit for choice in choices if choice.edit is not None)
    if len(edits) == len(choices):
        writes = [f"`{format_line(edit.new, 60)}` at {format_place(edit.file, edit.line)}" for edit in edits]
        change, text = CodeChange(edits=edits, is_default=True), f"Write {format_names(writes)}."
    else:
        names = format_names([f"`{choice.code}` ({choice.place})" for choice in choices])
        text = f"{DYNAMIC_BY_DEFAULT.removesuffix('.')}: {names}."
        change = CodeChange(text=text, is_default=True)
    others = tuple(way for way in advice.changes or list_changes(advice.action) if way.text != DYNAMIC_BY_DEFAULT)
    if not others:
        return replace(advice, action=text, changes=(change,))
    if not is_surely_dynamic(cause):
        return advice
    if change.edits:
        return replace(advice, action=f"{text} Or {begin_lower(advice.action)}", changes=(change, *others))
    return replace(advice, action=f"{advice.action} Or {begin_lower(text)}", changes=(*others, change))


def _add_graph_break(advice: Advice, cause: Cause) -> Advice:
    """A value that a graph break hands over has no name to change: the break itself is what has to go."""
    breaks = cause.facts.graph_breaks
    if not breaks or not cause.path.is_stack_value:
        return advice
    change, text = describe_remedy(breaks)
    remove = f"Remove the graph break at line {breaks[0].user_line}, which hands this value over. {text}"
    settings = tuple(one for one in advice.changes if one.settings)
    changes = (*list_changes(change or remove), *settings)
    return replace(advice, action=remove, changes=changes, is_expected=False)


def _add_thread(advice: Advice, cause: Cause) -> Advice:
    """Modes belong to a thread, and since torch 2.12 settings too: those of one are not in force in another."""
    threads = [site for site in cause.facts.threads if site is not None]
    if cause.facts.thread is not None and cause.family in MODES:
        thread = _format_thread(cause.facts.thread)
        return replace(
            advice,
            action=f"{advice.action.rstrip('.')}: set it inside the function of the thread, {thread}.",
            explanation="The call ran in another thread, and each thread has its own gradient mode and autocast. "
            + advice.explanation,
            changes=list_changes(f"{advice.action.rstrip('.')}: set it inside {thread}."),
            is_expected=False,
        )
    if advice.fix is None or not threads:
        return advice
    names = format_names(list_unique(map(_format_thread, threads)))
    text = f"The calls ran in another thread: set it inside {names}, because settings are in force in one thread."
    return replace(advice, explanation=f"{text} {advice.explanation}")


def _format_thread(site: CallSite) -> str:
    return format_function(site.function, site.file, site.line)


def _add_recipe(advice: Advice, cause: Cause) -> Advice:
    """The advice with what the library offers (`recipes`), if that applies to its cause.

    What a program can change comes first, so that a plan can be applied. Advice that only a person can follow is
    replaced by the recipe.
    """
    site = cause.call_site
    files = tuple(row.file for row in cause.recompiles if row.file)
    recipe = find_recipe(advice.rule.id, cause.source, site.call if site else None, files)
    if recipe is None:
        return advice
    applicable = tuple(change for change in advice.changes if change.can_be_applied)
    others = f" Or {begin_lower(advice.action)}" if applicable else ""
    return replace(
        advice,
        action=f"{recipe.action}{others}",
        explanation=recipe.why or advice.explanation,
        changes=(*applicable, CodeChange(text=recipe.action)),
        has_recipe=not recipe.is_partial,
        is_expected=advice.is_expected and not recipe.removes_expected,
    )


def find_side_effects(advised: Sequence[tuple[Cause, Advice]]) -> set[int]:
    """The causes, by `id`, that are expected and only came with another one that no change resolves either."""
    # These recompiles stay whatever becomes of the cause that they are attributed to.
    needed = {
        row.event_id
        for cause, advice in advised
        for row in cause.caused
        if cause.is_first and (advice.is_expected or (row.guard_kind in SIZE_KINDS and row.actual in ZERO_ONE))
    }
    expected = (cause for cause, advice in advised if advice.is_expected and not cause.is_first)
    return {id(cause) for cause in expected if needed.issuperset(row.event_id for row in cause.failed)}


_LIMIT = Rule(
    "recompile_limit",
    title="{function} hit {limit}: {consequence}",
    action="{causes}{not_counted}",
    severity="high",
    cost="each version is another compile, and a call checks the guards of all entries before its own",
)
RULES = (_LIMIT,)

#: torch's defaults.
DEFAULT_LIMITS = {"recompile_limit": 8, "accumulated_recompile_limit": 256}
#: A limit is raised by this factor where none of the causes has a fix.
_RAISE_BY = 8
_NOT_COUNTED = " Its eager calls were not counted; watch(calls=True) counts them, on Python 3.12 or later."
_RAISE_ARGUMENT = "Raise the argument: torch.compile(..., recompile_limit={})."
#: Values that a finding lists.
MAX_DETAILS = 64


# Findings


@kept_after(find_causes, find_program_file)
def find_recompiles(evidence: Evidence) -> list[Finding]:
    """One finding per root cause, without side effects of others."""
    advised = [(cause, advise(cause)) for cause in find_causes(evidence)]
    effects = find_side_effects(advised)
    expected = [cause for cause, advice in advised if advice.is_expected]
    found = [
        _make_finding(cause, advice if advice.is_expected else _drop_useless(advice, cause, expected))
        for cause, advice in advised
        if id(cause) not in effects
    ]
    return name_findings(evidence, found, "recompile")


def _drop_useless(advice: Advice, cause: Cause, expected: Sequence[Cause]) -> Advice:
    """The advice; without its changes if each recompile is needed because of another cause."""
    numbers = get_ids(cause.failed)
    beside = [other for other in expected if set(numbers) & {*get_ids(other.failed)}]
    needed = {number for other in beside for number in get_ids(other.failed)}
    if not needed.issuperset(numbers):
        return advice
    names = format_names(list_unique(f"`{other.name or other.kind}`" for other in beside))
    return replace(
        advice,
        action=f"A change of it alone saves nothing: {names} changed at the same calls.",
        changes=(),
        is_expected=True,
    )


def _make_finding(cause: Cause, advice: Advice) -> Finding:
    if cause.is_first:
        cost = f", {format_lost(cause.seconds, sum(is_timed(row.lost_s) for row in cause.caused), cause.count)}"
    else:
        cost = " because of this and other causes"
    return Finding(
        rule=advice.rule.id,
        severity=get_severity(cause.seconds, cause.count, advice.ceiling),
        title=f"{cause.place_text} recompiled {format_times(cause.count)}{cost}: {advice.what_changed}",
        seconds_lost=cause.seconds,
        suggestion=advice.suggestion + _describe_others(cause),
        cost=advice.rule.cost,
        changes=place_changes(advice.changes or list_changes(advice.action), cause),
        is_expected=advice.is_expected,
        count=cause.count if cause.is_first else 0,
        seconds_at_stake=cause.seconds_at_stake,
        steps=list_steps(cause.caused),
        **describe_cause(cause, advice),
    )


def place_changes(changes: Iterable[CodeChange], cause: Cause) -> tuple[CodeChange, ...]:
    """The changes with their settings in the threads that run the cause's function."""
    return tuple(place_settings(change, cause.facts.threads) for change in changes)


def describe_cause(cause: Cause, advice: Advice) -> dict[str, Any]:
    """The fields of a finding that say what changed, and where."""
    of_rows = ("function", "file", "line", "user_file", "user_line", "user_code")
    return {
        **{name: find_first(getattr(row, name) for row in cause.recompiles) for name in of_rows},
        **make_call_fields(cause.call_site),
        "fix": advice.fix,
        "evidence": cause.evidence,
        "details": cause.values[:MAX_DETAILS],
        "source": cause.source,
        "kind": cause.kind,
        "places": cause.places,
        "what_changed": advice.what_changed,
    }


def _describe_others(cause: Cause) -> str:
    """The other guards that failed at the same calls: fixing only this one leaves those, and the other way round."""
    # The marks of a size include the sizes that changed with it.
    known = SIZE_KINDS if cause.kind in SIZE_KINDS else ()
    beside = []
    for source, kind in ((source, kind) for kind, source in cause.also if kind not in known):
        path = Path.of(source)
        name = cause.name_handed_over(path) if path.is_stack_value else format_expression(source)
        is_plain = path.is_stack_value or path.tensor_property
        beside.append(name if is_plain else f"{name} ({kind.replace('_', ' ')})")
    text = f" At the same calls these guards failed too: {format_names(list_unique(beside))}." if beside else ""
    if not cause.shared:
        return text
    recompiles = format_amount(len(cause.shared), "recompile")
    others = "another cause" if len(cause.shared) == 1 else "other causes"
    return f"{text} This guard also failed in {recompiles} attributed to {others}; fix both."


# Functions that reached a recompile limit and run eagerly since


def find_limits(evidence: Evidence) -> list[Finding]:
    """One finding per function, region and limit that it hit."""
    hits = [row for row in evidence.rows(Compile) if row.limit is not None]
    causes, describe_eager = find_recompiles(evidence), make_eager_call_counter(evidence)
    recompiles = group_by(evidence.rows(Recompile), lambda row: (get_place(row), row.region)) if hits else {}
    found = []
    by_limit = group_by(hits, lambda row: (get_place(row), row.region, row.limit, row.limit_value))
    for (place, region, *_), rows in by_limit.items():
        numbers = {*get_ids(recompiles.get((place, region), ()))}
        own = [cause for cause in causes if place in cause.places and not numbers.isdisjoint(cause.evidence)]
        own.sort(key=lambda cause: (-cause.count, -cause.seconds_lost, cause.title))
        finding = _make_limit_finding(evidence, rows, own, describe_eager(place))
        found.append(replace(finding, **find_call_fields(evidence, rows)))
    return found


def _make_limit_finding(evidence: Evidence, rows: list[Compile], causes: list[Finding], eager: str | None) -> Finding:
    """`causes` are those of its function and region, the most frequent first."""
    hit, limit = rows[0], rows[0].limit or ""
    are_expected = all(cause.is_expected for cause in causes)
    higher = _RAISE_BY * (hit.limit_value or DEFAULT_LIMITS.get(limit, 1))
    # The fixes of its causes; a higher limit only where all of them are expected, so that each version is needed.
    fix = merge_fixes(cause.fix for cause in causes) or None
    if fix is None and limit in DEFAULT_LIMITS and not hit.limit_argument and are_expected:
        fix = {limit: higher}
    # Only a higher limit helps, and torch.compile has its own, which no setting changes.
    raise_it = _RAISE_ARGUMENT.format(higher) if hit.limit_argument and are_expected else None
    has_raised = hit.on_failure not in (None, "eager")
    consequence = eager or "it silently runs eagerly from then on"
    if has_raised:
        reasons = {"fullgraph": "fullgraph=True", "error_on_graph_break": "error_on_graph_break(True)"}
        setting = reasons.get(hit.on_failure or "", "fail_on_recompile_limit_hit")
        consequence = f"torch raised an exception ({setting})"
    where = ""
    threads = find_threads(evidence).list_all(rows)
    thread = find_first(threads)
    if thread is not None:
        inside = _format_thread(thread)
        where = f" The calls ran in another thread: a limit is in force in one thread, so set it inside {inside}."
    facts = {
        "limit": _name_limit(hit),
        "consequence": consequence,
        "causes": _write_suggestion(hit, causes) + where,
        "not_counted": _NOT_COUNTED if eager is None and not has_raised else "",
    }
    return report(
        _LIMIT,
        rows,
        facts,
        seconds_lost=sum(cause.seconds_lost for cause in causes),
        fix=fix,
        changes=tuple(place_settings(change, threads) for change in list_changes(fix, raise_it)),
        kind=limit,
        places=(get_place(hit),),
    )


def _name_limit(hit: Compile) -> str:
    """`recompile_limit (2, an argument of torch.compile)`: the limit in force, if it is not torch's default."""
    is_default = hit.limit_value in (None, DEFAULT_LIMITS.get(hit.limit or "")) and not hit.limit_argument
    parts = [] if is_default else [str(hit.limit_value)]
    parts += ["an argument of torch.compile"] if hit.limit_argument else []
    parts += [f"region {hit.region} of isolate_recompiles"] if hit.region is not None else []
    name = format_line(hit.limit or "", 60)
    return f"{name} ({', '.join(parts)})" if parts else name


def _write_suggestion(hit: Compile, causes: list[Finding]) -> str:
    setting = f"torch._dynamo.config.{format_line(hit.limit or '', 60)}"
    name = "the argument recompile_limit of torch.compile" if hit.limit_argument else setting
    raise_it = f"{name} only if all those compiled versions are intended."
    if not causes:
        return f"Raise {raise_it} What recompiled it was not collected."
    top = "; ".join(f"{cause.what_changed} ({format_times(cause.count)})" for cause in causes[:2])
    first = next((cause for cause in causes if not cause.is_expected), None)
    is_applicable = first is not None and first.changes[:1] and first.changes[0].can_be_applied
    do = first.changes[0].code if first and is_applicable else first.suggestion if first else ""
    return f"Fix what recompiles it: {top}. {do.rstrip('.')}{'. ' if do else ''}Raise {raise_it}"
