"""Advice about sizes, strides and ranks of tensors, and about the guards of dynamic shapes."""

from __future__ import annotations

import re

from ...events import Recompile
from ...formatting import format_expression, is_resumed
from ..settings import Settings, fix_code
from .advice import (
    Advice,
    advise_branch,
    advise_specialized,
    edit_call,
    format_user_line,
    get_name,
    get_usual_ceiling,
    is_branch,
    is_specialized,
    list_changes,
    make_dynamic_fix,
)
from .cause import ZERO_ONE, Cause
from .edits import get_user_value
from .source_paths import is_size, is_stack_value, split_property
from .value_advice import advise_value

_MODULE_TENSOR = re.compile(r"\._(?:buffers|parameters)\[")
#: Kinds of guards that marking a size as dynamic removes.
SIZE_KINDS = ("tensor_size", "symbolic_shape")
#: torch's words for a guard that two sizes are equal because they were equal at the first call.
_DUCK = "duck sizing"


def advise_size(cause: Cause) -> Advice:
    """A size that varies.

    torch makes a size dynamic by itself after its first change, so one recompile is usual. It never does so for 0 and
    1, for sizes that Python code needs as a number, and for tensors of modules.
    """
    if all(_touches_zero_one(row) for row in cause.recompiles):
        return _advise_zero_one(cause)
    if is_specialized(cause):
        return advise_specialized(cause)
    if is_branch(cause):
        return advise_branch(cause)
    if any(_MODULE_TENSOR.search(name) for name in cause.torch_sources):
        return _advise_module_tensor(cause)
    return _advise_dynamic(cause)


def advise_symbolic(cause: Cause) -> Advice:
    """A guard that only dynamic shapes have: on one size, on one number, or on how several of them relate."""
    if any(_DUCK in reason for reason in cause.reasons):
        return _advise_duck_sizing(cause)
    if "," in cause.source or not cause.source:
        return _advise_relation(cause)
    return advise_size(cause) if is_size(cause.source) else advise_value(cause)


def _touches_zero_one(row: Recompile) -> bool:
    if row.guard_kind == "symbolic_shape":
        return row.actual in ZERO_ONE or (row.actual is None and row.expected == ">= 2")
    return row.actual in ZERO_ONE or row.expected in ZERO_ONE


def _advise_dynamic(cause: Cause) -> Advice:
    fix = make_dynamic_fix(cause)
    is_usual = cause.max_per_function == 1
    zero_one = "Sizes 0 and 1 are still compiled on their own. " if ZERO_ONE & set(cause.values) else ""
    explanation = (
        "torch makes a size dynamic by itself after its first change, so one recompile is usual."
        if is_usual
        else "By default torch makes a size dynamic after its first change, so the function is probably compiled with "
        "dynamic=False (dynamic=None is enough), or its code needs the size as a number; torch then rejects the mark."
    )
    return Advice(
        "size_changes",
        _write_marks(cause, fix, " before the first call" if is_usual else ""),
        zero_one + explanation,
        list_changes(edit_call(cause, *_list_marks(cause)), fix),
        get_usual_ceiling(cause) if is_usual else "high",
    )


def _write_marks(cause: Cause, fix: Settings | None, when: str) -> str:
    """The marks of the size and of those that changed with it, as code."""
    function = cause.recompiles[0].function
    if fix and is_resumed(function):
        # A value from before a graph break may have no name where the user could mark it, but torch can name it.
        return f"Mark the input that it is computed from, or set {fix_code(fix)}. It comes from before a graph break."
    marks = "; ".join(_list_marks(cause)) or "torch._dynamo.mark_dynamic(tensor, dim)"
    return f"Mark it dynamic{when}: {marks}."


def _list_marks(cause: Cause) -> tuple[str, ...]:
    """The statements that mark the size, and those that changed with it."""
    others = (source for kind, source in cause.also if kind in SIZE_KINDS)
    marks = (_write_mark(cause.source, get_user_value(cause)), *map(_write_mark, others))
    return tuple(mark for mark in marks if mark is not None)


