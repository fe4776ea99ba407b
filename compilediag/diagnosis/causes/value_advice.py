"""Advice about Python values that are compiled in: numbers, flags, strings, None."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ..settings import fix_code
from .advice import (
    Advice,
    advise_branch,
    advise_specialized,
    edit_argument,
    format_user_line,
    get_name,
    get_usual_ceiling,
    is_branch,
    is_specialized,
    list_changes,
    make_dynamic_fix,
)
from .cause import Cause

_INT = re.compile(r"-?\d{1,40}")
_FLOAT = re.compile(r"-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf)|nan", re.IGNORECASE)
_OPTIMIZER_NUMBER = re.compile(r"param_groups\[\d+\]\['\w+'\]$|(^|[._])lr$")
#: torch's hint on an integer of an nn.Module.
_MODULE_INT = "integer attributes of the nn.Module"
#: Fewer values do not show that something counts up.
COUNTS_UP_FROM = 3


def get_value_type(value: str) -> str:
    """bool, int, float, str, none, tensor or other: the type of the value that this text describes."""
    if value in ("True", "False"):
        return "bool"
    if value == "None":
        return "none"
    if _INT.fullmatch(value):
        return "int"
    if _FLOAT.fullmatch(value):
        return "float"
    if value.startswith("Tensor "):
        return "tensor"
    return "str" if value[:1] in ("'", '"') else "other"


def advise_value(cause: Cause) -> Advice:
    """A value that varies, by the types of what was seen."""
    if is_specialized(cause):
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
        return _advise_number_or_tensor(cause)
    return _advise_constant(cause)


def _advise_flag(cause: Cause) -> Advice:
    ceiling = "low" if cause.max_per_function <= 2 else "medium"
    if cause.source.endswith(".training") or cause.source == "training":
        return Advice(
            "train_eval",
            "No change is needed, unless it switches back and forth before both modes have run once.",
            "One compiled version for train() and one for eval() is expected.",
            ceiling=ceiling,
        )
    return Advice(
        "flag",
        "No change is needed.",
        f"One compiled version per value of {get_name(cause)} is expected, so at most two.",
        ceiling=ceiling,
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
    is_counting = is_counter(cause.values) and cause.instance_count == 1
    fix = make_dynamic_fix(cause) or {"allow_unspec_int_on_nn_module": True}
    return Advice(
        "counter" if is_counting else "module_int",
        f"{'Count' if is_counting else 'Set it'} outside the compiled function and keep it in a tensor buffer, or let "
        f"it vary: {fix_code(fix)}.",
        f"{name} {'counts up' if is_counting else 'is an integer of an nn.Module'}, and each value is a new compile. "
        "(A buffer that the compiled function itself changes can give wrong gradients.)",
        list_changes(fix, f"{'Count' if is_counting else 'Set it'} outside the compiled function, in a tensor buffer."),
    )


def _advise_global_integer(cause: Cause, name: str) -> Advice:
    return Advice(
        "counter" if is_counter(cause.values) else "global_int",
        f"Pass {name} as an argument, or make it a 0-dim tensor.",
        "torch never makes a global integer dynamic by itself.",
        list_changes(make_dynamic_fix(cause), f"Pass {name} as an argument, or make it a 0-dim tensor."),
    )


def _advise_integer_argument(cause: Cause, name: str) -> Advice:
    fix = make_dynamic_fix(cause)
    if cause.max_per_function == 1:
        return Advice(
            "int_changes",
            f"To save the recompile, pass torch.tensor({name}).",
            "torch makes an integer dynamic by itself after its first change, so one recompile is usual.",
            list_changes(fix, edit_argument(cause, "torch.tensor({})")),
            get_usual_ceiling(cause),
        )
    is_counting = is_counter(cause.values)
    return Advice(
        "counter" if is_counting else "int_changes",
        f"Compile with dynamic=None, or pass torch.tensor({name}).",
        f"{f'{name} counts up. ' if is_counting else ''}By default torch makes an integer dynamic after its first "
        "change, so the function is probably compiled with dynamic=False, or its code needs the number itself.",
        list_changes(fix, edit_argument(cause, "torch.tensor({})")),
    )


def _advise_float(cause: Cause) -> Advice:
    name = get_name(cause, "the float")
    action = f"Pass a 0-dim tensor: torch.tensor({name})."
    if _OPTIMIZER_NUMBER.search(cause.source):
        action = f"Make {name} a 0-dim tensor, as in torch.optim.Adam(params, lr=torch.tensor(lr))."
    if cause.max_per_function == 1:
        explanation = "torch makes a float dynamic by itself after its first change, so one recompile is usual."
        return Advice("float_changes", action, explanation, ceiling=get_usual_ceiling(cause))
    return Advice(
        "float_changes",
        action,
        "By default torch makes a float dynamic after its first change, so the function is probably compiled with "
        "dynamic=False, torch._dynamo.config.specialize_float is True, or its code needs the number.",
    )


def _advise_string(cause: Cause) -> Advice:
    return Advice(
        "string_changes",
        "Keep it to few values; if it varies freely (an id, a path), keep it out of the compiled function.",
        f"Strings are compiled in: one compiled version per value of {get_name(cause)}.",
        ceiling=get_usual_ceiling(cause),
    )


def _advise_number_or_tensor(cause: Cause) -> Advice:
    name = get_name(cause)
    return Advice(
        "type_changes",
        f"Always pass a tensor: torch.as_tensor({name}).",
        f"{name} is a number at some calls and a tensor at others: one compiled version for each, and one more for "
        "every other number.",
        ceiling=get_usual_ceiling(cause),
    )


def advise_optional(cause: Cause) -> Advice:
    """A value that is None at some calls."""
    return Advice(
        "optional_argument",
        f"To compile once, always pass {get_name(cause)}, with a neutral value instead of None.",
        "It is given at some calls and None at others: one compiled version for each is expected.",
        ceiling=get_usual_ceiling(cause),
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
