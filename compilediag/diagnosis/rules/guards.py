"""What to do about a root cause of recompiles: the rule that applies, and what is known of its calls beside that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ...events import Recompile
from ...system import plugins
from ..causes.cause import MODES, ZERO_ONE, Cause
from ..change import CodeChange
from ..recipes import find_recipe
from ..rule import Advice, Rule, apply_rule, list_changes
from . import guards_on_numbers, guards_on_objects
from .graph_breaks import describe_remedy
from .guards_on_numbers import SIZE_KINDS, find_kind

#: The rules about guards, in the order in which they are tried.
GUARD_RULES = (
    guards_on_objects.FRESH_CLASS,
    *guards_on_numbers.RULES,
    *guards_on_objects.RULES,
    guards_on_objects.OTHER,
)
#: The first version of torch in which what is set in one thread is not in force in another.
THREAD_SETTINGS_SINCE = (2, 12)
_SECOND_CALL = (
    "No change is needed: under the stance aot_eager_then_compile torch compiles the first call with aot_eager, and "
    "the next call with other inputs with the backend of torch.compile."
)


def _group_by_kind(rules: Iterable[Rule]) -> dict[str, tuple[Rule, ...]]:
    groups: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        for kind in rule.kinds:
            groups[kind].append(rule)
    return {kind: tuple(rules) for kind, rules in groups.items()}


_BY_KIND = _group_by_kind(GUARD_RULES)


def _apply_rules(cause: Cause) -> Advice:
    """What the first rule says that applies: one of a plug-in, then ours."""
    kind = find_kind(cause)
    for plugin in plugins.list_plugins("rules"):
        advice = plugin.use(lambda rule: apply_rule(rule, cause) if _applies(rule, kind, cause) else None)
        if advice is not None:
            return advice
    rules = _BY_KIND.get(kind, ())
    return apply_rule(next((rule for rule in rules if rule.when(cause)), guards_on_objects.OTHER), cause)


def _applies(rule: object, kind: str, cause: Cause) -> bool:
    return isinstance(rule, Rule) and kind in rule.kinds and rule.when(cause)


def advise(cause: Cause) -> Advice:
    """What to do about a cause, with what its calls and the library whose code recompiled add to it."""
    return add_recipe(_add_circumstances(_apply_rules(cause), cause), cause)


def _add_circumstances(advice: Advice, cause: Cause) -> Advice:
    """The advice with what the stance, the graph break and the thread of its recompiles add to it."""
    if cause.facts.replaces_aot_eager:
        return replace(advice, action=_SECOND_CALL, explanation="", changes=(), ceiling="low", is_expected=True)
    return _add_thread(_add_graph_break(advice, cause), cause)


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
    thread = cause.facts.thread
    if thread is None:
        return advice
    if cause.family in MODES:
        return replace(
            advice,
            action=f"{advice.action.rstrip('.')}: set it inside the function of the thread, {thread}.",
            explanation="The call ran in another thread, and each thread has its own gradient mode and autocast. "
            + advice.explanation,
            changes=list_changes(f"{advice.action.rstrip('.')}: set it inside {thread}."),
            is_expected=False,
        )
    if advice.fix is None or cause.facts.torch_version < THREAD_SETTINGS_SINCE:
        return advice
    text = f"The calls ran in another thread: set it inside {thread}, because settings are in force in one thread."
    return replace(advice, explanation=f"{text} {advice.explanation}")


def add_recipe(advice: Advice, cause: Cause) -> Advice:
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
    others = f" Or {advice.action[:1].lower()}{advice.action[1:]}" if applicable else ""
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
    first = [(cause, advice) for cause, advice in advised if cause.is_first]
    needed = {row.event_id for cause, advice in first for row in cause.caused if _is_kept(row, advice)}
    expected = (cause for cause, advice in advised if advice.is_expected and not cause.is_first)
    return {id(cause) for cause in expected if needed.issuperset(row.event_id for row in cause.failed)}


def _is_kept(row: Recompile, advice: Advice) -> bool:
    """True if a recompile stays whatever becomes of the cause that it is attributed to."""
    return advice.is_expected or (row.guard_kind in SIZE_KINDS and row.actual in ZERO_ONE)
