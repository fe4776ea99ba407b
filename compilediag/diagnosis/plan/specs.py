"""torch's public spelling for sizes and integers that vary: `torch.compile(dynamic_shapes=...)`, `@dynamic_spec`.

Which of them vary in a compiled function, whether one specification of its arguments can name all, and how that is
written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any

from ...decode.call_stacks import OwnCode, is_torch_file
from ...decode.guards.guard_text import find_torch_source
from ...decode.guards.path import Path, Step, format_expression, parse_path
from ...events import Compile, GuardFailure, Recompile, StackFrame, SymbolicShape
from ...formatting import format_names, format_place
from ..causes.call_sites import find_compiled_call, read_own_code
from ..causes.cause import Cause
from ..causes.value_facts import INTEGER, find_optional_stacks, find_uses, read_integers
from ..change import CodeChange, Edit
from ..evidence import Evidence, Place, get_place, group_by, kept
from ..source_edits import SPEC_MODULE, SPEC_NAMES, get_new_option, is_known_code, parse_code

_SIZES = re.compile(r"\bsize=\[([^\]]*)\]")
_EQUAL = re.compile(r"Eq\((\w+), (\w+)\)")
#: Uses of a number that do not depend on its value.
_CALCULATIONS = frozenset({"operand", "update"})
#: `module.compile()` compiles this method, which calls forward.
_IN_PLACE = "_call_impl"
_CALLED = "_wrapped_call_impl"

#: The first version of torch in which it is public.
SPEC_SINCE = (2, 15)
WIDTH = 100
_NAME = re.compile(r"(?!__)[A-Za-z_]\w*")
#: Where a module has its tensors, in torch's names of them: users write an attribute.
_OF_MODULES = (Step("attr", "_buffers"), Step("attr", "_parameters"))
_ARGUMENTS, _KEYWORDS = "*args", "**kwargs"


@dataclass(frozen=True)
class Slot:
    """A size or an integer of an argument: torch's name of the tensor or number, and the dimension of a size."""

    name: str
    dim: int | None = None


@dataclass(frozen=True)
class SpecEvidence:
    """What varies in a function that was passed to torch.compile.

    `groups` are the sizes and integers; torch found that those of one group have to be equal. `ranks` has the number of
    dimensions of each tensor. `frame` is the function itself; `is_in_place` is true for `module.compile()`.
    """

    place: Place
    frame: StackFrame
    groups: tuple[tuple[Slot, ...], ...]
    ranks: Mapping[str, int]
    is_in_place: bool = False

    @property
    def slots(self) -> frozenset[Slot]:
        return frozenset(slot for group in self.groups for slot in group)


class CannotSpecify(Exception):
    """What varies cannot be named by a specification, or must not be."""


@dataclass(frozen=True)
class DynamicSpec:
    """One specification of all sizes and integers that vary in a function: another way to follow several steps.

    `steps` are those steps of the plan, from 1. `function`, `file` and `line` are the compiled function.
    """

    change: CodeChange
    steps: tuple[int, ...]
    function: str | None
    file: str | None
    line: int | None

    @property
    def title(self) -> str:
        """`Instead of steps 1 and 2, one specification of step (train.py:8):`"""
        numbers = format_names([str(number) for number in self.steps])
        place = format_place(self.file, self.line)
        where = f"{self.function} ({place})" if place else self.function
        return f"Instead of step{'s' if len(self.steps) > 1 else ''} {numbers}, one specification of {where}:"

    def to_dict(self) -> dict[str, Any]:
        """The specification as plain JSON values."""
        return {"title": self.title, "steps": [*self.steps], "code": self.change.code}


def find_specs(evidence: Evidence, chosen: Sequence[Sequence[Cause]]) -> tuple[DynamicSpec, ...]:
    """The specifications that can replace steps of a plan, given by the causes that each resolves."""
    own, found = read_own_code(evidence), []
    for varying in find_spec_evidence(evidence):
        steps = tuple(n for n, causes in enumerate(chosen, 1) if all(_covers(varying, cause) for cause in causes))
        change = write_spec(varying, own) if steps else None
        if change is not None:
            found.append(DynamicSpec(change, steps, *varying.place))
    return tuple(found)


def _covers(varying: SpecEvidence, cause: Cause) -> bool:
    """True if the specification names all sizes or numbers of a cause; torch's names of them have to be certain."""
    if cause.is_relation or cause.path.tensor_property not in (None, "size") or not cause.torch_sources:
        return False
    slots = [Slot(name, cause.path.dim) for name in cause.torch_sources]
    return cause.places == (varying.place,) and varying.slots.issuperset(slots)


# What varies


