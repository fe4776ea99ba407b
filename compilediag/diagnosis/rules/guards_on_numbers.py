"""Rules about guards on sizes, strides and ranks of tensors, and on integers and floats.

torch makes a size or a number dynamic by itself after its first change, so one recompile is usual. It never does so for
the sizes 0 and 1, for what a line of the code fixes, and for tensors of modules.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from ...decode.guards.path import (
    Path,
    Step,
    format_expression,
    format_source,
    list_sources,
    name_any_instance,
    parse_path,
)
from ...events import Recompile
from ...formatting import format_change, format_names, is_resumed
from ..causes.call_sites import NamedSite
from ..causes.cause import EVALUATED, NUMBER, ZERO_ONE, Cause, get_value_type, list_unique
from ..causes.value_facts import StaticChoice, find_uses
from ..change import CodeChange, Settings, find_listed, fix_code
from ..evidence import get_place
from ..rule import (
    Advice,
    Case,
    FirstOf,
    Rule,
    Setting,
    Wrap,
    apply_rule,
    begin_lower,
    format_user_line,
    get_usual_ceiling,
    list_changes,
    make_dynamic_fix,
)
from ..source_edits import insert_before, write_path

#: Kinds of guards that marking a size as dynamic removes.
SIZE_KINDS = ("tensor_size", "symbolic_shape")
#: Marks a size as dynamic, without an error if the code turns out to fix it.
MARK = "torch._dynamo.maybe_mark_dynamic"
#: Marks a size as one that may also be 0 or 1.
UNBACKED = "torch._dynamo.decorators.mark_unbacked"
#: The first version of torch that compiles a slice whose bounds are an unbacked size and another number.
UNBACKED_SLICES_SINCE = (2, 13)
#: A tensor behind more attributes and items than these is not one that users pass.
MAX_STEPS = 2
_PLAIN_NAME = re.compile(r"[\w ./:-]+")
#: Where a module has its tensors, in torch's names of them.
_MODULE_TENSORS = ("_buffers", "_parameters")
#: torch's words for a guard that two sizes are equal because they were equal at the first call.
_DUCK = "duck sizing"
#: How the attribute of a tensor begins in which torch keeps a mark.
_MARKED = "_dynamo_"
#: The attribute's name without `_dynamo_` -> torch's function that sets it.
_MARK_FUNCTIONS = {
    "dynamic_indices": "torch._dynamo.mark_dynamic",
    "weak_dynamic_indices": "torch._dynamo.maybe_mark_dynamic",
    "static_indices": "torch._dynamo.mark_static",
    "unbacked_indices": "torch._dynamo.decorators.mark_unbacked",
    "strict_unbacked_indices": "torch._dynamo.decorators.mark_unbacked",
    "shape_ids": "torch._dynamo.decorators.mark_unbacked",
    "unbacked_bounds": "torch._dynamo.decorators.mark_unbacked",
    "dynamic_range": "torch._dynamo.mark_dynamic",
}
_BOUNDS = ("dynamic_range", "unbacked_bounds")
#: Setting -> the type of the numbers that it keeps static; others keep all.
_KEPT_BY = {"specialize_int": {"int"}, "specialize_float": {"float"}}

#: torch's mark on the guard of a symbol that an operator took as a number, and the user's call of an operator.
_IN_OPERATOR, _OPERATOR = "(_ops.py:", re.compile(r"\btorch\.ops(?:\.\w+)+(?=\()")
_INT = re.compile(r"-?\d{1,40}")
_MOMENTUM = ("betas", "momentum")
#: The name of an integer that says which of several modules this one is.
_POSITION = re.compile(r"(?:^|_)(?:layer|block|level|stage|head|module|expert)?_?(?:idx|index|number|num|id)$")
#: torch's hint on an integer of an nn.Module.
_MODULE_INT = "integer attributes of the nn.Module"
#: Fewer values do not show that something counts up.
COUNTS_UP_FROM = 3

#: torch then makes a number dynamic after its first change, which still recompiles.
DYNAMIC_BY_DEFAULT = "Compile with dynamic=None, the default, instead of dynamic=False."
#: What saves the first change of a number that no setting and no edit of a call can make dynamic.
ALL_DYNAMIC = "To save the recompile, compile with dynamic=True, which makes all sizes and numbers dynamic at once."
_DYNAMIC = Setting("dynamic_sources")
_FEW_VALUES = (
    "Keep it to few values (padding, bucketing), or use tensor operations instead of a Python loop, range or list made "
    "from it."
)
_SELECTED = "Pass what it selects instead of the index: layer(x, cache[i]) instead of cache[self.layer_idx]."
_SCHEDULED = "A scheduler changes {name}. A tensor is no way out: the scheduler replaces it by a float. {kept}"
_MODULE_WHY = (
    "{name} %s, and each value is a new compile. (A tensor buffer that the compiled function itself changes can give "
    "wrong gradients.)"
)
_VARY_MODULE = (
    "Let it vary: {dynamic}.",
    "Let it vary: torch._dynamo.config.allow_unspec_int_on_nn_module = True.",
)
_VARY_OR_PASS = ("Let it vary: {dynamic}; or pass {name} as an argument.", "Pass {name} as an argument.")
_GLOBAL = "torch never makes a global integer dynamic by itself. As an argument it is dynamic after its first change."
_OF_INSTANCES = (
    "{name} is probably a constant of each module, and all of them share one code: one compiled version for each."
)
_TENSOR = "Pass a 0-dim tensor: torch.tensor({name})."
_AS_TENSOR = Wrap("torch.tensor({0})")
_PLAIN = "Pass {name}.data, a plain tensor."
_usual_or_medium = partial(get_usual_ceiling, repeated="medium")


#: What following the advice of several rules costs.
_ONE_KERNEL = "one kernel for all sizes can be slower than a kernel for a single size"
_PADDING = "padding computes values that are thrown away"
_NOT_FOLDED = "a number that can vary is not folded into the kernel"
_READ = "the kernel reads the number from memory instead of having it compiled in"


# What the guards show


def find_kind(cause: Cause) -> str:
    """The kind of guard that rules are about: a guard of dynamic shapes is one on a size, a number, a mark, on two
    sizes that were equal, or on how several sizes relate.
    """
    if cause.kind != "symbolic_shape":
        return cause.kind
    if any(_DUCK in reason for reason in cause.reasons):
        return "equal_sizes"
    if _get_mark(cause):
        return "mark"
    if cause.is_relation:
        return "relation"
    return "tensor_size" if cause.path.is_size else "value"


def is_usual(cause: Cause) -> bool:
    """True if torch needs these recompiles by default: the first change of a number, and sizes 0 and 1 on their own.

    More of them show that the value did not become dynamic after its first change.
    """
    by_value = defaultdict[Hashable, list[Recompile]](list)
    for row in cause.seen or cause.recompiles:
        by_value[get_place(row), row.region, name_any_instance(row.guard_source or "")].append(row)
    for found in by_value.values():
        values = [value for value in (found[0].expected, *[row.actual for row in found]) if value is not None]
        came = set(values[1:])
        if cause.path.is_size:
            usual = len(came & ZERO_ONE - set(values[:1])) + bool(came - ZERO_ONE)
        else:
            usual = int(len(set(values)) > 1)
        if len(found) > usual:
            return False
    return True


def is_specialized(cause: Cause) -> bool:
    """True if code needed the number itself, so that an entry is valid for one value even if it is dynamic."""
    if cause.facts.value_need is not None and cause.facts.value_need.value not in ZERO_ONE:
        return True
    return cause.is_still_static or _needs_number(cause) or any(_fixes_float(cause, bound) for bound in cause.bounds)


def _fixes_float(cause: Cause, bound: str) -> bool:
    """True for `1.0 + clip == 1.2`: what torch calculates with a float became a constant, which is no branch."""
    return "==" in bound and list_types(cause) == {"float"}


def _explain_kept(cause: Cause) -> str:
    """Why the values were compiled one by one: torch makes a size or number dynamic after its first change."""
    kind = "size" if cause.path.is_size else "float" if "float" in list_types(cause) else "int"
    what = {"size": "a size", "float": "a float", "int": "an integer"}[kind]
    if is_usual(cause):
        return f"torch makes {what} dynamic by itself after its first change, so one recompile is usual."
    if is_specialized(cause):
        return f"A line of the code{_find_needing_line(cause)} needs the number, so each value is compiled on its own."
    if cause.facts.was_dynamic:
        return "torch made it dynamic after its first change, but that entry did not fit these calls for other reasons."
    choices = [f"`{choice.code}` ({choice.place})" for choice in list_static_choices(cause)]
    if choices:
        keep = "keeps" if len(choices) == 1 else "keep"
        return f"{format_names(choices)} {keep} it static, so each value is compiled on its own."
    reasons = [
        "the function is probably compiled with dynamic=False (dynamic=None is enough)",
        "torch._dynamo.config.automatic_dynamic_shapes is False",
    ]
    if kind != "size" and not _is_option(cause.path):
        reasons.append(f"torch._dynamo.config.specialize_{kind} is True")
    listed = f"{', '.join(reasons[:-1])}, or {reasons[-1]}"
    return f"By default torch makes {what} dynamic after its first change, so {listed}."


def _is_kept_static(cause: Cause) -> bool:
    """True if torch would have made the number dynamic by default, and did not."""
    return not (is_usual(cause) or is_specialized(cause) or cause.facts.was_dynamic)


def list_static_choices(cause: Cause) -> tuple[StaticChoice, ...]:
    """What the user wrote that keeps a number static which torch makes dynamic by itself; nothing of other values."""
    if find_kind(cause) not in ("tensor_size", "value") or _is_module_tensor(cause) or not _is_kept_static(cause):
        return ()
    if _is_global(cause) or (_is_of_a_module(cause) and _is_integer(cause)):
        return ()
    types = {"size"} if cause.path.is_size else list_types(cause)
    meant = (choice for choice in cause.facts.static_choices if _KEPT_BY.get(choice.option, types) <= types)
    return tuple(meant) if types <= {"size", "int", "float"} else ()


def is_surely_dynamic(cause: Cause) -> bool:
    """False for a float that is no operand of plain arithmetic: AOTAutograd compiles it in, though Dynamo does not."""
    return "float" not in list_types(cause) or _can_be_tensor(cause)


def _needs_number(cause: Cause) -> bool:
    """True if torch reports that code evaluated the number while it was compiled."""
    return any(NUMBER.fullmatch(row.expected or "") and EVALUATED in (row.reason or "") for row in cause.recompiles)


def _is_fixed(cause: Cause) -> bool:
    """True if a setting or the code keeps the number static."""
    if _find_static_entry(cause) is not None or is_specialized(cause):
        return not _can_be_tensor(cause) or "float" not in list_types(cause)
    return cause.family == "value" and not is_usual(cause) and "range" in _find_uses(cause)


def _find_static_entry(cause: Cause) -> str | None:
    """The entry of torch.compiler.config.static_sources that names the size or number."""
    dim, setting = cause.path.dim, cause.facts.static_sources
    return next(filter(None, (find_listed(setting, name, dim) for name in cause.torch_sources)), None)


def _find_operator(cause: Cause) -> str | None:
    """The user's operator that needed the number, as its schema says; None if something else needed it."""
    needs = (row for row in cause.recompiles if _IN_OPERATOR in (row.reason or ""))
    found = (_OPERATOR.search(row.user_code or "") for row in needs if NUMBER.fullmatch(row.expected or ""))
    return next((match[0] for match in found if match is not None), None)