def _write_mark(source: str, value: str | None = None) -> str | None:
    base, name, dim = split_property(source)
    if name != "size" or "*" in base or is_stack_value(base):
        return None
    return f"torch._dynamo.mark_dynamic({value or format_expression(base)}, {dim})"


def _advise_zero_one(cause: Cause) -> Advice:
    special = sorted(ZERO_ONE & set(cause.values)) or ["0", "1"]
    sizes = f"size {special[0]}" if len(special) == 1 else "sizes 0 and 1"
    _, name, dim = split_property(cause.source)
    mark = f"torch._dynamo.decorators.mark_unbacked({get_name(cause)}, {dim})"
    fix: Settings | None = None
    if cause.torch_sources and name:
        fix = {"unbacked_sources": ",".join(cause.torch_sources)}
    return Advice(
        "size_zero_one",
        f"Pad to 2 or more, or handle {sizes} outside the compiled function. If no code depends on whether the size "
        f"is 0 or 1: {mark}.",
        f"torch always compiles {sizes} on {'its' if len(special) == 1 else 'their'} own, with or without "
        "mark_dynamic.",
        list_changes(
            edit_call(cause, mark),
            fix,
            f"Pad it to 2 or more, or handle {sizes} outside the compiled function.",
        ),
        get_usual_ceiling(cause, "medium"),
    )


def _advise_module_tensor(cause: Cause) -> Advice:
    fix = make_dynamic_fix(cause)
    if any("._parameters[" in name for name in cause.torch_sources):
        return Advice(
            "modules_share_code",
            f"Let the sizes of parameters vary: {fix_code(fix)}.",
            f"{get_name(cause, 'A parameter')} has another size because another module runs the same code, or because "
            "it was replaced. torch compiles each size of a parameter on its own, with or without mark_dynamic.",
            list_changes(fix),
        )
    return Advice(
        "module_tensor_size",
        f"Pass {get_name(cause, 'the tensor')} as an argument, or keep its size and use a part of it.",
        "It belongs to a module, and torch keeps the sizes of module tensors static, with or without mark_dynamic.",
        list_changes(
            fix, f"Pass {get_name(cause, 'the tensor')} as an argument, or keep its size and use a part of it."
        ),
    )


def _advise_duck_sizing(cause: Cause) -> Advice:
    return Advice(
        "duck_sizing",
        "Make the first call with different sizes, or set torch.fx.experimental._config.use_duck_shape = False.",
        "At the first compile, torch treated equal sizes as one size (duck sizing).",
        list_changes({"use_duck_shape": False}, "Make the first call with different sizes."),
        get_usual_ceiling(cause),
        _describe_relation(cause),
    )


def _advise_relation(cause: Cause) -> Advice:
    return Advice(
        "size_relation",
        "Pad, or move the branch or broadcast out of the compiled function.",
        f"The compiled code is valid only while the sizes relate as they did{format_user_line(cause)}. One compiled "
        "version per relation is expected.",
        ceiling=get_usual_ceiling(cause),
        what_changed=_describe_relation(cause),
    )


def _describe_relation(cause: Cause) -> str:
    first, _, rest = cause.source.partition(", ")
    bound = cause.bounds[0] if cause.bounds else ""
    if first and rest and bound == rest:
        return f"{format_expression(first)} no longer equals {format_expression(rest)}"
    return f"{format_expression(bound)} no longer holds" if bound else "the sizes no longer relate as they did"


def advise_stride(cause: Cause) -> Advice:
    """A tensor that comes in several memory layouts."""
    name = get_name(cause, "x")
    return Advice(
        "stride_changes",
        f"Use one memory layout: {name} = {name}.contiguous().",
        f"For images in channels_last, use {name}.contiguous(memory_format=torch.channels_last) at every call.",
        ceiling=get_usual_ceiling(cause),
    )


def advise_rank(cause: Cause) -> Advice:
    """A tensor that comes with several numbers of dimensions."""
    name = get_name(cause, "x")
    return Advice(
        "rank_changes",
        f"Use one number of dimensions, for example {name}.unsqueeze(0) or {name}.flatten(0, 1).",
        "Each number of dimensions needs its own compiled version; no setting changes that.",
        ceiling=get_usual_ceiling(cause),
    )
