"""Python values that the compiled code has built in: numbers, flags, strings, None."""

from __future__ import annotations

import ast
import re
from collections import Counter

from ..finding import fix_code
from .advice import Advice, at_line, branch, dynamic_fix, is_branch, is_specialized, name_of, specialized, usual_price
from .grouping import Cause

_INT = re.compile(r"-?\d{1,40}")
_FLOAT = re.compile(r"-?(?:\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf)|nan", re.IGNORECASE)
#: torch's hint on an integer of an nn.Module.
_MODULE_INT = "integer attributes of the nn.Module"
COUNTS_UP_FROM = 3


def type_of(value: str) -> str:
    """bool, int, float, str, none or other: the type of what this text is the repr of."""
    if value in ("True", "False"):
        return "bool"
    if value == "None":
        return "none"
    if _INT.fullmatch(value):
        return "int"
    if _FLOAT.fullmatch(value):
        return "float"
    return "str" if value[:1] in ("'", '"') else "other"


def advise_value(cause: Cause) -> Advice:
    """What to do about a value that varies, by the types of what was seen."""
    if is_specialized(cause):
        return specialized(cause)
    if is_branch(cause):
        return branch(cause)
    types = {type_of(value) for value in cause.values}
    if types == {"bool"}:
        return _flag(cause)
    if types == {"int"}:
        return _integer(cause)
    if types == {"float"} or types == {"int", "float"}:
        return _float(cause)
    if types == {"str"}:
        return _string(cause)
    if "none" in types:
        return optional(cause)
    if types <= {"int", "float", "bool", "other"} and _has_tensor(cause.values) and types != {"other"}:
        return _number_or_tensor(cause)
    return _built_in(cause)


def _flag(cause: Cause) -> Advice:
    if cause.source.endswith(".training") or cause.source == "training":
        text = (
            "One entry for train() and one for eval() is expected; nothing to fix unless it switches back and forth "
            "before both have run once."
        )
        return Advice("train_eval", text, None, "low" if cause.most <= 2 else "medium")
    text = f"One entry a value of a flag is expected, so at most two for {name_of(cause)}; nothing to fix beyond."
    return Advice("flag", text, None, "low" if cause.most <= 2 else "medium")


def _integer(cause: Cause) -> Advice:
    name = name_of(cause, "the integer")
    if any(_MODULE_INT in reason for reason in cause.reasons):
        return _module_integer(cause, name)
    if any("G['" in reason.split("#", 1)[0] for reason in cause.reasons):
        return _global_integer(cause, name)
    return _int_argument(cause, name)


def _module_integer(cause: Cause, name: str) -> Advice:
    """A buffer that forward itself counts up is no way out: torch 2.13's backward sees it one step ahead.

    Tried with `self.step += 1; return self.lin(x) * (self.step / 10)` on aot_eager and inductor: the gradients are
    those of the next step, silently.
    """
    counter = is_counter(cause.values) and len(cause.sources) == 1
    kind = f"{name} counts up: each" if counter else f"{name}, an integer of an nn.Module, is built in: each new"
    fix = dynamic_fix(cause) or {"allow_unspec_int_on_nn_module": True}
    text = (
        f"{kind} value is a new compile. {'Count' if counter else 'Set it'} outside of the compiled function and keep "
        f"it in a tensor buffer, or let it vary: {fix_code(fix)}. (A buffer that the compiled function itself changes "
        "can give wrong gradients.)"
    )
    return Advice("counter" if counter else "module_int", text, fix)


def _global_integer(cause: Cause, name: str) -> Advice:
    text = (
        f"torch never makes a global integer dynamic by itself: pass {name} as an argument, or make it a 0-dim tensor."
    )
    return Advice("counter" if is_counter(cause.values) else "global_int", text, dynamic_fix(cause))