def _find_needing_line(cause: Cause) -> str:
    """The line that needs one value of a number; "" if it is not known."""
    need = cause.facts.value_need
    if need is None:
        return format_user_line(cause)
    return f" ({need.place_text})" if need.place_text else ""


def is_branch(cause: Cause) -> bool:
    """True if code compared the number, so that an entry is valid for a range of values."""
    if len(cause.facts.exclusions) >= len(cause.seen or cause.recompiles):
        return True
    return any(
        not NUMBER.fullmatch(bound) and bound != ">= 2" and not _fixes_float(cause, bound) for bound in cause.bounds
    )


def list_crossings(cause: Cause) -> list[Recompile]:
    """The recompiles at which a number that could vary did not fulfil the condition of its entry."""
    rows = (row for row in cause.seen or cause.recompiles if row.guard_kind == "symbolic_shape")
    return [row for row in rows if not NUMBER.fullmatch(row.expected or "") and row.expected != ">= 2"]


def _write_condition(cause: Cause) -> str:
    """The condition that decides which branch the code takes."""
    source = format_expression(cause.source)
    if not cause.bounds:
        return format_expression(cause.facts.exclusions[0].condition or source)
    bound = format_expression(cause.bounds[0])
    return bound if cause.source and cause.source in cause.bounds[0] else f"{source} {bound}".strip()


