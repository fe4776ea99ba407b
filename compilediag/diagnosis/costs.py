"""What it costs to follow an advice: hardly any fix is free, and the user weighs which cost is higher."""

from __future__ import annotations

_DYNAMIC = "one kernel for all sizes can be slower than a kernel for a single size"
_PADDING = "padding computes values that are thrown away"
_NUMBER = "a number that can vary is not folded into the kernel"
_LAYOUT = "a copy at each call that did not need one before"
_STACK = "torch.stack copies its parts at each call"

#: By rule, in half a sentence.
_COSTS = {
    "size_changes": _DYNAMIC,
    "module_tensor_size": _DYNAMIC,
    "modules_share_code": _DYNAMIC,
    "size_zero_one": f"{_PADDING}; with an unbacked size, code that depends on its value raises an error",
    "duck_sizing": "torch no longer knows which sizes are equal, so kernels do more index arithmetic",
    "branch": _PADDING,
    "specialized": _PADDING,
    "size_relation": _PADDING,
    "counter": _NUMBER,
    "module_int": _NUMBER,
    "global_int": _NUMBER,
    "int_changes": _NUMBER,
    "instance_constant": _NUMBER,
    "optimizer_number": "the kernel reads the number from memory instead of having it compiled in",
    "requires_grad_changes": "calls that needed no gradient record one",
    "float_changes": "the kernel reads the number from memory instead of having it compiled in",
    "stride_changes": _LAYOUT,
    "dtype_changes": _LAYOUT,
    "alias_changes": "a copy of the tensor at each call",
    "growing_container": _STACK,
    "length_changes": _STACK,
    "optional_argument": "the neutral value is used in computations that were left out before",
    "used_once": "under that stance new sizes run eagerly, however often they come",
    "recompile_limit": "each version is another compile, and a call checks the guards of all entries before its own",
}


def get_cost(rule: str) -> str | None:
    """What following the advice of a rule costs; None where it costs nothing but the change."""
    return _COSTS.get(rule)
