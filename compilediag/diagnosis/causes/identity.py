"""Objects, containers and backends: what is told apart by being another object."""

from __future__ import annotations

import re

from .. import wording
from .advice import Advice, at_line, name_of, usual_price
from .grouping import Cause
from .values import counts_up

_FRESH = re.compile(r"<lambda>|<locals>|functools\.partial")


def advise_identity(cause: Cause) -> Advice:
    name = name_of(cause, "the object")
    came = dict.fromkeys(row["actual"].removesuffix(" (another object)") for row in cause.rows if row["actual"])
    what = f"{name} was another object" + (f": {wording.listed(tuple(came))}" if came else "")
    if _is_fresh(cause):
        text = (
            f"{name} is likely made anew for each call (a lambda, partial or inner function): make it once, reuse it."
        )
        return Advice("fresh_object", text, None, "high", what)
    text = (
        f"The compiled code is bound to the very object that {name} was{at_line(cause)}: one entry an object. Reuse "
        "one object; if a few different ones are meant (functions, classes, enum members), one entry each is "
        "expected."
    )
    return Advice("identity_changes", text, None, usual_price(cause), what)


def _is_fresh(cause: Cause) -> bool:
    """True if what came looked the same each time and was another object, or is of a kind that is made in passing."""
    came = [row["actual"] for row in cause.rows if row["actual"] is not None]
    return len(came) > len(set(came)) or any(_FRESH.search(value) for value in came)


def advise_dead_reference(cause: Cause) -> Advice:
    name = name_of(cause, "an object that the entry was bound to")
    text = (
        f"{name} was deallocated, and its compiled code with it: a module, optimizer or tensor is likely made anew. "
        "Keep it alive and change it in place (load_state_dict, .copy_()), or compile once after it is made."
    )
    return Advice("dead_reference", text, None, usual_price(cause), f"{name} was deallocated")


def advise_backend(cause: Cause) -> Advice:
    text = (
        "Each backend callable gets its own entries: make the backend once and pass the same object to every "
        "torch.compile of this function (a string, or one function; not a fresh lambda or partial)."
    )
    return Advice("backend_changes", text, None, usual_price(cause), "compiled with another backend callable")


def advise_length(cause: Cause) -> Advice:
    name = name_of(cause, "the container")
    name = name.removeprefix("len(").removesuffix(")") if name.startswith("len(") else name
    grows = f"{name} grows. " if counts_up(cause.values) else ""
    text = (
        f"{grows}Each length is a new compile, and no setting changes that: keep {name} at a fixed length, pass only "
        f"the part that is used, or stack it into one tensor, torch.stack({name}), whose size can be dynamic."
    )
    return Advice("growing_container" if grows else "length_changes", text, None, usual_price(cause))


def advise_dict_keys(cause: Cause) -> Advice:
    text = (
        f"The keys of a dict are built into the code{at_line(cause)}: always pass the same keys in the same order, "
        "with None or an empty tensor for what is absent."
    )
    return Advice("dict_keys_change", text, None, usual_price(cause))


def advise_hasattr(cause: Cause) -> Advice:
    name = name_of(cause, "An attribute")
    text = (
        f"{name} was there at one call and not at another{at_line(cause)}: set it in __init__, to None if need be, so "
        "that it is always there."
    )
    return Advice("hasattr_changes", text, None, usual_price(cause))
