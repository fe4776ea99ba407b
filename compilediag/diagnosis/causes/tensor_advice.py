"""Advice about what a tensor is beside its shape: dtype, device, dispatch keys, gradient, class, and aliases."""

from __future__ import annotations

import re

from ...events import ANOTHER_CLASS
from ...formatting import format_change, format_expression, is_module_wrapper
from .advice import Advice, edit_argument, format_user_line, get_name, get_usual_ceiling, list_changes, write_isolation
from .cause import Cause
from .value_advice import advise_number_or_tensor, advise_optional

_TENSORS, _NUMBERS = frozenset({"Tensor", "Parameter"}), frozenset({"int", "float", "bool"})
_KEYS = re.compile(r"\w+")
#: A value in an object, such as the module in an attribute of another one: not an argument that could be converted.
_ATTRIBUTE = re.compile(r"\w+\.")


def advise_dtype(cause: Cause) -> Advice:
    """A tensor with several dtypes."""
    name = get_name(cause, "x")
    return Advice(
        "dtype_changes",
        f"Cast before the call, {name} = {name}.to(dtype), or run all calls under the same torch.autocast.",
        "Each dtype needs its own compiled version.",
        list_changes(f"If one dtype is enough, cast before the call: {name}.to(dtype)."),
        ceiling=get_usual_ceiling(cause),
    )


def advise_device(cause: Cause) -> Advice:
    """A tensor on several devices."""
    name = get_name(cause, "x")
    return Advice(
        "device_changes",
        f"Move it before the call: {name} = {name}.to(device).",
        "Each device needs its own compiled version.",
        ceiling=get_usual_ceiling(cause),
    )


def advise_dispatch_keys(cause: Cause) -> Advice:
    """A tensor with several sets of dispatch keys."""
    name = get_name(cause, "the tensor")
    keys = {key for value in cause.values for key in _KEYS.findall(value)}
    if any("ADInplaceOrView" in key for key in keys):
        action = "Use either torch.no_grad() or torch.inference_mode() for all calls, and where tensors are created."
        explanation = f"{name} was probably an inference tensor at one call and a normal tensor at another."
    elif any(key.startswith(("Python", "Functorch", "FuncTorch")) for key in keys):
        action = f"Pass {name} in the same way at every call."
        explanation = "It was a tensor subclass, or inside a functorch transform, at one call only."
    else:
        action = f"Pass {name} in one form."
        explanation = "It is another kind of tensor at each of these calls; the details name the dispatch keys."
    what = f"dispatch keys of {name} changed"
    return Advice("dispatch_keys_change", action, explanation, ceiling=get_usual_ceiling(cause), what_changed=what)


def advise_requires_grad(cause: Cause) -> Advice:
    """A tensor with and without gradient. detach() is no way out: a gradient that is needed would be lost."""
    name = get_name(cause, "x")
    form = "{0} if {0}.requires_grad else {0}.detach().requires_grad_()"
    two = "Tensors with and without gradient need separate compiled versions, at most two."
    if cause.facts.is_parameter or "." in cause.source.removesuffix(".requires_grad"):
        same = f"To compile once, keep requires_grad the same for {name} at every call."
        return Advice("requires_grad_changes", same, two, list_changes(same), get_usual_ceiling(cause))
    pass_it = f"To compile once, pass {name}.detach().requires_grad_() where it has no gradient."
    return Advice(
        "requires_grad_changes",
        pass_it,
        f"{two} No gradient that is needed is lost that way; calls that had none record one.",
        list_changes(edit_argument(cause, form) or pass_it),
        get_usual_ceiling(cause),
    )


def advise_type(cause: Cause) -> Advice:
    """A value of several classes."""
    name = get_name(cause)
    if any(_get_class_name(row.expected) == _get_class_name(row.actual) for row in cause.recompiles):
        return Advice(
            "fresh_class",
            "Define the class once, at module level.",
            f"The class of {name} is probably created again in a function each time.",
        )
    if cause.source == "fn" and is_module_wrapper(*cause.places[0][:2]):
        return _advise_torch_modules(cause)
    if "NoneType" in cause.values:
        return _advise_weak_reference(name) if name.endswith("()") else advise_optional(cause)
    classes = {_get_class_name(value) for value in cause.values}
    if classes & _TENSORS and classes & _NUMBERS and classes <= _TENSORS | _NUMBERS:
        return advise_number_or_tensor(cause)
    if classes == _TENSORS:
        value = "x" if "(" in name else name
        plain = f"Pass a plain tensor at every call: {value}.view_as({value})."
        return Advice(
            "type_changes",
            plain,
            "It is a Parameter at some calls, and each class needs its own compiled version. A view of it is a plain "
            "tensor with the same values and gradients.",
            list_changes(edit_argument(cause, "{0}.view_as({0})") or plain),
            get_usual_ceiling(cause),
        )
    isolate = write_isolation(cause) if _ATTRIBUTE.match(cause.source) else ""
    convert = "Pass one type: convert before the call."
    action = isolate or convert
    return Advice(
        "type_changes",
        action,
        f"Each class of {name} needs its own compiled version.",
        list_changes(action),
        get_usual_ceiling(cause),
    )


def _advise_torch_modules(cause: Cause) -> Advice:
    return Advice(
        "modules_share_code",
        "No change is needed, unless there are so many that they reach the recompile limit.",
        "torch calls every compiled module of torch.nn through one function, which has an entry per class of module. A "
        "module of your own around them has its own code and its own entries.",
        ceiling="low",
        what_changed=f"the module {format_change(cause.values)}",
        is_expected=True,
    )


def _advise_weak_reference(name: str) -> Advice:
    return Advice(
        "dead_reference",
        "Keep the object alive as long as the compiled code is called, or check outside the compiled function whether "
        "it exists.",
        f"{name} is a weak reference, and its object is gone.",
        ceiling="medium",
        what_changed=f"{name} was deallocated",
    )


def _get_class_name(text: str | None) -> str:
    """The bare name of a class: another class with the same name was created again."""
    return (text or "").removesuffix(ANOTHER_CLASS).rpartition(".")[2]


def advise_alias(cause: Cause) -> Advice:
    """Arguments that are one tensor at some calls."""
    where = format_user_line(cause).strip()
    return Advice(
        "alias_changes",
        "If the tensor need not be shared, pass a copy: tensor.clone().",
        "The same tensor was passed twice at some calls, and different tensors at others; each case needs its own "
        f"compiled version.{f' Used here: {where}.' if where else ''}",
        ceiling=get_usual_ceiling(cause),
        what_changed=f"{format_expression(cause.source) or 'arguments'}: same tensor at some calls only",
    )
