"""Rules about guards on flags, strings and other objects, on what a tensor is beside its shape, and on modes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

from ...decode.guards.path import Path, format_expression
from ...formatting import format_change, format_first_line, format_line, format_names, get_class_name
from ..causes.cause import Cause, list_unique
from ..rule import Advice, Case, Rule, Wrap, apply_rule, format_user_line, get_name, write_isolation
from ..source_edits import write_path
from .guards_on_numbers import is_rising, list_types

_TENSORS, _NUMBERS = frozenset({"Tensor", "Parameter"}), frozenset({"int", "float", "bool"})
_KEYS = re.compile(r"\w+")
#: A value in an object, such as the module in an attribute of another one: not an argument that could be converted.
_ATTRIBUTE = re.compile(r"\w+\.")
#: Where a module has its parts, in torch's names of them.
_PARTS = ("_modules", "_parameters", "_buffers")
#: Attributes of a torch optimizer: its state for each parameter, its groups of parameters.
_STATE, _PARAMETER_GROUPS = "state", "param_groups"
_FRESH = re.compile(r"<lambda>|<locals>|functools\.partial")
#: What a guard says of a state whose values torch does not report.
_NO_VALUES = ("unchanged", "changed")

_STACK = "torch.stack copies its parts at each call"
_ADAPTERS = (
    "To switch adapters without a recompile, keep one adapter's name and copy the other's weights into it in place "
    "(load_state_dict, or peft.utils.hotswap.hotswap_adapter)."
)
_ADAPTER = re.compile(r"adapter|lora", re.IGNORECASE)
_FEW_STRINGS = "Keep it to few values; if it varies freely (an id, a path), keep it out of the compiled function."
_EACH_STRING = "Strings are compiled in: one compiled version per value of {name}."
_ALL_GROUPS = "Add all groups of parameters before the first compiled step."
_FIXED_LENGTH = "Keep {container} at a fixed length, or pass only the part that is used."
_EMPTIED = "Empty {container} before each call, or add to it outside of the compiled function."
_ADDS = re.compile(r"\.(?:append|extend|insert|appendleft)\(")
_EACH_LENGTH = "Each length is a new compile, and no setting changes that."
#: What an attribute is before it is filled, beside None.
_UNFILLED = (("0",), ("False",), ("absent",))
_CHANGE_FIRST = (
    "If {module} was changed after its first call, change it before torch.compile: prune it, parametrize it, add, "
    "replace or remove its modules first."
)
_TWO_GRADIENTS = "Tensors with and without gradient need separate compiled versions, at most two."


# What the guards show


def _is_lengthening(values: Sequence[str]) -> bool:
    """True for containers, shown by their content, of which each is longer than the one before."""
    try:
        lengths = [len(ast.literal_eval(value)) for value in values if value[:1] in ("{", "[", "(")]
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return len(lengths) == len(values) and is_rising([str(length) for length in lengths])


def _is_number_or_tensor(cause: Cause) -> bool:
    """True for a value that is a number at some calls and a tensor at others."""
    if cause.kind == "type":
        classes = _list_classes(cause)
        return bool(classes & _TENSORS and classes & _NUMBERS and classes <= _TENSORS | _NUMBERS)
    types = list_types(cause)
    return "tensor" in types and bool(types & {"int", "float", "bool"}) and not types & {"str"}


def _list_classes(cause: Cause) -> set[str]:
    return {get_class_name(value) for value in cause.values}


def _is_tensor_of_two_classes(cause: Cause) -> bool:
    """True for a plain tensor at some calls and one of a derived class, by its name, at others. Distributed tensors
    have ways of their own to a plain one.
    """
    classes = _list_classes(cause)
    is_distributed = classes & {"DTensor", "AsyncCollectiveTensor"}
    return "Tensor" in classes and all(name.endswith("Tensor") for name in classes) and not is_distributed


def _is_fresh_object(cause: Cause) -> bool:
    """True if what came looked the same each time and was another object, or is of a kind that is made in passing."""
    seen = [row.actual for row in cause.recompiles if row.actual is not None]
    return len(seen) > len(set(seen)) or any(_FRESH.search(value) for value in seen)


def _describe_objects(cause: Cause) -> str:
    seen = list_unique(row.lookalike or row.actual for row in cause.recompiles if row.actual)
    return f": {format_names(seen)}" if seen else ""


def _is_filled(cause: Cause) -> bool:
    """True for an attribute of a module or a global that changed once, as what a first call fills does."""
    return cause.is_set_once and cause.values[:1] in (("None",), ("NoneType",), *_UNFILLED)


def _advise_filling(cause: Cause) -> str:
    """What saves the recompile if the compiled code itself fills the value at its first call."""
    if not _is_filled(cause):
        return ""
    return "If the first call sets it, call the module once without compiling before: the compiled code then sees it."


def _name_container(cause: Cause) -> str:
    return Path.of(get_name(cause, "the container")).subject.code


def _is_part_of_module(cause: Cause) -> bool:
    """True for the presence, the class or the number of a module's parameters, buffers and submodules, and for a
    parametrized class in place of a plain one. A list or dict of modules without any is filled by the first call.
    """
    paths = cause.torch_paths or (cause.path.subject,)
    if cause.kind == "length":
        return cause.values[:1] != ("0",) and any(path.own_name in _PARTS for path in paths)
    before, *others = [get_class_name(value) for value in cause.values] or [""]
    is_parametrized = cause.kind == "type" and any(f"Parametrized{before}" == name for name in others)
    return is_parametrized or any(path.steps and path.parent.own_name in _PARTS for path in paths)


def _name_changed_module(cause: Cause) -> str:
    """The module that has other parts: that of `len(net.layers._modules)` and of `net.head.weight`."""
    path = Path.of(_name_container(cause) if cause.kind == "length" else get_name(cause, "the module"))
    is_whole = cause.kind == "type" and "NoneType" not in cause.values
    return path.code if is_whole or not path.steps else path.parent.code


def _is_of_parameter_groups(cause: Cause) -> bool:
    return cause.kind == "length" and Path.of(_name_container(cause)).own_name == _PARAMETER_GROUPS


def _has_key(*heads: str) -> Callable[[Cause], bool]:
    """The condition that a dispatch key of the tensor begins like this at some calls."""
    return lambda cause: any(key.startswith(heads) for value in cause.values for key in _KEYS.findall(value))


#: What to do about a compiled function in a transform, and why.
COMPILE_TRANSFORM = (
    "Compile the transform, not the function in it: torch.compile(torch.func.vmap(f)); and torch.compile(f) for calls "
    "without it."
)
IN_TRANSFORM = (
    'In a transform of torch.func that is not compiled, torch compiles a function only with backend="eager". With any '
    "other backend it runs the function eagerly from then on, at all calls."
)

# Modes of the whole program

#: Rule about a part of the global state -> torch's names of that part.
_STATES = {
    **{name: (name,) for name in ("grad_mode", "autocast", "num_threads", "deterministic", "default_dtype", "tf32")},
    "reduced_precision": ("fp16", "bf16"),
    "torch_function_state": ("torch_function",),
}


def _list_states(cause: Cause) -> tuple[str, ...]:
    """The rules about the parts of the global state that changed."""
    text = " ".join((cause.source, *cause.values, *(reason.split("#", 1)[0] for reason in cause.reasons[:4])))
    return tuple(rule for rule, names in _STATES.items() if any(name in text for name in names))


def _describe_state(cause: Cause) -> str:
    if cause.source:
        values = tuple(value for value in cause.values if value not in _NO_VALUES)
        return f"{format_expression(cause.source)} {format_change(values)}"
    return format_first_line(cause.reasons[0], 80) if cause.reasons else "global state changed"


def _make_state(rule: str, action: str, why: str) -> Rule:
    """The rule about one part of the global state; it applies if no other part changed."""
    return Rule(
        rule,
        ("global_state",),
        when=lambda cause: _list_states(cause) == (rule,),
        action=action,
        why=why,
        what="{state}",
        is_expected=rule == "grad_mode",  # Training and evaluation each need theirs.
        words={"state": _describe_state},
    )


_STATE_RULES = (
    _make_state(
        "grad_mode",
        "To compile once, call it in one gradient mode only.",
        "The same function runs with gradients and under torch.no_grad() or torch.inference_mode(): one compiled "
        "version for each is expected.",
    ),
    _make_state(
        "autocast",
        "Put all calls under the same torch.autocast, or enter it inside the compiled function.",
        "It is called inside and outside torch.autocast, or with different settings.",
    ),
    _make_state(
        "num_threads",
        "Call torch.set_num_threads() once, before the first compiled call.",
        "The number of threads changed between calls.",
    ),
    _make_state(
        "deterministic",
        "Call torch.use_deterministic_algorithms() once, before the first compiled call.",
        "The setting changed between calls.",
    ),
    _make_state(
        "default_dtype",
        "Call torch.set_default_dtype() once, before the first compiled call.",
        "The default dtype changed between calls.",
    ),
    _make_state("tf32", "Set TF32 once, before the first compiled call.", "The setting changed between calls."),
    _make_state(
        "reduced_precision",
        "Set it once, before the first compiled call.",
        "A reduced-precision setting changed between calls.",
    ),
    _make_state(
        "torch_function_state",
        "Call it either with or without DisableTorchFunction.",
        "torch function handling changed between calls.",
    ),
)


def _advise_states(rule: Rule, cause: Cause) -> Advice:
    """Several parts of the global state at once, or one that is not known."""
    changed = _list_states(cause)
    rows: list[Case] = [one for one in _STATE_RULES if one.id in changed] or [_UNKNOWN_STATE]
    case = Case(
        action=" ".join(str(row.action) for row in rows),
        why=" ".join(list_unique(row.why or "" for row in rows)),
        what="{state}",
    )
    return apply_rule(rule, cause, case)


_UNKNOWN_STATE = Case(
    action="Set it once, before the first compiled call.",
    why="A mode of the whole program changed between calls.",
)


def _quote_torch(cause: Cause) -> str:
    reason = format_first_line(cause.reasons[0], 200) if cause.reasons else ""
    return f"torch says: {reason}" if reason else "torch gave no reason."


def _describe_unknown(cause: Cause) -> str:
    if cause.source:
        return f"{format_expression(cause.source)} {format_change(cause.values) if cause.values else ''}"
    reason = format_first_line(cause.reasons[0], 200) if cause.reasons else ""
    return format_line(reason, 80) or "unknown guard"


# The rules, in the order in which they are tried

#: Tried before all others about the type of a value: a class that is created again looks like any other.
FRESH_CLASS = Rule(
    "fresh_class",
    ("type",),
    when=lambda cause: any(
        get_class_name(row.expected) == get_class_name(row.lookalike or row.actual) for row in cause.recompiles
    ),
    action="Define the class once, at module level.",
    why="The class of {name} is probably created again in a function each time.",
    ceiling="high",
)

RULES = (
    Rule(
        "train_eval",
        ("value",),
        when=lambda cause: list_types(cause) == {"bool"} and cause.source.rpartition(".")[2] == "training",
        action="No change is needed, unless it switches back and forth before both modes have run once.",
        why="One compiled version for train() and one for eval() is expected.",
        ceiling=lambda cause: "low" if cause.max_per_function <= 2 else "medium",
        is_expected=True,
    ),
    Rule(
        "flag",
        ("value",),
        when=lambda cause: list_types(cause) == {"bool"},
        action="No change is needed. {fill}",
        why="One compiled version per value of {name} is expected, so at most two.",
        words={"fill": _advise_filling},
        ceiling=lambda cause: "low" if cause.max_per_function <= 2 else "medium",
        is_expected=True,
    ),
    Rule(
        "string_changes",
        ("value",),
        when=lambda cause: list_types(cause) == {"str"},
        cases=(
            Case(
                when=lambda cause: any("adapter" in name for name in cause.path.names),
                action=_FEW_STRINGS,
                why=f"{_EACH_STRING} {_ADAPTERS}",
                ways=(_ADAPTERS, _FEW_STRINGS),
            ),
            Case(
                when=lambda cause: _ADAPTER.search(cause.user_code or "") is not None,
                action=_FEW_STRINGS,
                why=f"{_EACH_STRING} {_ADAPTERS}",
            ),
        ),
        action=_FEW_STRINGS,
        why=_EACH_STRING,
        gives_fewer=True,
    ),
    Rule(
        "dead_reference",
        ("dead_reference", "type"),
        # A weak reference is called, `self.ref()`, and then None.
        when=lambda cause: (
            cause.kind == "dead_reference"
            or ("NoneType" in cause.values and get_name(cause, "the argument").endswith("()"))
        ),
        cases=(
            Case(
                when=lambda cause: cause.kind == "type",
                action="Keep the object alive as long as the compiled code is called, or check outside the compiled "
                "function whether it exists.",
                why="{name} is a weak reference, and its object is gone.",
                ceiling="medium",
            ),
        ),
        action="Keep it alive and change it in place (load_state_dict, .copy_()), or compile once after it is created.",
        why="{name} was deallocated, and its compiled code with it: a module, optimizer or tensor is probably created "
        "again.",
        what="{name} was deallocated",
        it="an object that the entry was bound to",
    ),
    Rule(
        "module_changes",
        ("type", "dict_keys", "length"),
        when=_is_part_of_module,
        cases=(
            Case(
                when=lambda cause: "NoneType" in cause.values,
                action="No change is needed. If {module} was changed after its first call, change it before "
                "torch.compile.",
                why="It has {name} at some calls and None at others: one compiled version for each is expected.",
                is_expected=True,
            ),
        ),
        action=f"{_CHANGE_FIRST} {{isolate}}",
        why="The parameters, buffers and modules that a module has, and their classes, are compiled in{line}, so each "
        "change is a new compile. Modules of one class that have others share the code, and each has its own version.",
        ways=(_CHANGE_FIRST,),
        words={"module": _name_changed_module},
        it="the module",
    ),
    Rule(
        "optional_argument",
        ("value", "type"),
        when=lambda cause: "NoneType" in cause.values if cause.kind == "type" else "none" in list_types(cause),
        cases=(
            Case(
                when=_is_filled,
                action="No change is needed. {fill}",
                why="{name} was None at the first call: one compiled version for that and one for the others is "
                "expected.",
                is_expected=True,
            ),
        ),
        action="No change is needed. For one compiled version, always pass {name}, with a neutral value instead of "
        "None.",
        why="It is given at some calls and None at others: one compiled version for each is expected.",
        words={"fill": _advise_filling},
        is_expected=True,
        cost="the neutral value is used in computations that were left out before",
    ),
    Rule(
        "type_changes",
        ("value", "type"),
        when=lambda cause: cause.kind == "type" or _is_number_or_tensor(cause),
        cases=(
            Case(
                when=_is_number_or_tensor,
                action="Always pass a tensor: torch.as_tensor({name}).",
                why="{name} is a number at some calls and a tensor at others: one compiled version for each, and one "
                "more for every other number.",
                ways=(Wrap("torch.as_tensor({0})"), "Always pass a tensor: torch.as_tensor({name})."),
            ),
            Case(
                when=lambda cause: _list_classes(cause) == _TENSORS,
                action="Pass a plain tensor at every call: {tensor}.view_as({tensor}).",
                why="It is a Parameter at some calls, and each class needs its own compiled version. A view of it is a "
                "plain tensor with the same values and gradients.",
                ways=(Wrap("{0}.view_as({0})"),),
            ),
            Case(
                when=_is_tensor_of_two_classes,
                action="Pass a plain tensor at every call: {tensor}.as_subclass(torch.Tensor).",
                why="It is of a class derived from torch.Tensor at some calls, and each class needs its own compiled "
                "version.",
                ways=(Wrap("{0}.as_subclass(torch.Tensor)"),),
            ),
        ),
        action=("{isolate_it}", "Pass one type: convert before the call."),
        why="Each class of {name} needs its own compiled version.",
        words={
            "tensor": lambda cause: "x" if "(" in (name := get_name(cause, "the argument")) else name,
            "isolate_it": lambda cause: write_isolation(cause) if _ATTRIBUTE.match(cause.source) else "",
        },
    ),
    Rule(
        "optimizer_state",
        ("length", "dict_keys"),
        when=lambda cause: cause.is_optimizer_state,
        action="To save the recompile, run the first step eagerly: optimizer.step(), then the compiled step.",
        why="The optimizer creates its state, {state}, at its first step, so the second one is compiled again.",
        ways=("Run the first step eagerly: optimizer.step(), then the compiled step.",),
        words={
            "state": lambda cause: _name_container(cause) if cause.kind == "length" else get_name(cause, "the argument")
        },
    ),
    Rule(
        "growing_container",
        ("length", "value"),
        when=lambda cause: is_rising(cause.values) if cause.kind == "length" else _is_lengthening(cause.values),
        cases=(
            Case(when=_is_of_parameter_groups, action=_ALL_GROUPS, why=f"{{container}} grows. {_EACH_LENGTH}"),
            Case(
                when=lambda cause: cause.kind == "length" and _ADDS.search(cause.user_code or "") is not None,
                action=_EMPTIED,
                why=f"The compiled function adds to it, so it grows. {_EACH_LENGTH}",
            ),
            Case(
                when=lambda cause: cause.kind == "length",
                action=_FIXED_LENGTH,
                why=f"{{container}} grows. {_EACH_LENGTH}",
            ),
        ),
        action="Keep {name} out of the compiled function.",
        why="It grows, and its content is compiled in, so each change is a new compile.",
        words={"container": _name_container},
        cost=_STACK,
    ),
    Rule(
        "length_changes",
        ("length",),
        cases=(
            Case(
                when=lambda cause: cause.is_filled,
                action="No change is needed, unless {container} can be filled before the first call. {fill}",
                why="{container} was empty at the first call: one compiled version for that and one for the others is "
                "expected.",
                is_expected=True,
            ),
            Case(
                when=lambda cause: cause.is_of_hooks,
                action="Register the hooks once, before the first call, and let them read what varies from a buffer of "
                "their module.",
                why=f"{{container}} changed between calls. {_EACH_LENGTH}",
            ),
            Case(when=_is_of_parameter_groups, action=_ALL_GROUPS, why=_EACH_LENGTH),
        ),
        action=_FIXED_LENGTH,
        why=_EACH_LENGTH,
        words={"container": _name_container, "fill": _advise_filling},
        cost=_STACK,
    ),
    Rule(
        "value_changes",
        ("value",),
        action="Keep {name} to few values, or pass what varies as a tensor.",
        why="Its value is compiled in{line}: one compiled version per value.",
    ),
    Rule(
        "fresh_object",
        ("identity",),
        when=_is_fresh_object,
        cases=(
            Case(
                # A function in an attribute of an object that is passed in: `layer.forward`.
                when=lambda cause: _ATTRIBUTE.match(cause.source) is not None,
                action="Define {name} as a method of the class, which all its objects share.",
                why="Each object has a function of its own (a lambda, partial or inner function): one compiled version "
                "for each.",
            ),
        ),
        action="Create {name} once and reuse it.",
        why="It is probably created again for each call (a lambda, partial or inner function).",
        ceiling="high",
        what="{name} was another object{objects}",
        it="the object",
        words={"objects": _describe_objects},
    ),
    Rule(
        "identity_changes",
        ("identity",),
        action="No change is needed, unless these objects do the same: then reuse one of them. {isolate_it}",
        why="The compiled code is bound to one object{line}: one compiled version per object, such as a function, a "
        "class or an enum member, is expected.",
        what="{name} was another object{objects}",
        is_expected=True,
        it="the object",
        words={
            "objects": _describe_objects,
            "isolate_it": lambda cause: write_isolation(cause) if cause.path.is_module_attribute else "",
        },
        gives_fewer=True,
    ),
    Rule(
        "backend_changes",
        ("backend",),
        action="Create the backend once and pass the same object to every torch.compile of this function (a string or "
        "one function, not a new lambda or partial).",
        why="Each backend callable gets its own entries, also the one that torch.compiler.set_stance(force_backend=...)"
        " selects: if the stance is intended, this recompile is expected.",
        what="compiled with another backend callable",
    ),
    Rule(
        "compiled_by_threads_at_once",
        ("all_passed",),
        action="Call it once with each kind of input before the threads start, or hold a lock during these first "
        "calls.",
        why="Threads that need the same compile at the same time wait for each other, and then each compiles: torch "
        "does not look again whether another thread has done it meanwhile.",
        what="several threads compiled the same at once",
        docs=None,
    ),
    Rule(
        "dict_keys_change",
        ("dict_keys",),
        cases=(
            Case(
                when=lambda cause: cause.path.is_module_attribute,
                action="Give all objects that share the code the same keys in the same order. {isolate}",
                why="The keys of a dict are compiled in{line}. If it belongs to one of several objects that share the "
                "code, each has its own compiled version; if one object gets new keys, set them before the first call.",
            ),
        ),
        action="Always pass the same keys in the same order, with None or an empty tensor for a missing value.",
        why="The keys of a dict are compiled in{line}.",
    ),
    Rule(
        "hasattr_changes",
        ("hasattr",),
        action="Set {name} in __init__, to None if necessary, so that it always exists. {fill}",
        why="It existed at one call and not at another{line}.",
        words={"fill": _advise_filling},
        it="the attribute",
    ),
    Rule(
        "dtype_changes",
        ("tensor_dtype",),
        action="Cast before the call, {name} = {name}.to(dtype), or run all calls under the same torch.autocast.",
        why="Each dtype needs its own compiled version.",
        ways=("If one dtype is enough, cast before the call: {name}.to(dtype).",),
        it="x",
        cost="a copy at each call that did not need one before",
    ),
    Rule(
        "device_changes",
        ("tensor_device",),
        action="Move it before the call: {name} = {name}.to(device).",
        why="Each device needs its own compiled version.",
        it="x",
    ),
    Rule(
        "dispatch_keys_change",
        ("dispatch_keys",),
        cases=(
            Case(
                when=_has_key("Python"),
                action="Pass {name} in the same way at every call.",
                why="It was a tensor subclass at one call only.",
            ),
            Case(
                # Only tensors of torch.inference_mode() lack these keys.
                when=_has_key("ADInplaceOrView", "Autograd"),
                action="Use either torch.no_grad() or torch.inference_mode() for all calls, and where tensors are "
                "created.",
                why="{name} was probably an inference tensor at one call and a normal tensor at another.",
            ),
        ),
        action="Pass {name} in one form.",
        why="It is another kind of tensor at each of these calls; the details name the dispatch keys.",
        what="dispatch keys of {name} changed",
        it="the tensor",
    ),
    Rule(
        "requires_grad_changes",
        ("requires_grad",),
        # detach() alone is no way out: a gradient that is needed would be lost.
        cases=(
            Case(
                when=lambda cause: cause.facts.is_parameter or "." in cause.source.removesuffix(".requires_grad"),
                action="To compile once, keep requires_grad the same for {name} at every call.",
                why=_TWO_GRADIENTS,
            ),
            Case(
                # What a call returned: detached in its own line, its gradient would be lost.
                when=lambda cause: write_path(get_name(cause, "x")) is None,
                action="No change is needed. To compile once, give {name} a gradient at each call, or none.",
                why=_TWO_GRADIENTS,
                is_expected=True,
            ),
        ),
        action="To compile once, pass {name}.detach().requires_grad_() where it has no gradient.",
        why=f"{_TWO_GRADIENTS} No gradient that is needed is lost that way; calls that had none record one.",
        ways=(Wrap("{0} if {0}.requires_grad else {0}.detach().requires_grad_()"),),
        it="x",
        cost="calls that needed no gradient record one",
    ),
    Rule(
        "alias_changes",
        ("alias",),
        action="If the tensor need not be shared, pass a copy: tensor.clone().",
        why="The same tensor was passed twice at some calls, and different tensors at others; each case needs its own "
        "compiled version.{use}",
        what="{arguments}: same tensor at some calls only",
        words={
            "use": lambda cause: f" Used here: {where}." if (where := format_user_line(cause).strip()) else "",
            "arguments": lambda cause: format_expression(cause.source) or "arguments",
        },
        cost="a copy of the tensor at each call",
    ),
    *_STATE_RULES,
    Rule(
        "global_state",
        ("global_state",),
        advise=_advise_states,
        action="Set each mode once, before the first compiled call.",
        words={"state": _describe_state},
        docs=None,
    ),
    Rule(
        "default_device",
        ("default_device",),
        action="Set the default device once, before the first compiled call, or pass device= where tensors are "
        "created.",
        why="torch.set_default_device() or `with torch.device(...)` was active at some calls only.",
        what="{changed}",
        words={"changed": lambda cause: "" if len(cause.values) > 1 else "the default device changed"},
        docs=None,
    ),
    Rule(
        "func_transforms",
        ("mode_stack",),
        when=lambda cause: cause.is_transform,
        action=COMPILE_TRANSFORM,
        why=f"It is called in several ways: plainly, or in a transform such as grad, vmap or jacrev. {IN_TRANSFORM}",
        what="the transforms of torch.func around it changed",
    ),
    Rule(
        "mode_stack",
        ("mode_stack",),
        action="Enter the same mode object around all calls.",
        why="The function is called inside and outside a torch function mode, or with a new one each time. `with "
        "torch.device(...)` and torch.set_default_device() are such modes.",
        what="the stack of torch function modes changed",
    ),
)

#: What torch says of a guard that compilediag does not understand, and no more.
OTHER = Rule(
    "other",
    ("other",),
    action="{reason}",
    what="{guard}",
    words={"reason": _quote_torch, "guard": _describe_unknown},
    docs=None,
    gives_fewer=True,
)