@kept
def find_spec_evidence(evidence: Evidence) -> list[SpecEvidence]:
    """The functions whose varying sizes and integers a specification can name.

    It makes them unbacked, and all others static. So a function is left out if its code depends on one of the values,
    or if other functions are compiled inside of it, such as the code after a graph break: their inputs become static.
    """
    rows = [row for row in evidence.rows(Compile) if row.function and row.stack and row.trigger != "lazy_backward"]
    inside: dict[str | None, list[StackFrame]] = {}
    for stack in dict.fromkeys(row.stack for row in rows):
        frames = [*evidence.stacks.walk(stack)][::-1]
        compiled = find_compiled_call(frames)
        # What runs in the outermost compiled call.
        inside[stack] = [] if compiled is None else frames[compiled + 1 :]
    functions = {stack: [row for row in path if not is_torch_file(row.file or "")] for stack, path in inside.items()}
    around = {(path[0].file, path[0].function) for path in functions.values() if len(path) > 1}
    found = []
    for place, own in group_by(rows, get_place).items():
        path = inside[own[0].stack]
        is_alone = all(len(functions[row.stack]) == 1 for row in own)
        if is_alone and (path[-1].file, path[-1].function) not in around:
            found.append(_find_varying(evidence, place, own, path))
    return [one for one in found if one is not None]


def _find_varying(
    evidence: Evidence, place: Place, compiles: Sequence[Compile], path: Sequence[StackFrame]
) -> SpecEvidence | None:
    """What varies in one function; None if a specification cannot name it."""
    keys = [row.compile_key for row in compiles]
    failures = [row for key in keys for row in evidence.by_compile(GuardFailure).get(key, ())]
    shapes = [evidence.by_compile(SymbolicShape).get(key, ()) for key in keys]
    if any(row.action == "created" for row in shapes[0]):
        return None  # Sizes are dynamic from the start: by marks, or by dynamic=True, which excludes a spec.
    try:
        failed, dynamic = set[Slot](), set[Slot]()
        # The sizes and integers of arguments that guards compared with another value.
        for row in failures:
            if row.guard_kind == "tensor_size" or (row.guard_kind == "value" and read_integers(row) is not None):
                name = find_torch_source(row.guard_source or "", row.guard)
                failed.add(_make_slot(name, Path.of(row.guard_source or "").dim))
        ties: list[tuple[Slot, Slot]] = []
        for own in shapes:
            symbols = _list_symbols(own)
            dynamic |= set(symbols.values())
            ties += _list_ties(own, symbols, find_optional_stacks(evidence))
        _check_uses(failed - dynamic, [row for key in keys for row in evidence.by_compile(Recompile).get(key, ())])
        ranks = _find_ranks(failed | dynamic, failures)
    except CannotSpecify:
        return None
    slots = sorted(failed | dynamic, key=lambda slot: (slot.name, slot.dim or 0))
    functions = [row.function for row in path]
    is_in_place = _IN_PLACE in functions and _CALLED not in functions
    return SpecEvidence(place, path[-1], _join(slots, ties), ranks, is_in_place) if slots else None


def _make_slot(name: str | None, dim: int | None) -> Slot:
    path = parse_path(name or "")
    if name is None or path is None or path.scope != "L" or path.torch_name is None:
        raise CannotSpecify(name)
    return Slot(name, dim)


def _list_symbols(shapes: Iterable[SymbolicShape]) -> dict[str, Slot]:
    """Symbol -> what it stands for, of one compile."""
    found = {}
    for row in shapes:
        if row.action == "created" and row.symbol and INTEGER.fullmatch(row.value or ""):
            path = parse_path(row.source or "")
            if path is None or path.tensor_property not in (None, "size"):
                raise CannotSpecify(row.source)
            found[row.symbol] = _make_slot(path.owner.torch_name, path.dim)
    return found


def _list_ties(
    shapes: Iterable[SymbolicShape], symbols: Mapping[str, Slot], optional: Set[str | None]
) -> Iterator[tuple[Slot, Slot]]:
    """The pairs that have to be equal. CannotSpecify if the code depends on a value in another way."""
    for row in shapes:
        if row.action == "specialized":
            raise CannotSpecify(row.source)
        if row.action == "guarded":
            equal = _EQUAL.fullmatch(row.expression or "")
            if equal is not None and {equal[1], equal[2]} <= symbols.keys():
                yield symbols[equal[1]], symbols[equal[2]]
            elif row.torch_stack not in optional:
                raise CannotSpecify(row.expression)


def _check_uses(slots: Iterable[Slot], recompiles: Sequence[Recompile]) -> None:
    """CannotSpecify unless each value that never was dynamic is a number that its line only calculates with."""
    for slot in slots:
        guarded = (row for row in recompiles if row.guard_source)
        rows = [row for row in guarded if find_torch_source(row.guard_source or "", row.reason) == slot.name]
        uses = [find_uses(row.user_code, format_expression(row.guard_source or "")) for row in rows]
        if slot.dim is not None or not uses or not all(use and use <= _CALCULATIONS for use in uses):
            raise CannotSpecify(slot.name)