def _int_argument(cause: Cause, name: str) -> Advice:
    fix = dynamic_fix(cause)
    if cause.most == 1:
        text = (
            "One recompile is the usual price of a first change: torch then makes an integer dynamic by itself. "
            f"torch.tensor({name}) saves it."
        )
        return Advice("int_changes", text, fix, usual_price(cause))
    counted = f"{name} counts up. " if is_counter(cause.values) else ""
    text = (
        f"{counted}torch makes an integer dynamic after its first change unless told otherwise, so likely this is "
        "compiled with dynamic=False, or the code needs the number itself. Use dynamic=None, or pass "
        f"torch.tensor({name})."
    )
    return Advice("counter" if counted else "int_changes", text, fix)


def _float(cause: Cause) -> Advice:
    name = name_of(cause, "the float")
    tensor = f"pass a 0-dim tensor: torch.tensor({name})"
    if re.search(r"param_groups\[\d+\]\['\w+'\]$|(^|[._])lr$", cause.source):
        tensor = f"make it a 0-dim tensor, as in torch.optim.Adam(params, lr=torch.tensor(lr)) ({name})"
    if cause.most == 1:
        text = (
            "One recompile is the usual price of a first change: torch then makes a float dynamic by itself. To save "
            f"it, {tensor}."
        )
        return Advice("float_changes", text, None, usual_price(cause))
    text = (
        f"To compile once, {tensor}. torch makes a float dynamic after its first change unless told otherwise, so "
        "likely this is compiled with dynamic=False, torch._dynamo.config.specialize_float is True, or the code "
        "needs the number."
    )
    return Advice("float_changes", text)


def _string(cause: Cause) -> Advice:
    text = (
        f"Strings are built into the code: one entry a value of {name_of(cause)}. Few values are fine; if it varies "
        "freely (an id, a path), keep it out of the compiled function."
    )
    return Advice("string_changes", text, None, usual_price(cause))


def _has_tensor(values: tuple[str, ...]) -> bool:
    return any(value.startswith("Tensor ") for value in values)


def _number_or_tensor(cause: Cause) -> Advice:
    name = name_of(cause)
    text = (
        f"{name} is a number at some calls and a tensor at others: one entry for each, and one more for each other "
        f"number. Always pass a tensor: torch.as_tensor({name})."
    )
    return Advice("type_changes", text, None, usual_price(cause))


def optional(cause: Cause) -> Advice:
    text = (
        f"{name_of(cause)} is given at some calls and None at others: one entry for each is expected. To have one, "
        "always pass it, with a neutral value in place of None."
    )
    return Advice("optional_argument", text, None, usual_price(cause))


def _built_in(cause: Cause) -> Advice:
    if _lengthens(cause.values):
        text = (
            f"{name_of(cause)} grows, and its content is built in: each is a new compile. Keep it out of the function."
        )
        return Advice("growing_container", text, None, usual_price(cause))
    text = (
        f"The compiled code has the value of {name_of(cause)} built in{at_line(cause)}: one entry a value. Keep it to "
        "few values, or pass what varies as a tensor."
    )
    return Advice("value_changes", text, None, usual_price(cause))


def is_counter(values: tuple[str, ...]) -> bool:
    """True for integers that go up by the same step nearly every time."""
    if not counts_up(values):
        return False
    numbers = [int(v) for v in values]
    steps = Counter(b - a for a, b in zip(numbers, numbers[1:], strict=False))
    return 4 * steps.most_common(1)[0][1] >= 3 * (len(numbers) - 1)


def _lengthens(values: tuple[str, ...]) -> bool:
    """True for containers, told by their content, of which each is longer than the one before."""
    try:
        lengths = [len(ast.literal_eval(value)) for value in values if value[:1] in ("{", "[", "(")]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return len(lengths) == len(values) and counts_up(tuple(map(str, lengths)))


def counts_up(values: tuple[str, ...]) -> bool:
    """True for three integers or more, each greater than the one before."""
    if len(values) < COUNTS_UP_FROM or not all(_INT.fullmatch(v) for v in values):
        return False
    numbers = [int(v) for v in values]
    return all(a < b for a, b in zip(numbers, numbers[1:], strict=False))
