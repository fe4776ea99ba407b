"""Advice about sizes, strides and ranks of tensors, and about the guards of dynamic shapes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ...decode.guards.path import format_source
from ...events import Recompile
from ...formatting import format_expression, is_resumed
from ..change import CodeChange
from ..inserted_code import write_path
from ..settings import Settings, fix_code
from .advice import (
    Advice,
    advise_branch,
    advise_specialized,
    advise_static_source,
    edit_argument,
    format_user_line,
    get_name,
    get_usual_ceiling,
    is_branch,
    is_specialized,
    is_usual,
    list_changes,
    list_static_reasons,
    make_dynamic_fix,
)
from .call_sites import NamedSite
from .cause import ZERO_ONE, Cause, list_unique
from .edits import insert_before
from .mark_advice import MARKS, advise_marks
from .source_paths import is_size, is_stack_value, normalize_source, split_property
from .value_advice import advise_value

#: Marks a size as dynamic, without an error if the code turns out to fix it.
MARK = "torch._dynamo.maybe_mark_dynamic"
#: Marks a size as one that may also be 0 or 1.
UNBACKED = "torch._dynamo.decorators.mark_unbacked"
#: The first version of torch that compiles a slice whose bounds are an unbacked size and another number.
UNBACKED_SLICES_SINCE = (2, 13)
#: A tensor behind more attributes and items than these is not one that users pass.
MAX_STEPS = 2
_MODULE_TENSOR = re.compile(r"\._(?:buffers|parameters)\[")
#: Kinds of guards that marking a size as dynamic removes.
SIZE_KINDS = ("tensor_size", "symbolic_shape")
#: The size of a tensor that is broadcast, in what came: `keep.size()[1] = 1, x.size()[1] = 2`.
_ONE = re.compile(r"(?<![\w.\[\]'])([\w.\[\]']+)\.size\(\)\[\d+\] = 1\b")
#: torch's words for a guard that two sizes are equal because they were equal at the first call.
_DUCK = "duck sizing"


def advise_size(cause: Cause) -> Advice:
    """A size that varies.

    torch makes a size dynamic by itself after its first change, so one recompile is usual. It never does so for 0 and
    1, for sizes that a line of the code fixes, and for tensors of modules.
    """
    if (by_setting := advise_static_source(cause)) is not None:
        return by_setting
    if _is_zero_one(cause):
        return _advise_zero_one(cause)
    if is_specialized(cause):
        return advise_specialized(cause)
    if is_branch(cause):
        return advise_branch(cause)
    if cause.facts.is_parameter or any(_MODULE_TENSOR.search(name) for name in cause.torch_sources):
        return _advise_module_tensor(cause)
    return _advise_dynamic(cause)


def advise_symbolic(cause: Cause) -> Advice:
    """A guard that only dynamic shapes have: on one size, on one number, or on how several of them relate."""
    if any(_DUCK in reason for reason in cause.reasons):
        return _advise_broadcast(cause) if _is_broadcast(cause) else _advise_duck_sizing(cause)
    if mark := MARKS.search(cause.source):
        return advise_marks(cause, mark[1])
    if "," in cause.source or not cause.source:
        return _advise_relation(cause)
    return advise_size(cause) if is_size(cause.source) else advise_value(cause)


def _is_zero_one(cause: Cause) -> bool:
    """True if the recompiles are those of the sizes 0 and 1, and none more than the usual one of a first change."""
    return ZERO_ONE & set(cause.values) != set() and (is_usual(cause) or all(map(_touches_zero_one, cause.recompiles)))


def _touches_zero_one(row: Recompile) -> bool:
    if row.guard_kind == "symbolic_shape":
        return row.actual in ZERO_ONE or (row.actual is None and row.expected == ">= 2")
    return row.actual in ZERO_ONE or row.expected in ZERO_ONE


def _advise_dynamic(cause: Cause) -> Advice:
    fix, marks = make_dynamic_fix(cause), _list_marks(cause, MARK)
    usual = is_usual(cause)
    explanation = (
        "torch makes a size dynamic by itself after its first change, so one recompile is usual."
        if usual
        else f"By default torch makes a size dynamic after its first change, so {list_static_reasons()}."
    )
    zero_one = "Sizes 0 and 1 are still compiled on their own. " if ZERO_ONE & set(cause.values) else ""
    return Advice(
        "size_changes",
        _write_marks(cause, fix, marks),
        zero_one + explanation,
        _order_changes(cause, _edit_marks(cause, MARK), fix),
        get_usual_ceiling(cause) if usual else "high",
    )


def _order_changes(cause: Cause, edit: CodeChange | None, fix: Settings | None) -> tuple[CodeChange, ...]:
    """An edit of the user's call first, if all values that changed are values there; otherwise no edit.

    What is computed before a graph break is not marked with the arguments, but torch's setting can name it.
    """
    return list_changes(edit, fix) if cause.user.is_whole else list_changes(fix or edit)


def _edit_marks(cause: Cause, mark: str) -> CodeChange | None:
    """The marks before each line that compiled an entry or recompiled, in the names there; None if one has no name."""
    sites = cause.user.sites
    edits = [insert_before(one.site, _list_marks(cause, mark, one)) for one in sites]
    return CodeChange(edits=tuple(edit for found in edits for edit in found)) if sites and all(edits) else None


def _write_marks(cause: Cause, fix: Settings | None, marks: tuple[str, ...]) -> str:
    """The marks of the size and of those that changed with it, as code."""
    is_whole = cause.user.is_whole or cause.call_site is None
    if fix and (is_resumed(cause.recompiles[0].function) or not is_whole or not marks):
        # A value from before a graph break may have no name where the user could mark it, but torch can name it.
        origin = " It comes from before a graph break." if is_resumed(cause.recompiles[0].function) else ""
        return f"Make it dynamic: {fix_code(fix)}.{origin}"
    return f"Mark it dynamic before the call: {'; '.join(marks) or f'{MARK}(tensor, dim)'}."


def _list_marks(cause: Cause, mark: str, at: NamedSite | None = None) -> tuple[str, ...]:
    """The statements that mark the size, and those that changed with it; none if a mark cannot be written or fails.

    Marking one of several sizes that have to be equal has no effect, so all of them are marked or none; tensors of
    modules stay static. A tensor that does not exist at some calls, or only inside of other objects, cannot be marked
    before the first one; nor can an integer that is the same change, with which the code compares the size. `at` is a
    line of the user's; by default all lines, or the compiled function if the user's line is not known.
    """
    if cause.facts.is_sometimes_absent or cause.facts.is_parameter or _changes_an_integer(cause):
        return ()
    if at is None and cause.user.site is not None:
        return list_unique(text for one in cause.user.sites for text in _list_marks(cause, mark, one))
    of_modules = {normalize_source(format_source(name)) for name in cause.also_named if _MODULE_TENSOR.search(name)}
    sizes = [guard for guard in cause.also if guard[0] in SIZE_KINDS and "," not in guard[1]]
    static = [guard for guard in sizes if split_property(guard[1])[0] in of_modules]
    if set(static) & set(cause.members.guards):
        return ()
    others = [source for kind, source in sizes if (kind, source) not in static]
    sources = [source for source in (cause.source, *others) if at is None or source in at.sources]
    marks = [_write_mark(source, None if at is None else at.names, mark) for source in sources]
    return () if None in marks else tuple(dict.fromkeys(text for text in marks if text is not None))


def _changes_an_integer(cause: Cause) -> bool:
    return any(kind not in SIZE_KINDS for kind, _ in cause.members.guards)


def _write_mark(source: str, names: Mapping[str, str] | None, mark: str) -> str | None:
    base, name, dim = split_property(source)
    text = write_path(base if names is None else names.get(source))
    if name != "size" or text is None or is_stack_value(text):
        return None
    return None if text.count(".") + text.count("[") > MAX_STEPS else f"{mark}({text}, {dim})"


def _advise_zero_one(cause: Cause) -> Advice:
    special = sorted(ZERO_ONE & set(cause.values)) or ["0", "1"]
    sizes = f"size {special[0]}" if len(special) == 1 else "sizes 0 and 1"
    its = "its" if len(special) == 1 else "their"
    pad = f"Pad to 2 or more, or handle {sizes} outside the compiled function."
    explanation = f"torch always compiles {sizes} on {its} own, with or without mark_dynamic."
    ceiling = get_usual_ceiling(cause, "medium")
    if cause.facts.has_conditions or is_specialized(cause):
        explanation += " Its code depends on the size, so the size cannot be unbacked."
        return _advise_larger_sizes(cause, Advice("size_zero_one", pad, explanation, list_changes(pad), ceiling))
    if cause.facts.torch_version < UNBACKED_SLICES_SINCE and cause.facts.has_number_conditions:
        explanation += " The code combines the size with a number; before torch 2.13 such a size cannot be unbacked."
        return _advise_larger_sizes(cause, Advice("size_zero_one", pad, explanation, list_changes(pad), ceiling))
    marks = _list_marks(cause, UNBACKED)
    can_be_set = split_property(cause.source)[1] and not cause.facts.has_tensor_conditions and not _is_made(cause)
    fix = make_dynamic_fix(cause, "unbacked_sources") if can_be_set else None
    way = "; ".join(marks) or fix_code(fix)
    if not way:
        return _advise_larger_sizes(cause, Advice("size_zero_one", pad, explanation, list_changes(pad), ceiling))
    return Advice(
        "size_zero_one",
        f"{pad} If no code depends on whether the size is 0 or 1: {way}.",
        explanation,
        _order_changes(cause, _edit_marks(cause, UNBACKED), fix) or list_changes(pad),
        ceiling,
    )


def _advise_larger_sizes(cause: Cause, advice: Advice) -> Advice:
    """The advice with what makes the other sizes dynamic, if there are several of them."""
    fix = make_dynamic_fix(cause)
    if len({*cause.values} - ZERO_ONE) < 2 or is_specialized(cause) or is_branch(cause) or fix is None:
        return advice
    mark = _write_marks(cause, fix, _list_marks(cause, MARK))
    changes = _order_changes(cause, _edit_marks(cause, MARK), fix)
    if _is_made(cause):
        return replace(advice, action=mark, changes=changes)
    rest = f"For the rest, {advice.action[:1].lower()}{advice.action[1:]}"
    return replace(advice, action=f"{mark} {rest}", changes=(*changes, *advice.changes))


def _is_made(cause: Cause) -> bool:
    """True for a value that has no name at the user's call: a library makes it there, and its code is a library's."""
    return cause.user.site is not None and not cause.user.sites


def _advise_module_tensor(cause: Cause) -> Advice:
    fix, name = make_dynamic_fix(cause), get_name(cause, "the tensor")
    if cause.facts.is_parameter and not any("._parameters[" in source for source in cause.torch_sources):
        return Advice(
            "module_tensor_size",
            f"Let the sizes of this parameter vary: {fix_code(fix)}." if fix else f"Pass {name}.data, a plain tensor.",
            "It is a Parameter, and torch keeps the sizes of parameters static, with or without mark_dynamic.",
            list_changes(fix, None if fix else f"Pass {name}.data, a plain tensor."),
        )
    if any("._parameters[" in source for source in cause.torch_sources):
        return Advice(
            "modules_share_code",
            f"Let the sizes of parameters vary: {fix_code(fix)}.",
            f"{get_name(cause, 'A parameter')} has another size because another module runs the same code, or because "
            "it was replaced. torch compiles each size of a parameter on its own, with or without mark_dynamic.",
            list_changes(fix),
        )
    as_argument = f"Pass {name} as an argument."
    return Advice(
        "module_tensor_size",
        f"Let its size vary: {fix_code(fix)}." if fix else as_argument,
        "It belongs to a module, and torch keeps the sizes of module tensors static, with or without mark_dynamic.",
        list_changes(fix or as_argument),
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


def _is_broadcast(cause: Cause) -> bool:
    """True if one of two sizes that were equal became 1 at each of these recompiles: torch compiles 1 on its own."""
    return all(_ONE.search(row.actual or "") for row in cause.recompiles)


def _advise_broadcast(cause: Cause) -> Advice:
    found = _ONE.search(cause.recompiles[0].actual or "")
    name = format_expression(found[1]) if found else "the tensor"
    return Advice(
        "size_zero_one",
        f"Give {name} its full size before the call, where it is 1: expand(...).contiguous().",
        f"{name} is broadcast at some calls only, and torch always compiles size 1 on its own.",
        ceiling=get_usual_ceiling(cause, "medium"),
        what_changed=_describe_relation(cause),
    )


def _advise_relation(cause: Cause) -> Advice:
    return Advice(
        "size_relation",
        "Pad, or move the branch or broadcast out of the compiled function.",
        f"The compiled code is valid only while the sizes relate as they did{format_user_line(cause)}. One compiled "
        "version per relation is expected.",
        ceiling=get_usual_ceiling(cause),
        what_changed=_describe_relation(cause),
        is_expected=True,
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
        list_changes(edit_argument(cause, "{0}.contiguous()") or f"Pass {name}.contiguous() at every call."),
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