def _find_ranks(slots: Iterable[Slot], failures: Iterable[GuardFailure]) -> dict[str, int]:
    """The number of dimensions of each tensor among the slots. CannotSpecify if one is not known, or not constant."""
    tensors = {slot.name for slot in slots if slot.dim is not None}
    ranks: dict[str, set[int]] = {name: set() for name in tensors}
    for row in failures:
        name = find_torch_source(Path.of(row.guard_source or "").owner.text, row.guard) or ""
        if name in ranks and row.guard_kind in ("type", "value", "tensor_rank"):
            raise CannotSpecify(name)
        sizes = _SIZES.search(row.guard or "")
        if name in ranks and sizes:
            ranks[name].add(len([size for size in sizes[1].split(",") if size.strip()]))
    if any(len(found) != 1 for found in ranks.values()):
        raise CannotSpecify(ranks)
    return {name: found.pop() for name, found in ranks.items()}


def _join(slots: Sequence[Slot], ties: Iterable[tuple[Slot, Slot]]) -> tuple[tuple[Slot, ...], ...]:
    """The slots in groups that have to be equal, in the order of the slots."""
    group = {slot: {slot} for slot in slots}
    for one, other in ties:
        joined = group[one] | group[other]
        group.update(dict.fromkeys(joined, joined))
    found = dict.fromkeys(tuple(slot for slot in slots if slot in group[first]) for first in slots)
    return tuple(found)


# How it is written


@dataclass
class _Node:
    """A value that is passed: a leaf with its text, or an object with the parts that are specified."""

    text: str = ""
    kind: str = ""
    parts: dict[str, _Node] = field(default_factory=dict)


def write_spec(evidence: SpecEvidence, own: OwnCode) -> CodeChange | None:
    """The change of the user's code that specifies what varies; None if a specification cannot express it.

    A decorated function gets the argument `dynamic_shapes` at its decorator, another one of the user's the decorator
    `@dynamic_spec`. Where torch.compile is called with a module or a function of a library, the code is to paste.
    """
    try:
        names = _name_variables(evidence)
        shared = [f"{names[group[0]]} = {_write_variable(group, names)}" for group in evidence.groups if len(group) > 1]
        root = _Node()
        for slot, text in _write_leaves(evidence, names).items():
            _add(root, _read(slot), text)
        items = [_write_parameter(name, node, evidence.frame.parameters) for name, node in root.parts.items()]
    except CannotSpecify:
        return None
    frame = evidence.frame
    code, file, line = frame.code or "", frame.file or "", frame.line or 0
    is_own = bool(line) and own.is_own(file, frame.function, code)
    decorator = _parse_decorator(code) if is_own else None
    if decorator is not None:
        return _edit_decorator(*decorator, Edit(file, line, "replace", code, "", code=code), shared, items)
    if is_own and code.startswith(("def ", "async def ")) and not evidence.is_in_place and frame.function != "__call__":
        new = "\n".join([*shared, _write_call("@dynamic_spec(", items)])
        edit = Edit(file, line, "insert_before", code, new, imports=_write_import(new), code=code)
        return CodeChange(edits=(edit,)) if is_known_code(new) else None
    name = frame.function or ""
    function = "module" if name == "forward" else name if _NAME.fullmatch(name) else "function"
    called = "module.compile(" if evidence.is_in_place else f"torch.compile({function}, "
    lines = "\n".join([*shared, _write_call(f"{called}dynamic_shapes=", items)])
    text = f"{_write_import(lines)}\n{lines}"
    return CodeChange(text=text) if is_known_code(text) else None


def _parse_decorator(code: str) -> tuple[str, tuple[str, ...]] | None:
    """The text of `@torch.compile`, and its options; None for another line."""
    tree = parse_code(f"{code}\ndef f(): pass") if code.startswith("@") else None
    function = tree.body[0] if tree else None
    if not isinstance(function, ast.FunctionDef):
        return None
    decorator = function.decorator_list[0]
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    if ast.unparse(called) != "torch.compile":
        return None
    options = [keyword.arg or "**" for keyword in decorator.keywords] if isinstance(decorator, ast.Call) else []
    return code.encode()[: decorator.end_col_offset].decode(), tuple(options)