def _explain_branch(cause: Cause) -> str:
    condition = _write_condition(cause)
    if cause.bounds:
        # Other guards of the value are of other lines.
        rows = [row for row in cause.recompiles if (row.expected or "").startswith(cause.bounds[0])]
        line = format_user_line(replace(cause, recompiles=tuple(rows) or cause.recompiles))
        return f"The existing entry is valid only for {condition}; beyond it the code takes another branch{line}."
    need = cause.facts.exclusions[0]
    where = f" ({need.place_text})" if need.place_text else ""
    return f"The new entry is valid only for {condition}{where}, so it cannot replace the earlier one."


def _is_special_size(cause: Cause) -> bool:
    """True if sizes 0 and 1, which torch compiles on their own, explain the recompiles."""
    if find_kind(cause) == "equal_sizes":
        return all(_find_broadcast(cause, row) is not None for row in cause.recompiles)
    # None more than those of 0 and 1 and the usual one of a first change.
    is_explained = is_usual(cause) or all(map(_touches_zero_one, cause.recompiles))
    return _find_static_entry(cause) is None and not ZERO_ONE.isdisjoint(cause.values) and is_explained


def _touches_zero_one(row: Recompile) -> bool:
    if row.guard_kind == "symbolic_shape":
        return row.actual in ZERO_ONE or (row.actual is None and row.expected == ">= 2")
    return row.actual in ZERO_ONE or row.expected in ZERO_ONE


def _find_broadcast(cause: Cause, row: Recompile) -> Path | None:
    """The size that is 1, of several that have to be equal."""
    came = (row.actual or "").split(", ")
    return next((path for path in list_sources(cause.source) if path.is_size and f"{path.text} = 1" in came), None)


def _describe_relation(cause: Cause) -> str:
    first, *rest = list_sources(cause.source)
    bound = cause.bounds[0] if cause.bounds else ""
    if rest and bound == ", ".join(path.text for path in rest):
        return f"{first.code} no longer equals {format_expression(bound)}"
    return f"{format_expression(bound)} no longer holds" if bound else "the sizes no longer relate as they did"


def _is_module_tensor(cause: Cause) -> bool:
    """True for a size of a tensor that belongs to a module."""
    return cause.facts.is_parameter or any(path.has_attribute(*_MODULE_TENSORS) for path in cause.torch_paths)


