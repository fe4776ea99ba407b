"""A Python script of two calls with fake inputs, at the second of which the guard of a recompile fails again.

Of the session it has names that are identifiers, constants that were parsed, and numbers: all else is refused.
"""

from __future__ import annotations

import ast
import keyword
import math
import re
from collections.abc import Sequence

from ..decode.guards.path import NotConstant, Path, Step, parse_expression, read_constant
from ..errors import CompilediagError
from ..events import Recompile
from ..formatting import escape_lines, format_line
from ..storage.data import SessionData

#: Names that the script uses itself.
_OWN_NAMES = frozenset({"torch", "len", "Value"})
_DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "bfloat16", "float16", "float32", "float64"),
    *("complex64", "complex128"),
)
_TENSOR = re.compile(rf"Tensor ({'|'.join(_DTYPES)})\[((?:\d{{1,7}}(?:, )?){{0,6}})\] cpu")
#: What stands for a value of a type, at the second call.
_OF_TYPE = {"NoneType": "None", "float": "0.5", "int": "3"}
_MAX_ELEMENTS = 1 << 20
_MAX_LENGTH = 1000
#: Python reads at most 200 brackets within each other.
_MAX_STEPS = 50
_MAX_TEXT = 200
_SIZE, _LENGTH = Step("method", "size"), Step("function", "len")

_SCRIPT = '''"""The guard of recompile {event} fails again, with fake inputs.

Written by compilediag for torch {torch}. The function is not the program's: it only reads the same value.
torch prints the guard that fails at the second call.
"""

import torch

#: The kind of the guard, and the guarded value.
GUARD = {guard}


class Value:
    def __init__(self, /, **attributes):
        self.__dict__.update(attributes)


@torch.compile(backend="eager")
def read({root}):
    return {result}


torch._logging.set_logs(recompiles=True)
read({expected})
read({actual})
'''


def make_repro(data: SessionData, event_id: int | None = None) -> str:
    """The text of the script; see `Session.repro`."""
    rows = data.rows(Recompile)
    torch = format_line(str(data.meta.get("torch_version")), 40)
    if not re.fullmatch(r"[\w.+-]+", torch, re.ASCII):
        torch = "of another version"
    if event_id is not None:
        found = next((row for row in rows if row.event_id == event_id), None)
        if found is None:
            raise CompilediagError(f"no recompile has the event id {event_id}")
        return _format_script(found, torch)
    for row in sorted(rows, key=lambda row: -(row.lost_s or 0.0)):
        try:
            return _format_script(row, torch)
        except CompilediagError:
            continue
    raise CompilediagError("no recompile of this session can be reproduced with fake inputs")


def _format_script(row: Recompile, torch: str) -> str:
    path = Path.of(row.guard_source or "")
    expected, actual = row.expected or "", row.actual or ""
    steps, result, pair = _imitate(row.guard_kind or "", path.steps, expected, actual)
    _check_name(path.root)
    if path.scope or path.root in _OWN_NAMES:
        raise _refuse("the guarded value is no argument, global or attribute")
    if len(steps) > _MAX_STEPS:
        raise _refuse(f"the path to its value has more than {_MAX_STEPS} steps")
    code = path.root + "".join(map(_format_step, steps))
    first, second = (_build(steps, leaf) for leaf in pair)
    if first == second:
        raise _refuse("the two recorded values are the same")
    result = result.format(code)
    return escape_lines(
        _SCRIPT.format(
            event=int(row.event_id or 0),
            torch=torch,
            guard=repr((row.guard_kind, row.guard_source)),
            root=path.root,
            result=result,
            expected=first,
            actual=second,
        )
    )


def read_guard(script: str) -> tuple[str, str]:
    """The kind of the guard of a script, and the guarded value."""
    assigned = next(node for node in ast.parse(script).body if isinstance(node, ast.Assign))
    kind, source = (str(one) for one in read_constant(assigned.value))  # type: ignore[attr-defined]
    return kind, source


