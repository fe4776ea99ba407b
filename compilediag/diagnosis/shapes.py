"""Sizes, strides and ranks of tensors, and the range guards of dynamic shapes."""

from __future__ import annotations

import re

from . import paths, wording
from .advice import Advice, at_line, name_of, usual_price
from .causes import Cause

#: torch's mark on guards of a symbol that Python code needed as a number.
_EVALUATED = "in evaluate_expr"
_POINTED = re.compile(r"^\s*(?:L\['\w+'\]|\w+)[\w.\[\]'()]*\s*==\s*-?\d+\s*$")
_LOWER_BOUND = re.compile(r"^\s*2 <= [^<>=]+$")
_MODULE_TENSOR = re.compile(r"\._(?:buffers|parameters)\[")
ZERO_ONE = frozenset({"0", "1"})


def advise_size(cause: Cause) -> Advice:
    """What to do about a size that varies.

    torch makes a size dynamic by itself after its first change, so one recompile is its usual price. It never
    does so for 0 and 1, for sizes that Python code needs as a number, and for tensors of modules.
    """
    bounds = [row["expected"] or "" for row in cause.rows if row["guard_kind"] == "symbolic_shape"]
    if _is_specialized(cause, bounds):
        return _specialized(cause)
    if branches := [b for b in bounds if b and not _LOWER_BOUND.match(b)]:
        return _branch(cause, branches)
    if all(_touches_zero_one(row) for row in cause.rows):
        return _zero_one(cause)
    if any(_MODULE_TENSOR.search(name) for name in (*cause.torch_sources, *cause.reasons)):
        return _module_tensor(cause)
    return _dynamic(cause)


def _is_specialized(cause: Cause, bounds: list[str]) -> bool:
    evaluated = any(_EVALUATED in reason and " == " in reason for reason in cause.reasons)
    return (evaluated and bool(bounds)) or any(_POINTED.match(b) for b in bounds)


def _touches_zero_one(row: dict[str, object]) -> bool:
    if row["guard_kind"] == "symbolic_shape":
        return row["actual"] is None or row["actual"] in ZERO_ONE
    return row["actual"] in ZERO_ONE or row["expected"] in ZERO_ONE


def _dynamic(cause: Cause) -> Advice:
    marks = [mark for source in (cause.source, *_other_sizes(cause)) if (mark := _mark(source))]
    how = "Mark it dynamic: " + ("; ".join(marks) or "torch._dynamo.mark_dynamic(tensor, dim)")
    if ZERO_ONE & set(cause.values):
        how += ". Sizes 0 and 1 keep an entry of their own even so"
    fix = _dynamic_fix(cause)
    if cause.count == 1:
        why = "One recompile is the usual price of a first change: torch then makes the size dynamic by itself"
        ceiling = "medium" if cause.seconds >= 5 else "low"
        return Advice("size_changes", f"{how} before the first call saves it. {why}.", fix, ceiling)
    why = (
        "torch makes a size dynamic after its first change unless told otherwise, so likely this is compiled with "
        "dynamic=False, or automatic_dynamic_shapes is off: dynamic=None would do too"
    )
    return Advice("size_changes", f"{how}. {why}.", fix)


def _mark(source: str) -> str | None:
    base, prop, dim = paths.split_property(source)
    if prop != "size" or "*" in base:
        return None
    return f"torch._dynamo.mark_dynamic({wording.spoken(base)}, {dim})"


def _other_sizes(cause: Cause) -> list[str]:
    return [source for kind, source in cause.also if kind in ("tensor_size", "symbolic_shape")]


def _dynamic_fix(cause: Cause) -> dict[str, str] | None:
    if not cause.torch_sources:
        return None
    others = [name for source in _other_sizes(cause) if (name := paths.torch_source(source, None))]
    return {"dynamic_sources": ",".join(dict.fromkeys((*cause.torch_sources, *others)))}


def _zero_one(cause: Cause) -> Advice:
    special = " and ".join(sorted(ZERO_ONE & set(cause.values))) or "0 or 1"
    base, prop, dim = paths.split_property(cause.source)
    unbacked = f"torch._dynamo.decorators.mark_unbacked({name_of(cause)}, {dim})" if prop == "size" else "mark_unbacked"
    text = (
        f"torch always compiles size {special} on its own, mark_dynamic does not change that: pad to 2 or more, or "
        f"handle it outside. {unbacked} avoids it where no code depends on the size being 0 or 1."
    )
    fix = {"unbacked_sources": ",".join(cause.torch_sources)} if cause.torch_sources else None
    return Advice("size_zero_one", text, fix, usual_price(cause.count, "medium"))


def _specialized(cause: Cause) -> Advice:
    text = (
        f"The traced code needs {wording.spoken(cause.source) or 'the size'} as a Python number{at_line(cause)}, so "
        "each value is compiled on its own and mark_dynamic would be refused. Pad to a few sizes, or use tensor "
        "operations in place of a Python loop, range or list made from it."
    )
    return Advice("size_specialized", text)


def _branch(cause: Cause, bounds: list[str]) -> Advice:
    shown = wording.one_line(bounds[0], 80)
    text = (
        f"The closest entry holds only while `{shown}`: the code takes another way beyond it{at_line(cause)}. One "
        "entry a way is expected. To have fewer, keep sizes on one side of it or take the branch out of the compiled "
        "function."
    )
    what = None if len(cause.values) > 1 else f"`{shown}` no longer held"
    return Advice("size_branch", text, None, usual_price(cause.count), what)


def _module_tensor(cause: Cause) -> Advice:
    name = name_of(cause, "the tensor")
    text = (
        f"{name} belongs to a module, and torch keeps the sizes of module tensors static, mark_dynamic or not: pass "
        "it as an argument, or keep its size and use a part of it."
    )
    fix = {"dynamic_sources": ",".join(cause.torch_sources)} if cause.torch_sources else None
    return Advice("module_tensor_size", text, fix)


def advise_stride(cause: Cause) -> Advice:
    name = name_of(cause, "x")
    text = (
        f"Give it one memory layout before the call: {name} = {name}.contiguous(). For images kept in channels_last: "
        f"{name}.contiguous(memory_format=torch.channels_last) at every call."
    )
    return Advice("stride_changes", text, None, usual_price(cause.count))


def advise_rank(cause: Cause) -> Advice:
    name = name_of(cause, "x")
    text = (
        f"Each number of dimensions needs its own entry; no setting changes that. Bring {name} to one rank before the "
        f"call, for example {name}.unsqueeze(0) or {name}.flatten(0, 1)."
    )
    return Advice("rank_changes", text, None, usual_price(cause.count))