def _is_of_other_parameters(cause: Cause) -> bool:
    """True for a size of a parameter, unless 0 or 1 explain it."""
    is_size = cause.kind == "tensor_size" and any(path.has_attribute("_parameters") for path in cause.torch_paths)
    return is_size and not _is_special_size(cause)


def _get_mark(cause: Cause) -> str:
    """The name of a mark's attribute without `_dynamo_`; "" if the guard is not on a mark."""
    name = cause.path.own_name or ""
    is_mark = cause.kind == "symbolic_shape" and cause.path.steps and name.startswith(_MARKED)
    return name.removeprefix(_MARKED) if is_mark else ""


def list_types(cause: Cause) -> set[str]:
    """The types of the values that were seen."""
    return set(map(get_value_type, cause.values))


def _find_uses(cause: Cause) -> frozenset[str]:
    """What the user's line that made the guard does with the value."""
    return find_uses(cause.user_code, format_expression(cause.source))


def _is_integer(cause: Cause) -> bool:
    return list_types(cause) == {"int"}


def _is_of_a_module(cause: Cause) -> bool:
    return any(_MODULE_INT in reason for reason in cause.reasons)


def _is_global(cause: Cause) -> bool:
    return any("G['" in reason.split("#", 1)[0] for reason in cause.reasons)


def _counts_up(cause: Cause) -> bool:
    if not _is_integer(cause) or not is_counter(cause.values):
        return False
    if _is_of_a_module(cause):
        # Instances of a repeated module have one cause.
        return len({row.guard_source for row in cause.recompiles} - {None}) == 1
    return _is_global(cause) or not is_usual(cause)


def _can_be_tensor(cause: Cause) -> bool:
    """A tensor can take the place of a number only in arithmetic. As a size, the end of a slice or the limit of a loop
    it breaks the graph, or torch silently runs the function eagerly.
    """
    return _find_uses(cause) == {"operand"}


def _is_option(path: Path) -> bool:
    """True for an option of a group of parameters: `param_groups[0]['lr']`, `param_groups[0]['betas'][1]`."""
    groups = Step("attr", "param_groups")
    keys = path.steps[path.steps.index(groups) + 1 :] if groups in path.steps else ()
    return len(keys) in (2, 3) and all(step.kind == "item" for step in keys) and isinstance(keys[1].value, str)


def is_counter(values: Sequence[str]) -> bool:
    """True for integers that rise by the same step nearly every time."""
    if not is_rising(values):
        return False
    numbers = [int(value) for value in values]
    steps = Counter(after - before for before, after in pairwise(numbers))
    return 4 * steps.most_common(1)[0][1] >= 3 * (len(numbers) - 1)


def is_rising(values: Sequence[str]) -> bool:
    """True for three integers or more, each greater than the one before."""
    if len(values) < COUNTS_UP_FROM or not all(_INT.fullmatch(value) for value in values):
        return False
    numbers = [int(value) for value in values]
    return all(before < after for before, after in pairwise(numbers))


# Marks of sizes


def _order_changes(cause: Cause, edit: CodeChange | None, fix: Settings | None) -> tuple[CodeChange, ...]:
    """An edit of the user's call first, if all values that changed are values there; otherwise no edit.

    What is computed before a graph break is not marked with the arguments, but torch's setting can name it.
    """
    return list_changes(edit, fix) if cause.user.is_whole else list_changes(fix or edit)


def _edit_marks(cause: Cause, mark: str) -> CodeChange | None:
    """The marks before each line that compiled an entry or recompiled, in the names there; None if one has no name."""
    sites = cause.user.sites
    edits = [insert_before(one.site, _list_marks(cause, mark, one)) for one in sites]
    return CodeChange(edits=tuple(edit for found in edits for edit in found)) if sites and all(edits) else None


def _mark_sizes(cause: Cause, fix: Settings | None) -> tuple[str, tuple[CodeChange, ...]]:
    """What makes the size and those that changed with it dynamic, in words and as changes."""
    marks, is_whole = _list_marks(cause, MARK), cause.user.is_whole or cause.call_site is None
    # A value from before a graph break may have no name where the user could mark it, but torch can name it.
    is_after_break = is_resumed(cause.recompiles[0].function)
    if fix and (is_after_break or not is_whole or not marks):
        origin = " It comes from before a graph break." if is_after_break else ""
        action = f"Make it dynamic: {fix_code(fix)}.{origin}"
    else:
        action = f"Mark it dynamic before the call: {'; '.join(marks) or f'{MARK}(tensor, dim)'}."
    return action, _order_changes(cause, _edit_marks(cause, MARK), fix)


