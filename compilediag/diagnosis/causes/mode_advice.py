"""Advice about modes of the whole program: gradient, autocast, threads, default device, torch function modes."""

from __future__ import annotations

from ...formatting import format_change, format_expression, format_first_line, format_line
from .advice import Advice, get_usual_ceiling
from .cause import Cause, list_unique

_REDUCED_PRECISION = (
    "reduced_precision",
    "Set it once, before the first compiled call.",
    "A reduced-precision setting changed between calls.",
)
#: torch's name of a part of the global state -> rule, action, explanation.
_STATES = {
    "grad_mode": (
        "grad_mode",
        "To compile once, call it in one gradient mode only.",
        "The same function runs with gradients and under torch.no_grad() or torch.inference_mode(): one compiled "
        "version for each is expected.",
    ),
    "autocast": (
        "autocast",
        "Put all calls under the same torch.autocast, or enter it inside the compiled function.",
        "It is called inside and outside torch.autocast, or with different settings.",
    ),
    "num_threads": (
        "num_threads",
        "Call torch.set_num_threads() once, before the first compiled call.",
        "The number of threads changed between calls.",
    ),
    "deterministic": (
        "deterministic",
        "Call torch.use_deterministic_algorithms() once, before the first compiled call.",
        "The setting changed between calls.",
    ),
    "default_dtype": (
        "default_dtype",
        "Call torch.set_default_dtype() once, before the first compiled call.",
        "The default dtype changed between calls.",
    ),
    "tf32": (
        "tf32",
        "Set TF32 once, before the first compiled call.",
        "The setting changed between calls.",
    ),
    "fp16": _REDUCED_PRECISION,
    "bf16": _REDUCED_PRECISION,
    "torch_function": (
        "torch_function_state",
        "Call it either with or without DisableTorchFunction.",
        "torch function handling changed between calls.",
    ),
}
_UNKNOWN_STATE = (
    "global_state",
    "Set it once, before the first compiled call.",
    "A mode of the whole program changed between calls.",
)
#: What a guard says of a state whose values torch does not report.
_NO_VALUES = ("unchanged", "changed")


def advise_global_state(cause: Cause) -> Advice:
    """One or several parts of torch's global state."""
    text = " ".join((cause.source, *cause.values, *(reason.split("#", 1)[0] for reason in cause.reasons[:4])))
    found = list_unique(advice for name, advice in _STATES.items() if name in text) or (_UNKNOWN_STATE,)
    return Advice(
        found[0][0] if len(found) == 1 else _UNKNOWN_STATE[0],
        " ".join(action for _, action, _ in found),
        " ".join(list_unique(explanation for _, _, explanation in found)),
        ceiling=get_usual_ceiling(cause),
        what_changed=_describe_state(cause),
        is_expected=[rule for rule, _, _ in found] == ["grad_mode"],
    )


def _describe_state(cause: Cause) -> str:
    if cause.source:
        values = tuple(value for value in cause.values if value not in _NO_VALUES)
        return f"{format_expression(cause.source)} {format_change(values)}"
    return format_first_line(cause.reasons[0], 80) if cause.reasons else "global state changed"


def advise_default_device(cause: Cause) -> Advice:
    """Another default device."""
    return Advice(
        "default_device",
        "Set the default device once, before the first compiled call, or pass device= where tensors are created.",
        "torch.set_default_device() or `with torch.device(...)` was active at some calls only.",
        ceiling=get_usual_ceiling(cause),
        what_changed=None if len(cause.values) > 1 else "the default device changed",
    )


def advise_mode_stack(cause: Cause) -> Advice:
    """Other torch function modes."""
    return Advice(
        "mode_stack",
        "Enter the same mode object around all calls.",
        "The function is called inside and outside a torch function mode, or with a new one each time. "
        "`with torch.device(...)` and torch.set_default_device() are such modes.",
        ceiling=get_usual_ceiling(cause),
        what_changed="the stack of torch function modes changed",
    )


def advise_other(cause: Cause) -> Advice:
    """A guard that compilediag does not understand: torch's own words and no more."""
    reason = format_first_line(cause.reasons[0], 200) if cause.reasons else ""
    what = format_expression(cause.source) if cause.source else (format_line(reason, 80) or "unknown guard")
    if cause.source and cause.values:
        what = f"{what} {format_change(cause.values)}"
    text = f"torch says: {reason}" if reason else "torch gave no reason."
    return Advice("other", text, ceiling=get_usual_ceiling(cause), what_changed=what)