def _edit_decorator(
    text: str, options: Sequence[str], place: Edit, shared: Sequence[str], items: Sequence[str]
) -> CodeChange | None:
    if {"dynamic", "dynamic_shapes"} & set(options):
        return None
    start = f"{text[:-1].rstrip().removesuffix(',')}{', ' if options else ''}" if text.endswith(")") else f"{text}("
    new = _write_call(f"{start}dynamic_shapes=", items)
    before = "\n".join(shared)
    if get_new_option(text, new) is None or not is_known_code(before):
        return None
    imports = _write_import(f"{before}\n{new}")
    edits = (replace(place, kind="insert_before", new=before, imports=imports),) if shared else ()
    return CodeChange(edits=(*edits, replace(place, old=text, new=new, imports=imports)))


def _write_import(code: str) -> str:
    used = [name for name in SPEC_NAMES if re.search(rf"\b{name}\b", code)]
    return f"from {SPEC_MODULE} import {', '.join(used)}"


def _write_call(start: str, items: Sequence[str]) -> str:
    """A call with a dict, on one line if that is short enough."""
    line = f"{start}{{{', '.join(items)}}})"
    return line if len(line) <= WIDTH else "\n".join([f"{start}{{", *(f"    {item}," for item in items), "})"])


# Variables


def _name_variables(evidence: SpecEvidence) -> dict[Slot, str]:
    """Slot -> the name of its variable. Those that have to be equal share one."""
    names: dict[Slot, str] = {}
    for group in evidence.groups:
        words = re.findall(r"\w+", _read(group[0]).text)
        last = max((at for at, word in enumerate(words) if not word.isdigit()), default=0)
        dim = [] if group[0].dim is None else [str(group[0].dim)]
        short, whole = "_".join([*words[last:], *dim]), "_".join([*words, *dim])
        names.update(dict.fromkeys(group, whole if short in names.values() else short))
    return names


def _write_variable(group: Sequence[Slot], names: Mapping[Slot, str]) -> str:
    is_size = any(slot.dim is not None for slot in group)
    return f'{"ShapeVar" if is_size else "IntVar"}("{names[group[0]]}")'


# Arguments


def _read(slot: Slot) -> Path:
    return parse_path(slot.name) or Path(slot.name)


def _write_leaves(evidence: SpecEvidence, names: Mapping[Slot, str]) -> dict[Slot, str]:
    """Each tensor and number, as a slot without a dimension -> its specification."""
    written = {
        slot: names[slot] if len(group) > 1 else _write_variable(group, names)
        for group in evidence.groups
        for slot in group
    }
    leaves = {}
    for slot in dict.fromkeys(Slot(slot.name) for slot in written):
        if slot.name in evidence.ranks:
            dims = [written.get(Slot(slot.name, dim), "STATIC") for dim in range(evidence.ranks[slot.name])]
            leaves[slot] = f"TensorSpec([{', '.join(dims)}])"
        else:
            leaves[slot] = written[slot]
    return leaves


def _add(node: _Node, path: Path, text: str) -> None:
    """Add the specification of a tensor or number to the parameter that it is in, as a part of that."""
    steps = path.steps
    if len(steps) > 1 and steps[-2] in _OF_MODULES:
        steps = (*steps[:-2], Step("attr", steps[-1].value))
    kinds = ["attribute" if step.kind == "attr" else "item" if type(step.value) is int else "key" for step in steps]
    parts = [path.root, *(str(step.value) for step in steps)]
    for kind, part in zip(["key", *kinds], parts, strict=True):
        if node.text or node.kind not in ("", kind):
            raise CannotSpecify(part)
        node.kind = kind
        node = node.parts.setdefault(part, _Node())
    if node.parts:
        raise CannotSpecify(text)
    node.text = text


def _write_parameter(name: str, node: _Node, parameters: Sequence[str] | None) -> str:
    if parameters is None or name in parameters or f"{name}=" in parameters:
        return f"{_quote(name)}: {_write_node(node)}"
    if f"*{name}" in parameters and node.kind == "item":
        return f'"{_ARGUMENTS}": {_write_list(node)}'
    if f"**{name}" in parameters and node.kind == "key":
        return f'"{_KEYWORDS}": {_write_dict(node)}'
    raise CannotSpecify(name)


def _write_node(node: _Node) -> str:
    if node.text:
        return node.text
    if node.kind == "item":
        return f"SeqSpec({_write_list(node)})"
    return f"{'ObjectSpec' if node.kind == 'attribute' else 'DictSpec'}({_write_dict(node)})"


def _write_dict(node: _Node) -> str:
    return f"{{{', '.join(f'{_quote(part)}: {_write_node(value)}' for part, value in node.parts.items())}}}"


def _quote(text: str) -> str:
    if not text.isprintable() or '"' in text or "\\" in text:
        raise CannotSpecify(text)
    return f'"{text}"'


def _write_list(node: _Node) -> str:
    last = max(map(int, node.parts))
    items = [_write_node(node.parts[str(at)]) if str(at) in node.parts else "STATIC" for at in range(last + 1)]
    return f"[{', '.join(items)}]"