def _list_marks(cause: Cause, mark: str, at: NamedSite | None = None) -> tuple[str, ...]:
    """The statements that mark the size, and those that changed with it; none if a mark cannot be written or fails.

    Marking one of several sizes that have to be equal has no effect, so all of them are marked or none; tensors of
    modules stay static. A tensor that does not exist at some calls, or only inside of other objects, cannot be marked
    before the first one; nor can an integer that is the same change, with which the code compares the size. `at` is a
    line of the user's; by default all lines, or the compiled function if the user's line is not known.
    """
    has_integer = any(kind not in SIZE_KINDS for kind, _ in cause.members.guards)
    if cause.facts.is_sometimes_absent or cause.facts.is_parameter or has_integer:
        return ()
    if at is None and cause.user.site is not None:
        return list_unique(text for one in cause.user.sites for text in _list_marks(cause, mark, one))
    of_modules = {
        name_any_instance(format_source(name))
        for name in cause.also_named
        if (path := parse_path(name)) is not None and path.has_attribute(*_MODULE_TENSORS)
    }
    sizes = [
        guard
        for guard in list_unique((*cause.also, *cause.members.guards))
        if guard[0] in SIZE_KINDS and len(list_sources(guard[1])) == 1
    ]
    static = [guard for guard in sizes if Path.of(guard[1]).owner.text in of_modules]
    if set(static) & set(cause.members.guards):
        return ()
    others = [source for kind, source in sizes if (kind, source) not in static]
    sources = [source for source in (cause.source, *others) if at is None or source in at.sources]
    marks = [_write_mark(source, None if at is None else at.names, mark) for source in sources]
    return () if None in marks else tuple(dict.fromkeys(text for text in marks if text is not None))


def _write_mark(source: str, names: Mapping[str, str] | None, mark: str) -> str | None:
    path = Path.of(source)
    text = write_path(path.owner.text if names is None else names.get(source))
    if not path.is_size or text is None:
        return None
    value = Path.of(text)
    is_plain = len(value.steps) <= MAX_STEPS and all(map(_PLAIN_NAME.fullmatch, value.names))
    is_private = any(step.kind == "attr" and str(step.value).startswith("_") for step in value.steps)
    return f"{mark}({text}, {path.dim})" if is_plain and not (is_private or value.is_stack_value) else None


# Rules that branch


def _advise_size(rule: Rule, cause: Cause) -> Advice:
    """A size that varies: marks in the user's names, or the setting with torch's."""
    mark = _get_mark(cause)
    if mark:
        return apply_rule(rule, cause, _OTHER_RANGE if mark in _BOUNDS else _OTHER_MARK)
    action, changes = _mark_sizes(cause, make_dynamic_fix(cause))
    zero_one = "Sizes 0 and 1 are still compiled on their own. " if ZERO_ONE & set(cause.values) else ""
    return Advice(
        rule,
        action,
        zero_one + _explain_kept(cause),
        changes,
        get_usual_ceiling(cause) if is_usual(cause) else "high",
    )


def _advise_branch(rule: Rule, cause: Cause) -> Advice:
    """A number that decides a branch: each branch has its version; the one for its first value alone is too many."""
    advice, fix = apply_rule(rule, cause, rule), make_dynamic_fix(cause)
    needed = len(cause.facts.exclusions) + len(list_crossings(cause))
    if fix is None or (needed >= len(cause.seen or cause.recompiles) and not cause.facts.spared):
        return advice
    action, changes = f"Let it vary: {fix_code(fix)}.", list_changes(fix)
    if cause.path.is_size:
        action, changes = _mark_sizes(cause, fix)
    serves = "Then the first compiled version serves its whole branch."
    action = f"{action} {serves} For the branches, {begin_lower(advice.action)}"
    return replace(advice, action=action, changes=changes, is_expected=False)


_OTHER_RANGE = Case(
    action="Pass the same min= and max= to {mark_function} at every call, with a range that includes all sizes.",
    why="The range of {marked} is compiled in, so each range is a new compile.",
    what="the range of {marked} {ranges}",
)
_OTHER_MARK = Case(
    action="Call {mark_function} in the same way for {marked} at each call, beginning with the first one.",
    why="A mark is compiled in: a tensor with another mark is a new compile. A tensor without a mark can use an entry "
    "that was compiled with one.",
    what="{mark_function} marked other dimensions of {marked}, or none",
)


def _advise_zero_one(rule: Rule, cause: Cause) -> Advice:
    """Sizes 0 and 1: unbacked, if no code depends on the value; otherwise padded, and the other sizes dynamic."""
    if find_kind(cause) == "equal_sizes":
        return apply_rule(rule, cause, _BROADCAST)
    special = sorted(ZERO_ONE & set(cause.values)) or ["0", "1"]
    sizes = f"size {special[0]}" if len(special) == 1 else "sizes 0 and 1"
    its = "its" if len(special) == 1 else "their"
    pad = f"Pad to 2 or more, or handle {sizes} outside the compiled function."
    why = f"torch always compiles {sizes} on {its} own, with or without mark_dynamic."
    why_bound = ""
    if cause.facts.has_conditions or is_specialized(cause):
        why_bound = " Its code depends on the size, so the size cannot be unbacked."
    elif cause.facts.torch_version < UNBACKED_SLICES_SINCE and cause.facts.has_number_conditions:
        why_bound = " The code combines the size with a number; before torch 2.13 such a size cannot be unbacked."
    advice = Advice(rule, pad, why + why_bound, list_changes(pad), _usual_or_medium(cause))
    if why_bound:
        return _add_larger_sizes(advice, cause)
    marks = _list_marks(cause, UNBACKED)
    can_be_set = cause.path.tensor_property and not cause.facts.has_tensor_conditions and not _is_made(cause)
    fix = make_dynamic_fix(cause, "unbacked_sources") if can_be_set else None
    way = "; ".join(marks) or fix_code(fix)
    if not way:
        return _add_larger_sizes(advice, cause)
    changes = _order_changes(cause, _edit_marks(cause, UNBACKED), fix) or advice.changes
    return replace(
        advice,
        action=f"{pad} If no code depends on whether the size is 0 or 1: {way}.",
        changes=changes,
    )


