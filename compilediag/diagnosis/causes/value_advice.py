"""Advice about Python values that are compiled in: numbers, flags, strings, None."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ...formatting import format_expression
from ..settings import fix_code
from .advice import (
    DYNAMIC_BY_DEFAULT,
    Advice,
    advise_branch,
    advise_specialized,
    advise_static_source,
    edit_argument,
    format_user_line,
    get_name,
    get_usual_ceiling,
    is_branch,
    is_specialized,
    is_usual,
    list_changes,
    list_static_reasons,
    make_dynamic_fix,
    write_isolation,
)
from .cause import Cause, get_value_type
from .value_uses import find_uses

_INT = re.compile(r"-?\d{1,40}")
_OPTIMIZER_NUMBER = re.compile(r"param_groups\[\d+\]\['\w+'\](?:\[\d\])?$|(^|[._])lr$")
_MOMENTUM = re.compile(r"\['(?:betas|momentum)'\](?:\[\d\])?$")
#: The name of an integer that says which of several modules this one is.
_POSITION = re.compile(r"(?:^|[._])(?:layer|block|level|stage|head|module|expert)?_?(?:idx|index|number|num|id)$")
#: torch's hint on an integer of an nn.Module.
_MODULE_INT = "integer attributes of the nn.Module"
#: What saves the first change of a number that no setting and no edit of a call can make dynamic.
ALL_DYNAMIC = "To save the recompile, compile with dynamic=True, which makes all sizes and numbers dynamic at once."
_FEW_STRINGS = "Keep it to few values; if it varies freely (an id, a path), keep it out of the compiled function."
_ADAPTERS = (
    "To switch adapters without a recompile, keep one adapter's name and copy the other's weights into it in place "
    "(load_state_dict, or peft.utils.hotswap.hotswap_adapter)."
)
#: Fewer values do not show that something counts up.
COUNTS_UP_FROM = 3


def advise_value(cause: Cause) -> Advice:
    """A value that varies, by the types of what was seen."""
    if _is_of_optimizer(cause):
        return _advise_optimizer_number(cause)
    if (by_setting := advise_static_source(cause)) is not None:
        return by_setting
    if is_specialized(cause) or (not is_usual(cause) and "range" in _find_uses(cause)):
        return advise_specialized(cause)
    if is_branch(cause):
        return advise_branch(cause)
    types = {get_value_type(value) for value in cause.values}
    if types == {"bool"}:
        return _advise_flag(cause)
    if types == {"int"}:
        return _advise_integer(cause)
    if types in ({"float"}, {"int", "float"}):
        return _advise_float(cause)
    if types == {"str"}:
        return _advise_string(cause)
    if "none" in types:
        return advise_optional(cause)
    if "tensor" in types and types & {"int", "float", "bool"} and not types & {"str"}:
        return advise_number_or_tensor(cause)
    return _advise_constant(cause)


def _find_uses(cause: Cause) -> frozenset[str]:
    """What the user's line that made the guard does with the value."""
    return find_uses(cause.user_code, format_expression(cause.source))


def _advise_flag(cause: Cause) -> Advice:
    ceiling = "low" if cause.max_per_function <= 2 else "medium"
    if cause.source.endswith(".training") or cause.source == "training":
        return Advice(
            "train_eval",
            "No change is needed, unless it switches back and forth before both modes have run once.",
            "One compiled version for train() and one for eval() is expected.",
            ceiling=ceiling,
            is_expected=True,
        )
    return Advice(
        "flag",
        "No change is needed.",
        f"One compiled version per value of {get_name(cause)} is expected, so at most two.",
        ceiling=ceiling,
        is_expected=True,
    )


def _advise_integer(cause: Cause) -> Advice:
    name = get_name(cause, "the integer")
    if any(_MODULE_INT in reason for reason in cause.reasons):
        return _advise_module_integer(cause, name)
    if any("G['" in reason.split("#", 1)[0] for reason in cause.reasons):
        return _advise_global_integer(cause, name)
    return _advise_integer_argument(cause, name)


