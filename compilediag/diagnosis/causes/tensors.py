"""What a tensor is, beside its shape: dtype, device, dispatch keys, gradient, class, and which other one it is."""

from __future__ import annotations

import re

from .. import wording
from .advice import Advice, at_line, name_of, usual_price
from .grouping import Cause
from .values import optional

_KEYS = re.compile(r"\w+")


def advise_dtype(cause: Cause) -> Advice:
    name = name_of(cause, "x")
    text = (
        f"Each dtype needs its own entry. If one is enough, cast before the call ({name} = {name}.to(dtype)) or run "
        "all calls under the same torch.autocast."
    )
    return Advice("dtype_changes", text, None, usual_price(cause))


def advise_device(cause: Cause) -> Advice:
    name = name_of(cause, "x")
    text = f"Each device needs its own entry. If one is enough, move it before the call: {name} = {name}.to(device)."
    return Advice("device_changes", text, None, usual_price(cause))


def advise_dispatch_keys(cause: Cause) -> Advice:
    name = name_of(cause, "the tensor")
    changed = {key for value in cause.values for key in _KEYS.findall(value)}
    what = f"dispatch keys of {name} changed"
    if any("ADInplaceOrView" in key for key in changed):
        text = (
            f"{name} was likely an inference tensor at one call and an ordinary one at another. Use one of "
            "torch.no_grad() and torch.inference_mode() for all calls, and where tensors are made."
        )
    elif any(key.startswith(("Python", "Functorch", "FuncTorch")) for key in changed):
        text = f"{name} was a tensor subclass or inside a functorch transform at one call only: call it one way."
    else:
        text = f"{name} is another kind of tensor at each of these calls (torch names the keys); pass it in one form."
    return Advice("dispatch_keys_change", text, None, usual_price(cause), what)


def advise_requires_grad(cause: Cause) -> Advice:
    name = name_of(cause, "x")
    text = (
        f"With and without gradient are separate entries. If {name} needs none, pass {name}.detach() at every call; "
        "if it does, keep requires_grad the same."
    )
    return Advice("requires_grad_changes", text, None, usual_price(cause))


def advise_type(cause: Cause) -> Advice:
    name = name_of(cause)
    if any(_class_name(row["expected"]) == _class_name(row["actual"]) for row in cause.rows):
        text = f"{name}'s class is likely made anew in a function each time: define the class once, at module level."
        return Advice("fresh_class", text)
    if cause.source == "fn" and wording.is_wrapper(*cause.places[0][:2]):
        return _modules_of_torch(cause)
    if "NoneType" in cause.values:
        return _died(name) if name.endswith("()") else optional(cause)
    text = (
        f"Each class that {name} has needs its own entry. Pass one kind: convert before the call, for example a "
        "Parameter or tensor subclass to a plain tensor, or an int to a float."
    )
    return Advice("type_changes", text, None, usual_price(cause))


def _modules_of_torch(cause: Cause) -> Advice:
    text = (
        "torch calls every compiled module of torch.nn through one function of its own, and each class of them is an "
        "entry there: nothing to fix, unless there are so many that they reach the recompile limit. A module of "
        "your own around them has code, and entries, of its own."
    )
    return Advice("modules_share_code", text, None, "low", f"the module {wording.was_then(cause.values)}")


def _died(name: str) -> Advice:
    text = (
        f"{name} is a weak reference, and what it referred to is gone: keep that alive for as long as the compiled "
        "code is called, or look outside of it whether it is there."
    )
    return Advice("dead_reference", text, None, "medium", f"{name} was deallocated")


def _class_name(told: str | None) -> str:
    """The bare name: a class of the same name that does not fit is another class, made anew."""
    return (told or "").removesuffix(" (another class)").rpartition(".")[2]


def advise_alias(cause: Cause) -> Advice:
    text = (
        "The same tensor was passed in two places at some calls and different ones at others; each needs its own "
        "entry. If it need not be shared, pass a copy: tensor.clone()."
    )
    what = f"{wording.spoken(cause.source) or 'arguments'}: same tensor at some calls only"
    return Advice("alias_changes", text + _line(cause), None, usual_price(cause), what)


def _line(cause: Cause) -> str:
    where = at_line(cause).strip()
    return f" Used here: {where}." if where else ""