def _add_larger_sizes(advice: Advice, cause: Cause) -> Advice:
    """The advice with what makes the other sizes dynamic, if there are several of them."""
    fix = make_dynamic_fix(cause)
    if len({*cause.values} - ZERO_ONE) < 2 or is_specialized(cause) or is_branch(cause) or fix is None:
        return advice
    action, changes = _mark_sizes(cause, fix)
    if _is_made(cause):
        return replace(advice, action=action, changes=changes)
    rest = f"For the rest, {begin_lower(advice.action)}"
    return replace(advice, action=f"{action} {rest}", changes=(*changes, *advice.changes))


def _is_made(cause: Cause) -> bool:
    """True for a value that has no name at the user's call: a library makes it there, and its code is a library's."""
    return cause.user.site is not None and not cause.user.sites


_BROADCAST = Case(
    action="Give {broadcast} its full size before the call, where it is 1: expand(...).contiguous().",
    why="{broadcast} is broadcast at some calls only, and torch always compiles size 1 on its own.",
    ceiling=_usual_or_medium,
    what="{relation}",
)


#: Facts about a number that its rules name: why each value was compiled on its own, and what undoes dynamic=False.
_NUMBER_WORDS = {
    "kept": _explain_kept,
    "default": lambda cause: DYNAMIC_BY_DEFAULT if _is_kept_static(cause) else "",
}

#: A rule about an integer that varies.
_integer_rule = partial(Rule, kinds=("value",), ceiling="high", it="the integer", cost=_NOT_FOLDED)

# The rules, in the order in which they are tried

