"""Advice about objects, containers and backends: guards on the object itself, and on what a container has."""

from __future__ import annotations

import re

from ...events import ANOTHER_OBJECT
from ...formatting import format_names
from .advice import Advice, format_user_line, get_name, get_usual_ceiling, list_changes, write_isolation
from .cause import Cause, list_unique
from .value_advice import is_rising

#: The state of a torch optimizer for a parameter; its groups of parameters.
_STATE = re.compile(r"\bself\.state(?:\[|$)")
_PARAMETER_GROUPS = re.compile(r"\.param_groups$")
#: A function in an attribute of an object that is passed in: `layer.forward`.
_FUNCTION_OF_OBJECT = re.compile(r"^\w+\.")
_FRESH = re.compile(r"<lambda>|<locals>|functools\.partial")


def advise_identity(cause: Cause) -> Advice:
    """A name that refers to several objects."""
    name = get_name(cause, "the object")
    seen = list_unique(row.actual.removesuffix(ANOTHER_OBJECT) for row in cause.recompiles if row.actual)
    what = f"{name} was another object" + (f": {format_names(seen)}" if seen else "")
    if _is_fresh(cause):
        if _FUNCTION_OF_OBJECT.search(cause.source):
            return Advice(
                "fresh_object",
                f"Define {name} as a method of the class, which all its objects share.",
                "Each object has a function of its own (a lambda, partial or inner function): one compiled version for "
                "each.",
                what_changed=what,
            )
        return Advice(
            "fresh_object",
            f"Create {name} once and reuse it.",
            "It is probably created again for each call (a lambda, partial or inner function).",
            what_changed=what,
        )
    isolate = write_isolation(cause) if cause.source.startswith("self.") else ""
    action = "No change is needed, unless these objects do the same: then reuse one of them."
    return Advice(
        "identity_changes",
        f"{action} {isolate}".rstrip(),
        f"The compiled code is bound to one object{format_user_line(cause)}: one compiled version per "
        "object, such as a function, a class or an enum member, is expected.",
        ceiling=get_usual_ceiling(cause),
        what_changed=what,
        is_expected=True,
    )


def _is_fresh(cause: Cause) -> bool:
    """True if what came looked the same each time and was another object, or is of a kind that is made in passing."""
    seen = [row.actual for row in cause.recompiles if row.actual is not None]
    return len(seen) > len(set(seen)) or any(_FRESH.search(value) for value in seen)


def advise_dead_reference(cause: Cause) -> Advice:
    """An object that died, and its entry with it."""
    name = get_name(cause, "an object that the entry was bound to")
    return Advice(
        "dead_reference",
        "Keep it alive and change it in place (load_state_dict, .copy_()), or compile once after it is created.",
        f"{name} was deallocated, and its compiled code with it: a module, optimizer or tensor is probably created "
        "again.",
        ceiling=get_usual_ceiling(cause),
        what_changed=f"{name} was deallocated",
    )


def advise_backend(cause: Cause) -> Advice:
    """A function that is compiled with several backends."""
    return Advice(
        "backend_changes",
        "Create the backend once and pass the same object to every torch.compile of this function (a string or one "
        "function, not a new lambda or partial).",
        "Each backend callable gets its own entries, also the one that torch.compiler.set_stance(force_backend=...) "
        "selects: if the stance is intended, this recompile is expected.",
        ceiling=get_usual_ceiling(cause),
        what_changed="compiled with another backend callable",
    )


def advise_length(cause: Cause) -> Advice:
    """A container of several lengths."""
    name = get_name(cause, "the container")
    name = name.removeprefix("len(").removesuffix(")") if name.startswith("len(") else name
    if _STATE.search(name):
        return _advise_optimizer_state(cause, name)
    is_growing = is_rising(cause.values)
    rule = "growing_container" if is_growing else "length_changes"
    if len(cause.values) == 2 and cause.values[0] == "0":
        return Advice(
            rule,
            f"No change is needed, unless {name} can be filled before the first call.",
            f"The first call fills {name}: one compiled version for the first call and one for the others is expected.",
            ceiling=get_usual_ceiling(cause),
            is_expected=True,
        )
    action = f"Keep {name} at a fixed length, or pass only the part that is used."
    if _PARAMETER_GROUPS.search(name):
        action = "Add all groups of parameters before the first compiled step."
    explanation = f"{f'{name} grows. ' if is_growing else ''}Each length is a new compile, and no setting changes that."
    return Advice(rule, action, explanation, ceiling=get_usual_ceiling(cause))


def _advise_optimizer_state(cause: Cause, name: str) -> Advice:
    return Advice(
        "optimizer_state",
        "To save the recompile, run the first step eagerly: optimizer.step(), then the compiled step.",
        f"The optimizer creates its state, {name}, at its first step, so the second one is compiled again.",
        list_changes("Run the first step eagerly: optimizer.step(), then the compiled step."),
        get_usual_ceiling(cause),
    )


def advise_dict_keys(cause: Cause) -> Advice:
    """A dict with several sets of keys."""
    if _STATE.search(cause.source):
        return _advise_optimizer_state(cause, get_name(cause))
    return Advice(
        "dict_keys_change",
        "Always pass the same keys in the same order, with None or an empty tensor for a missing value.",
        f"The keys of a dict are compiled in{format_user_line(cause)}.",
        ceiling=get_usual_ceiling(cause),
    )


def advise_hasattr(cause: Cause) -> Advice:
    """An attribute that exists at some calls."""
    name = get_name(cause, "the attribute")
    return Advice(
        "hasattr_changes",
        f"Set {name} in __init__, to None if necessary, so that it always exists.",
        f"It existed at one call and not at another{format_user_line(cause)}.",
        ceiling=get_usual_ceiling(cause),
    )