def _advise_module_integer(cause: Cause, name: str) -> Advice:
    """An integer attribute of a module.

    A buffer that forward itself counts up is no way out: torch 2.13's backward sees it one step ahead. Tried with
    `self.step += 1; return self.lin(x) * (self.step / 10)` on aot_eager and inductor: the gradients are those of the
    next step, silently.
    """
    if _POSITION.search(cause.source):
        return _advise_position(cause, name)
    is_counting = is_counter(cause.values) and cause.instance_count == 1
    fix = make_dynamic_fix(cause) or {"allow_unspec_int_on_nn_module": True}
    return Advice(
        "counter" if is_counting else "module_int",
        f"Let it vary: {fix_code(fix)}.",
        f"{name} {'counts up' if is_counting else 'is an integer of an nn.Module'}, and each value is a new compile. "
        "(A tensor buffer that the compiled function itself changes can give wrong gradients.)",
        list_changes(fix),
    )


def _advise_position(cause: Cause, name: str) -> Advice:
    """An integer that each instance of a module has for itself, such as the index of a layer."""
    select = "Pass what it selects instead of the index: layer(x, cache[i]) instead of cache[self.layer_idx]."
    is_index = "index" in _find_uses(cause)
    fix = None if is_index else make_dynamic_fix(cause)
    action = select if fix is None else f"Let it vary: {fix_code(fix)}."
    isolate = write_isolation(cause)
    return Advice(
        "instance_constant",
        " ".join(filter(None, (action, isolate))),
        f"{name} is probably a constant of each module, and all of them share one code: one compiled version for each.",
        list_changes(fix, select, isolate),
        get_usual_ceiling(cause, "medium"),
    )


def _advise_global_integer(cause: Cause, name: str) -> Advice:
    fix, pass_it = make_dynamic_fix(cause), f"Pass {name} as an argument."
    return Advice(
        "counter" if is_counter(cause.values) else "global_int",
        f"Let it vary: {fix_code(fix)}; or pass {name} as an argument." if fix else pass_it,
        "torch never makes a global integer dynamic by itself. As an argument it is dynamic after its first change.",
        list_changes(fix, pass_it),
    )


def _advise_integer_argument(cause: Cause, name: str) -> Advice:
    """An integer that is passed in.

    A tensor is no way out: as a size, the end of a slice or the limit of a loop it breaks the graph, or torch runs the
    function eagerly without a word.
    """
    fix = make_dynamic_fix(cause)
    setting = f"Let it vary: {fix_code(fix)}." if fix else ""
    if is_usual(cause):
        return Advice(
            "int_changes",
            f"To save the recompile, {setting[0].lower()}{setting[1:]}" if setting else ALL_DYNAMIC,
            "torch makes an integer dynamic by itself after its first change, so one recompile is usual.",
            list_changes(fix, ALL_DYNAMIC),
            get_usual_ceiling(cause),
        )
    is_counting = is_counter(cause.values)
    reasons = list_static_reasons("torch._dynamo.config.specialize_int is True", "its code needs the number")
    return Advice(
        "counter" if is_counting else "int_changes",
        setting or DYNAMIC_BY_DEFAULT,
        f"{f'{name} counts up. ' if is_counting else ''}By default torch makes an integer dynamic after its first "
        f"change, so {reasons}.",
        list_changes(fix, DYNAMIC_BY_DEFAULT),
    )


def _advise_float(cause: Cause) -> Advice:
    name = get_name(cause, "the float")
    can_be_tensor = _find_uses(cause) == {"operand"}
    tensor = f"Pass a 0-dim tensor: torch.tensor({name})." if can_be_tensor else ""
    edit = edit_argument(cause, "torch.tensor({0})") if can_be_tensor else None
    if is_usual(cause):
        explanation = "torch makes a float dynamic by itself after its first change, so one recompile is usual."
        changes = list_changes(edit, tensor, ALL_DYNAMIC)
        return Advice("float_changes", tensor or ALL_DYNAMIC, explanation, changes, get_usual_ceiling(cause))
    keep = DYNAMIC_BY_DEFAULT
    reasons = list_static_reasons("torch._dynamo.config.specialize_float is True", "its code needs the number")
    return Advice(
        "float_changes",
        tensor or keep,
        f"By default torch makes a float dynamic after its first change, so {reasons}, as the rate of a dropout or a "
        "condition does; then keep it to few values.",
        list_changes(edit, tensor, keep),
    )


def _is_of_optimizer(cause: Cause) -> bool:
    """True for a number in the options of an optimizer of torch, or a learning rate."""
    types = {get_value_type(value) for value in cause.values}
    return bool(types) and types <= {"int", "float"} and bool(_OPTIMIZER_NUMBER.search(cause.source))