def _imitate(kind: str, steps: tuple[Step, ...], expected: str, actual: str) -> tuple[Sequence[Step], str, list[str]]:
    """The steps to the object that the script builds, what its function returns of it, and the object of each call."""
    match kind, steps:
        case "tensor_size", (*before, size, Step("item", int() as dim)) if size == _SIZE and 0 <= dim < 6:
            shapes = ([2] * dim + [_read_int(text, _MAX_ELEMENTS >> 6)] for text in (expected, actual))
            return before, "{} + 1", [f"torch.ones({shape})" for shape in shapes]
        case "tensor_dtype", (*before, Step("attr", "dtype")):
            if not {expected, actual} <= {f"torch.{name}" for name in _DTYPES}:
                raise _refuse("its dtype is not a plain one")
            return before, "{} + 1", [f"torch.ones([2], dtype={dtype})" for dtype in (expected, actual)]
        case "requires_grad", (*before, Step("attr", "requires_grad")) if {expected, actual} == {"True", "False"}:
            return before, "{} + 1", [f"torch.ones([2], requires_grad={flag})" for flag in (expected, actual)]
        case "length", (*before, length) if length == _LENGTH:
            return (
                before,
                "torch.ones(2) * len({})",
                [f"[0] * {_read_int(text, _MAX_LENGTH)}" for text in (expected, actual)],
            )
        case "type", _ if expected == "Tensor" and actual in _OF_TYPE:
            return steps, "torch.ones(2) if {0} is None else {0} + 1", ["torch.ones([2])", _OF_TYPE[actual]]
        case "value", _:
            constant = _read_constant(expected)
            other = _format_tensor(actual) if constant == "None" else None
            test = "is" if constant == "None" else "=="
            escaped = constant.replace("{", "{{").replace("}", "}}")
            result = f"torch.ones(2) * (2 if {{}} {test} {escaped} else 3)"
            return steps, result, [constant, other or _read_constant(actual)]
    raise _refuse(f"a guard of the kind {format_line(kind, 40)} has no fake inputs yet")


def _refuse(why: str) -> CompilediagError:
    return CompilediagError(f"this recompile can't be reproduced with fake inputs: {why}")


def _read_int(text: str, most: int) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) > most:
        raise _refuse(f"it needs whole numbers up to {most:,}")
    return int(text)


def _read_constant(text: str) -> str:
    expression = parse_expression(text, False) if len(text) <= _MAX_TEXT else None
    try:
        value = read_constant(expression.node) if expression is not None else ...
    except NotConstant:
        value = ...
    if isinstance(value, float) and not math.isfinite(value):
        value = ...
    if isinstance(value, int) and abs(value) >= 1 << 63:
        value = ...
    if value is not None and not isinstance(value, (bool, int, float, str)):
        raise _refuse("its values are no short constants")
    return repr(value)


def _format_tensor(text: str) -> str | None:
    found = _TENSOR.fullmatch(text)
    if found is None:
        return None
    shape = [int(size) for size in re.findall(r"\d+", found[2], re.ASCII)]
    if math.prod(shape) > _MAX_ELEMENTS:
        raise _refuse("its tensor is large")
    return f"torch.ones({shape}, dtype=torch.{found[1]})"


def _check_name(name: object) -> str:
    is_plain = isinstance(name, str) and name.isascii() and name.isidentifier() and len(name) <= _MAX_TEXT
    if not is_plain or keyword.iskeyword(str(name)) or str(name).startswith("__"):
        raise _refuse("the path to its value has a name that is no plain identifier")
    return str(name)


def _format_step(step: Step) -> str:
    match step:
        case Step("attr", name):
            return f".{_check_name(name)}"
        case Step("item", bool()):
            pass
        case Step("item", int() as index) if 0 <= index < _MAX_LENGTH:
            return f"[{index}]"
        case Step("item", str() as key) if len(key) <= _MAX_TEXT:
            return f"[{key!r}]"
    raise _refuse("the path to its value has more than attributes and constant keys")


def _build(steps: Sequence[Step], leaf: str) -> str:
    """The code of an object from which the steps, which were checked, lead to the leaf."""
    for step in reversed(steps):
        if step.kind == "attr":
            leaf = f"Value({step.value}={leaf})"
        elif isinstance(step.value, int):
            leaf = f"[{'None, ' * step.value}{leaf}]"
        else:
            leaf = f"{{{step.value!r}: {leaf}}}"
    return leaf
