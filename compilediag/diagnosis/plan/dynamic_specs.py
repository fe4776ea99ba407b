"""torch's public spelling for sizes and integers that vary: `torch.compile(dynamic_shapes=...)`, `@dynamic_spec`."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...decode.guards.path import Path, Step, parse_path
from ...decode.own_code import OwnCode
from ...formatting import format_names, format_place
from ..causes.edits import parse_code
from ..change import CodeChange, Edit
from ..inserted_code import SPEC_MODULE, SPEC_NAMES, get_new_option, is_known_code
from .spec_evidence import CannotSpecify, Slot, SpecEvidence

#: The first version of torch in which it is public.
SPEC_SINCE = (2, 15)
WIDTH = 100
_NAME = re.compile(r"(?!__)[A-Za-z_]\w*")
#: Where a module has its tensors, in torch's names of them: users write an attribute.
_OF_MODULES = (Step("attr", "_buffers"), Step("attr", "_parameters"))
_ARGUMENTS, _KEYWORDS = "*args", "**kwargs"


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
        items = _write_parameters(evidence, names)
    except CannotSpecify:
        return None
    frame = evidence.frame
    code, file, line = frame.code or "", frame.file or "", frame.line or 0
    is_own = bool(line) and own.is_own(file, frame.function, code)
    decorator = _parse_decorator(code) if is_own else None
    if decorator is not None:
        return _edit_decorator(*decorator, Edit(file, line, "replace", code, "", code=code), shared, items)
    if is_own and code.startswith(("def ", "async def ")) and not evidence.is_in_place and frame.function != "__call__":
        place = Edit(file, line, "insert_before", code, "", code=code)
        return _insert(place, shared, _write_call("@dynamic_spec(", items, ")"))
    called = "module.compile(" if evidence.is_in_place else f"torch.compile({_get_callable(frame.function)}, "
    lines = "\n".join([*shared, _write_call(f"{called}dynamic_shapes=", items, ")")])
    text = f"{_write_import(lines)}\n{lines}"
    return CodeChange(text=text) if is_known_code(text) else None


def _get_callable(function: str | None) -> str:
    """What is passed to torch.compile: `module`, or the function by its name if it has one."""
    if function == "forward":
        return "module"
    return function if function and _NAME.fullmatch(function) else "function"


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
    new = _write_call(f"{start}dynamic_shapes=", items, ")")
    before = "\n".join(shared)
    if get_new_option(text, new) is None or not is_known_code(before):
        return None
    imports = _write_import(f"{before}\n{new}")
    edits = (replace(place, kind="insert_before", new=before, imports=imports),) if shared else ()
    return CodeChange(edits=(*edits, replace(place, old=text, new=new, imports=imports)))


def _insert(place: Edit, shared: Sequence[str], decorator: str) -> CodeChange | None:
    new = "\n".join([*shared, decorator])
    return CodeChange(edits=(replace(place, new=new, imports=_write_import(new)),)) if is_known_code(new) else None


def _write_import(code: str) -> str:
    used = [name for name in SPEC_NAMES if re.search(rf"\b{name}\b", code)]
    return f"from {SPEC_MODULE} import {', '.join(used)}"


def _write_call(start: str, items: Sequence[str], end: str) -> str:
    """A call with a dict, on one line if that is short enough."""
    line = f"{start}{{{', '.join(items)}}}{end}"
    return line if len(line) <= WIDTH else "\n".join([f"{start}{{", *(f"    {item}," for item in items), f"}}{end}"])


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


def _write_parameters(evidence: SpecEvidence, names: Mapping[Slot, str]) -> list[str]:
    """The entries of the specification, one for each parameter: `"x": TensorSpec([ShapeVar("x_0"), STATIC])`."""
    root = _Node()
    for slot, text in _write_leaves(evidence, names).items():
        _add(root, [("key", _read(slot).root), *_list_steps(_read(slot))], text)
    return [_write_parameter(name, node, evidence.frame.parameters) for name, node in root.parts.items()]


def _read(slot: Slot) -> Path:
    return parse_path(slot.name) or Path(slot.name)


def _list_steps(path: Path) -> list[tuple[str, str]]:
    """The steps from an argument to a value: the kind of the specification of each, and its name there."""
    steps = path.steps
    if len(steps) > 1 and steps[-2] in _OF_MODULES:
        steps = (*steps[:-2], Step("attr", steps[-1].value))
    kinds = ["attribute" if step.kind == "attr" else "item" if type(step.value) is int else "key" for step in steps]
    return [(kind, str(step.value)) for kind, step in zip(kinds, steps, strict=True)]


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


def _add(node: _Node, steps: Sequence[tuple[str, str]], text: str) -> None:
    for kind, part in steps:
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
