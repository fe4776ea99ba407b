"""Modes of the whole program: gradient, autocast, threads, default device, torch function modes."""

from __future__ import annotations

from .. import wording
from .advice import Advice, usual_price
from .grouping import Cause

#: torch's name of a part of the global state -> (rule, what to do).
_STATES = {
    "grad_mode": (
        "grad_mode",
        "The same function runs with gradients and under torch.no_grad() or inference_mode(): one entry for each is "
        "expected. To have one, call it in one mode only.",
    ),
    "autocast": (
        "autocast",
        "It is called inside and outside of torch.autocast, or with other settings of it: one entry for each. Put "
        "all calls under the same autocast, or enter it inside the compiled function.",
    ),
    "num_threads": (
        "num_threads",
        "torch.set_num_threads() was called between calls: call it once, before the first compiled call.",
    ),
    "deterministic": (
        "deterministic",
        "torch.use_deterministic_algorithms() was switched between calls: set it once, before the first compiled call.",
    ),
    "default_dtype": (
        "default_dtype",
        "torch.set_default_dtype() was called between calls: call it once, before the first compiled call.",
    ),
    "tf32": ("tf32", "The TF32 setting was switched between calls: set it once, before the first compiled call."),
    "fp16": (
        "reduced_precision",
        "A reduced-precision setting was switched between calls: set it once, before the first compiled call.",
    ),
    "bf16": (
        "reduced_precision",
        "A reduced-precision setting was switched between calls: set it once, before the first compiled call.",
    ),
    "torch_function": (
        "torch_function_state",
        "torch function handling was switched between calls (DisableTorchFunction): call it one way.",
    ),
}


def advise_global_state(cause: Cause) -> Advice:
    told = " ".join((cause.source, *cause.values, *(r.split("#", 1)[0] for r in cause.reasons[:4])))
    found = [advice for name, advice in _STATES.items() if name in told]
    if not found:
        text = "A mode of the whole program was switched between calls: set it once, before the first compiled call."
        return Advice("global_state", text, None, usual_price(cause), _what(cause))
    rules = list(dict.fromkeys(found))
    rule = rules[0][0] if len(rules) == 1 else "global_state"
    return Advice(rule, " ".join(text for _, text in rules), None, usual_price(cause), _what(cause))


def _what(cause: Cause) -> str:
    values = tuple(value for value in cause.values if value not in ("unchanged", "changed"))
    if cause.source and values:
        return f"{wording.spoken(cause.source)} {wording.was_then(values)}"
    if cause.source:
        return f"{wording.spoken(cause.source)} changed"
    return wording.first_line(cause.reasons[0], 80) if cause.reasons else "global state changed"


def advise_default_device(cause: Cause) -> Advice:
    text = (
        "torch.set_default_device() or `with torch.device(...)` was in force at some calls only: set it once, before "
        "the first compiled call, or pass device= where tensors are made."
    )
    what = None if len(cause.values) > 1 else "the default device changed"
    return Advice("default_device", text, None, usual_price(cause), what)


def advise_mode_stack(cause: Cause) -> Advice:
    text = (
        "It is called inside and outside of a torch function mode (`with torch.device(...)` and "
        "torch.set_default_device() are such modes too), or with a fresh one: enter the same mode object around all "
        "calls."
    )
    return Advice("mode_stack", text, None, usual_price(cause), "the stack of torch function modes changed")


def advise_other(cause: Cause) -> Advice:
    """torch's own words and no more: this guard isn't understood."""
    reason = wording.first_line(cause.reasons[0], 200) if cause.reasons else ""
    text = f"torch says: {reason}" if reason else "torch gave no reason."
    what = wording.spoken(cause.source) if cause.source else (wording.one_line(reason, 80) or "unknown guard")
    if cause.source and cause.values:
        what = f"{what} {wording.was_then(cause.values)}"
    return Advice("other", text, None, usual_price(cause), what)