RULES = (
    Rule(
        "modules_share_code",
        ("tensor_size", "type", "identity"),
        when=lambda cause: cause.is_of_torch_module or _is_of_other_parameters(cause),
        cases=(
            Case(
                when=lambda cause: cause.is_of_torch_module,
                action="No change is needed, unless there are so many that they reach the recompile limit. {isolate}",
                why="torch calls every compiled module of torch.nn through one function, which has an entry for each "
                "class of module, and for each size of its parameters. A module of your own around them has its own "
                "code and its own entries.",
                ceiling="low",
                what="{module}",
                is_expected=True,
            ),
        ),
        action="Let the sizes of parameters vary: {dynamic}.",
        why="{name} has another size because another module runs the same code, or because it was replaced. torch "
        "compiles each size of a parameter on its own, with or without mark_dynamic.",
        ways=(_DYNAMIC,),
        words={
            "module": lambda cause: (
                f"the module {format_change(cause.values)}"
                if cause.kind == "type"
                else "another compiled module of torch.nn"
            )
        },
        ceiling="high",
        it="A parameter",
        cost=_ONE_KERNEL,
    ),
    Rule(
        "size_zero_one",
        ("equal_sizes", "tensor_size"),
        when=_is_special_size,
        advise=_advise_zero_one,
        action="Pad to 2 or more, or handle sizes 0 and 1 outside the compiled function. If no code depends on whether "
        "the size is 0 or 1, make it unbacked: mark_unbacked or unbacked_sources, for all sizes that changed with it.",
        words={
            "broadcast": lambda cause: (
                "the tensor" if (size := _find_broadcast(cause, cause.recompiles[0])) is None else size.owner.code
            ),
            "relation": _describe_relation,
        },
        cost=f"{_PADDING}; with an unbacked size, code that depends on its value raises an error",
        docs="shapes",
    ),
    Rule(
        "duck_sizing",
        ("equal_sizes",),
        action="Make the first call with different sizes, or set torch.fx.experimental._config.use_duck_shape = False.",
        why="At the first compile, torch treated equal sizes as one size (duck sizing).",
        ways=(Setting("use_duck_shape", False), "Make the first call with different sizes."),
        what="{relation}",
        words={"relation": _describe_relation},
        cost="torch no longer knows which sizes are equal, so kernels do more index arithmetic",
        docs="shapes",
    ),
    Rule(
        "size_relation",
        ("relation",),
        action="Pad, or move the branch or broadcast out of the compiled function.",
        why="The compiled code is valid only while the sizes relate as they did{line}. Each relation needs a compiled "
        "version of its own.",
        what="{relation}",
        is_expected=True,
        words={"relation": _describe_relation},
        cost=_PADDING,
        docs="shapes",
    ),
    Rule(
        "optimizer_number",
        ("value",),
        when=lambda cause: bool(cause.values) and list_types(cause) <= {"int", "float"} and _is_option(cause.path),
        cases=(
            Case(
                when=lambda cause: cause.path.names[-1] in _MOMENTUM and is_usual(cause),
                action="To keep it constant, which changes the training: cycle_momentum=False in OneCycleLR or "
                "CyclicLR.",
                why=_SCHEDULED,
                is_expected=True,
            ),
            Case(
                when=lambda cause: cause.path.names[-1] in _MOMENTUM,
                action=("{default}", ALL_DYNAMIC),
                why=_SCHEDULED,
            ),
        ),
        action="Make it a 0-dim tensor: torch.optim.Adam(params, lr=torch.tensor(lr)), on a GPU with capturable=True, "
        "which keeps the fast implementation.",
        why="A scheduler changes {name}, and fills a tensor in place. {kept}",
        it="the learning rate",
        words=_NUMBER_WORDS,
        cost=_READ,
    ),
    Rule(
        "specialized",
        ("tensor_size", "value"),
        when=_is_fixed,
        cases=(
            Case(
                when=lambda cause: _find_operator(cause) is not None,
                action="Declare the argument as SymInt in the schema of {operator}, where it is an int.",
                why="The operator{needing_line} takes {source} as an int, so each value is compiled on its own, and "
                "marking it dynamic has no effect. torch passes a number that varies only to a SymInt.",
            ),
            Case(
                when=lambda cause: _find_static_entry(cause) is not None,
                action='Remove "{static_entry}" from torch.compiler.config.static_sources, or keep the value to few '
                "values.",
                why="The setting keeps {source} static, so each of its values is compiled on its own, and "
                "dynamic_sources and dynamic=True have no effect on it.",
            ),
            Case(
                when=lambda cause: list_types(cause) == {"float"},
                action="Keep it to few values, or use operations that take a tensor.",
                why="A line of the code{needing_line} needs the number itself, as the rate of a dropout does. Each "
                "value is compiled on its own, and marking it dynamic has no effect.",
            ),
            Case(
                # torch made it dynamic when it changed, and it is one number in the next entry all the same.
                when=lambda cause: cause.facts.value_need is None and not _needs_number(cause),
                action="Remove torch._dynamo.mark_static if the program marks it; otherwise "
                + begin_lower(_FEW_VALUES),
                why="{source} stayed static after it had changed: it is marked with torch._dynamo.mark_static, a line "
                "of the code needs one value of it, or it has to equal a size of a Parameter, which torch keeps static "
                "(torch._dynamo.config.force_parameter_static_shapes). Each value is compiled on its own, and marking "
                "it dynamic has no effect.",
            ),
        ),
        action=_FEW_VALUES,
        why="A line of the code{needing_line} needs one value of {source}: a Python loop, a list, or a tensor of a "
        "fixed size. Each value is compiled on its own, and marking it dynamic has no effect.",
        words={
            "static_entry": lambda cause: _find_static_entry(cause) or "",
            "needing_line": _find_needing_line,
            "operator": lambda cause: _find_operator(cause) or "the operator",
        },
        cost=_PADDING,
        docs="shapes",
        gives_fewer=True,
    ),
    Rule(
        "branch",
        ("tensor_size", "value"),
        when=is_branch,
        advise=_advise_branch,
        action="Keep it on one side of the condition, or move the branch out of the compiled function.",
        why="{branch} Each branch needs a compiled version of its own.",
        what="{no_longer}",
        is_expected=True,
        words={
            "branch": _explain_branch,
            "no_longer": lambda cause: "" if cause.values else f"{_write_condition(cause)} no longer holds",
        },
        cost=_PADDING,
    ),
    Rule(
        "module_tensor_size",
        ("tensor_size",),
        when=_is_module_tensor,
        cases=(
            Case(
                when=lambda cause: cause.facts.is_parameter,
                action=("Let the sizes of this parameter vary: {dynamic}.", _PLAIN),
                why="It is a Parameter, and torch keeps the sizes of parameters static, with or without mark_dynamic.",
                ways=(FirstOf((_DYNAMIC, _PLAIN)), Setting("force_parameter_static_shapes", False)),
            ),
        ),
        action=("Let its size vary: {dynamic}.", "Pass {name} as an argument."),
        why="It belongs to a module, and torch keeps the sizes of module tensors static, with or without mark_dynamic.",
        ways=(FirstOf((_DYNAMIC, "Pass {name} as an argument.")),),
        ceiling="high",
        it="the tensor",
        cost=_ONE_KERNEL,
        docs="shapes",
    ),
    Rule(
        "size_changes",
        ("mark", "tensor_size"),
        advise=_advise_size,
        action="Mark it dynamic before the call, torch._dynamo.maybe_mark_dynamic(tensor, dim), and all sizes that "
        "changed with it; or name them in torch.compiler.config.dynamic_sources.",
        words={
            "mark_function": lambda cause: _MARK_FUNCTIONS.get(_get_mark(cause), "torch._dynamo.mark_dynamic"),
            "marked": lambda cause: format_expression(cause.path.parent.text),
            "ranges": lambda cause: format_change(
                list_unique(
                    text for row in cause.seen or cause.recompiles for text in (row.expected, row.actual) if text
                )
            ),
        },
        cost=_ONE_KERNEL,
        docs="shapes",
    ),
    Rule(
        "instance_constant",
        ("value",),
        when=lambda cause: (
            _is_integer(cause) and _is_of_a_module(cause) and _POSITION.search(cause.path.own_name or "") is not None
        ),
        cases=(
            Case(
                when=lambda cause: "index" in _find_uses(cause) or not cause.torch_sources,
                action=f"{_SELECTED} {{isolate}}",
                ways=(_SELECTED, "{isolate}"),
            ),
        ),
        action="Let it vary: {dynamic}. {isolate}",
        why=_OF_INSTANCES,
        ways=(_DYNAMIC, _SELECTED, "{isolate}"),
        ceiling=_usual_or_medium,
        it="the integer",
        cost=_NOT_FOLDED,
    ),
    _integer_rule(
        "counter",
        when=_counts_up,
        cases=(
            # A buffer that forward itself counts up is no way out: torch 2.13's backward sees it one step ahead. Tried
            # with `self.step += 1; return self.lin(x) * (self.step / 10)` on aot_eager and inductor: the gradients are
            # those of the next step, silently.
            Case(
                when=_is_of_a_module,
                action=_VARY_MODULE,
                why=_MODULE_WHY % "counts up",
                ways=(FirstOf((_DYNAMIC, Setting("allow_unspec_int_on_nn_module", True))),),
            ),
            Case(
                when=_is_global,
                action=_VARY_OR_PASS,
                why=_GLOBAL,
                ways=(_DYNAMIC, "Pass {name} as an argument."),
            ),
        ),
        action=("Let it vary: {dynamic}.", "{default}", ALL_DYNAMIC),
        why="{name} counts up. {kept}",
        ways=(_DYNAMIC, "{default}"),
        words=_NUMBER_WORDS,
    ),
    _integer_rule(
        "module_int",
        when=lambda cause: _is_integer(cause) and _is_of_a_module(cause),
        action=_VARY_MODULE,
        why=_MODULE_WHY % "is an integer of an nn.Module",
        ways=(FirstOf((_DYNAMIC, Setting("allow_unspec_int_on_nn_module", True))),),
    ),
    _integer_rule(
        "global_int",
        when=lambda cause: _is_integer(cause) and _is_global(cause),
        action=_VARY_OR_PASS,
        why=_GLOBAL,
        ways=(_DYNAMIC, "Pass {name} as an argument."),
    ),
    _integer_rule(
        "int_changes",
        when=_is_integer,
        cases=(
            Case(
                when=is_usual,
                action=("To save the recompile, let it vary: {dynamic}.", ALL_DYNAMIC),
                ways=(_DYNAMIC, ALL_DYNAMIC),
                ceiling=get_usual_ceiling,
            ),
        ),
        action=("Let it vary: {dynamic}.", "{default}", ALL_DYNAMIC),
        why="{kept}",
        ways=(_DYNAMIC, "{default}"),
        words=_NUMBER_WORDS,
        docs="shapes",
    ),
    Rule(
        "float_changes",
        ("value",),
        when=lambda cause: list_types(cause) in ({"float"}, {"int", "float"}),
        cases=(
            Case(
                when=lambda cause: cause.facts.has_failed,
                action=_TENSOR,
                why="torch failed to compile the version in which it varies, so dynamic=True fails at the first call.",
                ceiling=get_usual_ceiling,
            ),
            Case(
                when=lambda cause: is_usual(cause) and "condition" in _find_uses(cause),
                action=f"Keep the branch on it outside of the compiled function. {_TENSOR}",
                why="A line{line} compares it. With dynamic=True torch compiles its values one by one where it is "
                "calculated with as well.",
                ceiling=get_usual_ceiling,
            ),
            Case(
                when=lambda cause: is_usual(cause) and _can_be_tensor(cause),
                action=_TENSOR,
                ways=(_AS_TENSOR, _TENSOR, ALL_DYNAMIC),
                ceiling=get_usual_ceiling,
            ),
            Case(when=is_usual, action=ALL_DYNAMIC, ceiling=get_usual_ceiling),
            Case(when=_can_be_tensor, action=_TENSOR, ways=(_AS_TENSOR, _TENSOR, "{default}")),
        ),
        action=("{default}", ALL_DYNAMIC),
        why="{kept}",
        words=_NUMBER_WORDS,
        is_certain=is_surely_dynamic,
        ceiling="high",
        it="the float",
        cost=_READ,
        docs="shapes",
    ),
    Rule(
        "stride_changes",
        ("tensor_stride",),
        action="Use one memory layout: {name} = {name}.contiguous().",
        why="For images in channels_last, use {name}.contiguous(memory_format=torch.channels_last) at every call.",
        ways=(FirstOf((Wrap("{0}.contiguous()"), "Pass {name}.contiguous() at every call.")),),
        it="x",
        cost="a copy at each call that did not need one before",
        docs="shapes",
    ),
    Rule(
        "rank_changes",
        ("tensor_rank",),
        action="Use one number of dimensions, for example {name}.unsqueeze(0) or {name}.flatten(0, 1).",
        why="Each number of dimensions needs its own compiled version; no setting changes that.",
        it="x",
        docs="shapes",
    ),
)