def _advise_optimizer_number(cause: Cause) -> Advice:
    """A number that a scheduler changes: the learning rate, or with it the momentum or betas."""
    name = get_name(cause, "the learning rate")
    usual = (
        "torch makes a float dynamic by itself after its first change, so one recompile is usual."
        if is_usual(cause)
        else f"By default torch makes a float dynamic after its first change, so {list_static_reasons()}."
    )
    if _MOMENTUM.search(cause.source):
        keep = "To keep it constant, which changes the training: cycle_momentum=False in OneCycleLR or CyclicLR."
        return Advice(
            "optimizer_number",
            keep if is_usual(cause) else DYNAMIC_BY_DEFAULT,
            f"A scheduler changes {name}. A tensor is no way out: the scheduler replaces it by a float. {usual}",
            ceiling=get_usual_ceiling(cause),
            is_expected=is_usual(cause),
        )
    tensor = (
        "Make it a 0-dim tensor: torch.optim.Adam(params, lr=torch.tensor(lr)), on a GPU with capturable=True, which "
        "keeps the fast implementation."
    )
    return Advice(
        "optimizer_number",
        tensor,
        f"A scheduler changes {name}, and fills a tensor in place. {usual}",
        list_changes(tensor),
        get_usual_ceiling(cause),
    )


def _advise_string(cause: Cause) -> Advice:
    return Advice(
        "string_changes",
        _FEW_STRINGS,
        f"Strings are compiled in: one compiled version per value of {get_name(cause)}."
        + (f" {_ADAPTERS}" if "adapter" in cause.source else ""),
        list_changes(_ADAPTERS if "adapter" in cause.source else None, _FEW_STRINGS),
        ceiling=get_usual_ceiling(cause),
    )


def advise_number_or_tensor(cause: Cause) -> Advice:
    """A value that is a number at some calls and a tensor at others."""
    name = get_name(cause)
    return Advice(
        "type_changes",
        f"Always pass a tensor: torch.as_tensor({name}).",
        f"{name} is a number at some calls and a tensor at others: one compiled version for each, and one more for "
        "every other number.",
        list_changes(edit_argument(cause, "torch.as_tensor({0})"), f"Always pass a tensor: torch.as_tensor({name})."),
        get_usual_ceiling(cause),
    )


def advise_optional(cause: Cause) -> Advice:
    """A value that is None at some calls."""
    name = get_name(cause)
    return Advice(
        "optional_argument",
        f"No change is needed. For one compiled version, always pass {name}, with a neutral value instead of None.",
        "It is given at some calls and None at others: one compiled version for each is expected.",
        ceiling=get_usual_ceiling(cause),
        is_expected=True,
    )


def _advise_constant(cause: Cause) -> Advice:
    name = get_name(cause)
    if _is_lengthening(cause.values):
        return Advice(
            "growing_container",
            f"Keep {name} out of the compiled function.",
            "It grows, and its content is compiled in, so each change is a new compile.",
            ceiling=get_usual_ceiling(cause),
        )
    return Advice(
        "value_changes",
        f"Keep {name} to few values, or pass what varies as a tensor.",
        f"Its value is compiled in{format_user_line(cause)}: one compiled version per value.",
        ceiling=get_usual_ceiling(cause),
    )


def is_counter(values: Sequence[str]) -> bool:
    """True for integers that rise by the same step nearly every time."""
    if not is_rising(values):
        return False
    numbers = [int(value) for value in values]
    steps = Counter(after - before for before, after in pairwise(numbers))
    return 4 * steps.most_common(1)[0][1] >= 3 * (len(numbers) - 1)


def _is_lengthening(values: Sequence[str]) -> bool:
    """True for containers, shown by their content, of which each is longer than the one before."""
    try:
        lengths = [len(ast.literal_eval(value)) for value in values if value[:1] in ("{", "[", "(")]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return len(lengths) == len(values) and is_rising([str(length) for length in lengths])


def is_rising(values: Sequence[str]) -> bool:
    """True for three integers or more, each greater than the one before."""
    if len(values) < COUNTS_UP_FROM or not all(_INT.fullmatch(value) for value in values):
        return False
    numbers = [int(value) for value in values]
    return all(before < after for before, after in pairwise(numbers))
