"""What it costs to follow an advice: no fix is free, and which is the dearer one is the user's to weigh."""

from __future__ import annotations

_DYNAMIC = "one kernel for every size may be slower than one made for a single size"
_PADDING = "padding computes what is thrown away"
_NUMBER = "a number that may vary is not folded into the kernel"
_COPY = "a copy at each call where it was not so before"

#: By rule, in half a sentence.
_COSTS = {
    "size_changes": _DYNAMIC,
    "module_tensor_size": _DYNAMIC,
    "modules_share_code": _DYNAMIC,
    "size_zero_one": f"{_PADDING}; an unbacked size makes code raise that depends on its value",
    "duck_sizing": "sizes that are equal are no longer known to be, so kernels do more index arithmetic",
    "branch": _PADDING,
    "specialized": _PADDING,
    "size_relation": _PADDING,
    "counter": _NUMBER,
    "module_int": _NUMBER,
    "global_int": _NUMBER,
    "int_changes": _NUMBER,
    "float_changes": "a kernel reads the number from memory instead of having it built in",
    "stride_changes": _COPY,
    "dtype_changes": _COPY,
    "type_changes": _COPY,
    "alias_changes": "a copy of the tensor at each call",
    "growing_container": "torch.stack copies its parts at each call",
    "length_changes": "torch.stack copies its parts at each call",
    "optional_argument": "the neutral value is computed with where nothing was before",
    "used_once": "under that stance sizes that are new run eagerly, however often they come",
    "recompile_limit": "each variant more is a compile, and a call checks the guards of all entries before its own",
}


def cost_of(rule: str) -> str | None:
    """What the advice of this rule costs; None where it costs nothing but the change."""
    return _COSTS.get(rule)
