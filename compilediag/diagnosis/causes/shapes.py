"""Sizes, strides and ranks of tensors, and the guards of dynamic shapes."""

from __future__ import annotations

import re

from .. import wording
from ..finding import fix_code
from ..rows import Row
from . import paths
from .advice import Advice, at_line, branch, dynamic_fix, is_branch, is_specialized, name_of, specialized, usual_price
from .grouping import ZERO_ONE, Cause
from .values import advise_value

_MODULE_TENSOR = re.compile(r"\._(?:buffers|parameters)\[")
_SIZES = ("tensor_size", "symbolic_shape")
_DUCK = "duck sizing"


def advise_size(cause: Cause) -> Advice:
    """What to do about a size that varies.

    torch makes a size dynamic by itself after its first change, so one recompile is its usual price. It never
    does so for 0 and 1, for sizes that Python code needs as a number, and for tensors of modules.
    """
    if all(_touches_zero_one(row) for row in cause.rows):
        return _zero_one(cause)
    if is_specialized(cause):
        return specialized(cause)
    if is_branch(cause):
        return branch(cause)
    if any(_MODULE_TENSOR.search(text) for text in cause.torch_sources):
        return _module_tensor(cause)
    return _dynamic(cause)


def advise_symbolic(cause: Cause) -> Advice:
    """A guard that only dynamic shapes have: on one size, on one number, or on how several of them relate."""
    if any(_DUCK in reason for reason in cause.reasons):
        return _duck(cause)
    if "," in cause.source or not cause.source:
        return _relation(cause)
    return advise_size(cause) if paths.split_property(cause.source)[1] == "size" else advise_value(cause)


def _touches_zero_one(row: Row) -> bool:
    if row["guard_kind"] == "symbolic_shape":
        return row["actual"] in ZERO_ONE or (row["actual"] is None and row["expected"] == ">= 2")
    return row["actual"] in ZERO_ONE or row["expected"] in ZERO_ONE


def _dynamic(cause: Cause) -> Advice:
    others = tuple(source for kind, source in cause.also if kind in _SIZES)
    fix = dynamic_fix(cause)
    how = _across_a_break(fix) if wording.is_resumed(cause.first("function")) else None
    how = how or "Mark it dynamic: " + _marks(cause.source, *others)
    rest = ". Sizes 0 and 1 keep entries of their own even so" if ZERO_ONE & set(cause.values) else ""
    if cause.most == 1:
        text = (
            f"{how}; done before the first call, that saves the recompile{rest}. One recompile is the usual price of "
            "a first change: torch then makes the size dynamic by itself."
        )
        return Advice("size_changes", text, fix, usual_price(cause))
    text = (
        f"{how}{rest}. torch makes a size dynamic after its first change unless told otherwise, so likely this is "
        "compiled with dynamic=False (None would do too), or the code needs the size as a number, and then marking "
        "is refused."
    )
    return Advice("size_changes", text, fix)


def _across_a_break(fix: dict[str, str] | None) -> str | None:
    """What lives across a graph break may have no place where the user could mark it, but can be named."""
    return (
        f"It comes from before a graph break: mark the input that it is made from, or set {fix_code(fix)}"
        if fix
        else None
    )


def _marks(*sources: str) -> str:
    return "; ".join(mark for s in sources if (mark := _mark(s))) or "torch._dynamo.mark_dynamic(tensor, dim)"


def _mark(source: str) -> str | None:
    base, prop, dim = paths.split_property(source)
    if prop != "size" or "*" in base or paths.is_stack_value(base):
        return None
    return f"torch._dynamo.mark_dynamic({wording.spoken(base)}, {dim})"


def _zero_one(cause: Cause) -> Advice:
    special = sorted(ZERO_ONE & set(cause.values)) or ["0", "1"]
    own = f"size {special[0]} on its own" if len(special) == 1 else "sizes 0 and 1 on their own"
    _, prop, dim = paths.split_property(cause.source)
    mark = f"torch._dynamo.decorators.mark_unbacked({name_of(cause)}, {dim})"
    text = (
        f"torch always compiles {own}, mark_dynamic or not: pad to 2 or more, or handle it outside. {mark} avoids it "
        "where no code depends on the size being 0 or 1."
    )
    fix = {"unbacked_sources": ",".join(cause.torch_sources)} if cause.torch_sources and prop else None
    return Advice("size_zero_one", text, fix, usual_price(cause, "medium"))


def _module_tensor(cause: Cause) -> Advice:
    fix = dynamic_fix(cause)
    if any("._parameters[" in text for text in cause.torch_sources):
        text = (
            f"{name_of(cause, 'A parameter')} has another size because another module runs the same code, or because "
            "it was replaced: one entry a size is torch's way, mark_dynamic or not. For one entry let the sizes of "
            f"parameters vary: {fix_code(fix)}."
        )
        return Advice("modules_share_code", text, fix)
    text = (
        f"{name_of(cause, 'The tensor')} belongs to a module, and torch keeps the sizes of module tensors static, "
        "mark_dynamic or not: pass it as an argument, or keep its size and use a part of it."
    )
    return Advice("module_tensor_size", text, fix)


def _duck(cause: Cause) -> Advice:
    text = (
        "torch took equal sizes for one size at the first compile (duck sizing). Make the first call with different "
        "sizes, or set torch.fx.experimental._config.use_duck_shape = False."
    )
    return Advice("duck_sizing", text, {"use_duck_shape": False}, usual_price(cause), _relation_what(cause))


def _relation(cause: Cause) -> Advice:
    text = (
        f"The compiled code holds only while sizes relate as they did{at_line(cause)}: one entry for each way that "
        "they relate is expected. To have fewer, pad, or take the branch or broadcast out of the compiled function."
    )
    return Advice("size_relation", text, None, usual_price(cause), _relation_what(cause))


def _relation_what(cause: Cause) -> str:
    first, _, rest = cause.source.partition(", ")
    bound = cause.bounds[0] if cause.bounds else ""
    if first and rest and bound == rest:
        return f"{wording.spoken(first)} no longer equals {wording.spoken(rest)}"
    return f"no longer {wording.spoken(bound)}" if bound else "sizes no longer relate as they did"


def advise_stride(cause: Cause) -> Advice:
    name = name_of(cause, "x")
    text = (
        f"Give it one memory layout before the call: {name} = {name}.contiguous(). For images kept in channels_last: "
        f"{name}.contiguous(memory_format=torch.channels_last) at every call."
    )
    return Advice("stride_changes", text, None, usual_price(cause))


def advise_rank(cause: Cause) -> Advice:
    name = name_of(cause, "x")
    text = (
        f"Each number of dimensions needs its own entry; no setting changes that. Bring {name} to one rank before the "
        f"call, for example {name}.unsqueeze(0) or {name}.flatten(0, 1)."
    )
    return Advice("rank_changes", text, None, usual_price(cause))
