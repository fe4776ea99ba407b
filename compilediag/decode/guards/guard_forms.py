"""The forms of torch's guard texts. Most are Python expressions, and `ast` reads them; the rest is prose of C++.

GuardBuilder in torch/_dynamo/guards.py and torch/csrc/dynamo/guards.cpp make them, read at torch 2.11, 2.13 and 2.15.
Prose is a table of beginnings, so a text costs one comparison per row and no search.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import NamedTuple

from .path import MAX_PARSED, Expression, Path, Step, format_source, parse_expression, parse_path, scan_source

_CLASS = re.compile(r"<(?:class|enum|flag) '([^']*)'>")
_BACKEND_KEYS = {"CPU", "CUDA", "Meta", "XPU", "MPS", "HPU", "XLA", "IPU", "VE", "Lazy", "MTIA", "MAIA", "PrivateUse1"}
_SCALARS = {
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "Float": "float32",
    "Double": "float64",
    "ComplexHalf": "complex32",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}


def parse_class_name(text: str, module: bool = False) -> str | None:
    """Return the class in `<class 'torch.nn.Linear'>`: `Linear`, or with `module` the whole path; None without one."""
    found = _CLASS.search(text)
    if not found:
        return None
    return found[1] if module else found[1].rpartition(".")[2]


def format_dtype(scalar_type: str) -> str:
    """Format the C++ name of a scalar type as a torch.dtype: `Float` -> `torch.float32`."""
    return "torch." + _SCALARS.get(scalar_type, scalar_type[:1].lower() + scalar_type[1:].replace("Float", "float"))


def compare_dispatch_keys(expected: str, actual: str) -> tuple[bool, str, str]:
    """Return the difference between two lists of dispatch keys: (is it the device?, expected, actual).

    Two devices differ in their backend key. Otherwise the result has the keys that differ.
    """
    old, new = (list(dict.fromkeys(k.strip() for k in keys.split(","))) for keys in (expected, actual))
    old_device, new_device = ([k.lower() for k in keys if k in _BACKEND_KEYS] for keys in (old, new))
    if old_device and new_device and old_device != new_device:
        return True, ", ".join(old_device), ", ".join(new_device)
    only_old = ", ".join(k for k in old if k not in new)
    only_new = ", ".join(k for k in new if k not in old)
    return False, only_old or f"without {only_new}", only_new or f"without {only_old}"


#: What a guard on the transforms of torch.func around a call is about.
FUNCTORCH_LEVELS = "functorch levels"
#: C++ class of a guard -> its kind, for texts that match no form.
LEAF_KINDS = {
    "TYPE_MATCH": "type",
    "FAKE_SCRIPT_TYPE_MATCH": "type",
    "ID_MATCH": "identity",
    "EQUALS_MATCH": "value",
    "NONE_MATCH": "value",
    "NOT_NONE": "value",
    "TRUE_MATCH": "value",
    "FALSE_MATCH": "value",
    "FLOAT_IS_NAN": "value",
    "COMPLEX_IS_NAN": "value",
    "RANGE_ITERATOR_MATCH": "value",
    "DICT_VERSION": "value",
    "SET_CONTAINS": "value",
    "LENGTH_CHECK": "length",
    "DICT_LENGTH": "length",
    "TUPLE_ITERATOR_LEN": "length",
    "DICT_CONTAINS": "dict_keys",
    "MAPPING_KEYS_MATCH": "dict_keys",
    "NO_HASATTR": "hasattr",
    "OBJECT_ALIASING": "alias",
    "NO_TENSOR_ALIASING": "alias",
    "STORAGE_OVERLAPPING": "alias",
    "SYMBOLIC_SHAPE_GUARD": "symbolic_shape",
    "DIMENSION_DYNAMIC_MARKING_GUARD": "symbolic_shape",
    "DYNAMIC_INDICES": "symbolic_shape",
    "DISPATCH_KEY_SET_MATCH": "dispatch_keys",
    "TORCH_FUNCTION_MODE_STACK": "mode_stack",
    "DEFAULT_DEVICE": "default_device",
    "GLOBAL_STATE": "global_state",
    "DUAL_LEVEL_MATCH": "global_state",
}


class Check(NamedTuple):
    """What a guard checks. `operands` are the guarded values."""

    kind: str
    source: str | None = None
    expected: str | None = None
    actual: str | None = None
    operands: tuple[Path, ...] = ()


#: Kind of a text that is none of the forms.
OTHER = Check("other")
_PRESENT, _ABSENT = "present", "absent"


def _check(kind: str, path: Path, expected: str | None = None, actual: str | None = None, named: str = "{}") -> Check:
    """A check of one value; `named`: how the checked property of it is written."""
    return Check(kind, named.format(path.text), expected, actual, (path,))


def read_check(code: str, is_shape: bool = False) -> Check:
    """Read a guard text without its comment; kind "other" for an unknown one. `is_shape`: the guard is ShapeEnv's.

    A text over `MAX_PARSED` characters is read as far as its beginning goes.
    """
    if not code.startswith(("L['", "G['")):
        for beginning, read in _PROSE:
            if code.startswith(beginning):
                return read(code[len(beginning) :]) or OTHER
    if len(code) > MAX_PARSED:
        return _read_beginning(code)
    # A check of a type ends with `, type=<class ...>`, which is no part of the expression.
    end = scan_source(code)
    cls = parse_class_name(code[end:]) if code.startswith(", type=", end) else None
    expression = parse_expression(code[:end] if code.startswith(", type=", end) else code)
    if expression is None:
        return _read_beginning(code)
    if is_shape and (check := _read_is(expression, expression.node) or _read_shape(expression)):
        return check
    check = _read_expression(expression) or _read_shape(expression) or OTHER
    if cls is not None and check.kind == "type":
        return check._replace(expected=cls)
    is_object = cls is not None and check.expected == "the same object"
    return check._replace(expected=f"the same object (type {cls})") if is_object else check


# ---- expressions ----


def _read_expression(expression: Expression) -> Check | None:
    node, negated = expression.node, False
    while isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node, negated = node.operand, not negated
    match node:
        case ast.IfExp(_, body):
            return _read_marking(expression, body)
        case ast.BoolOp(ast.And(), [_, ast.Call(ast.Name("__math_isnan" | "__numpy_isnan"), [value])]):
            path = expression.read_path(value)
            return None if path is None else _check("value", path, "nan")
        case ast.Compare(ast.Call(ast.Name("hasattr")) as call, [ast.Eq()], [ast.Constant(False)]):
            return _read_call(expression, call, not negated)
        case ast.Compare(_, [ast.Is() | ast.IsNot()], [_]):
            return _read_is(expression, node)
        case ast.Compare(left, [ast.Eq() | ast.NotEq() as operator], [right]) if not negated:
            return _read_equality(expression, left, right, isinstance(operator, ast.NotEq))
        case ast.Call():
            return _read_call(expression, node, negated)
    path = expression.read_path(node)
    return _check("length", path, "0", named="len({})") if negated and path is not None else None


def _read_is(expression: Expression, node: ast.expr) -> Check | None:
    match node:
        case ast.Compare(left, [ast.Is() | ast.IsNot() as operator], [right]):
            path, other = expression.read_path(left), expression.read_path(right)
        case _:
            return None
    if path is None:
        return None
    negated = isinstance(operator, ast.IsNot)
    if isinstance(right, ast.Constant) and right.value is None:
        kind = "dead_reference" if negated and path.steps[-1:] == (Step("call"),) else "value"
        return _check(kind, path, "not None" if negated else "None", "None" if negated else None)
    if other is None:
        return None
    same = f"the same object as {other.text}"
    texts = (f"not {same}", same) if negated else (same, "another object")
    return Check("alias", path.text, *texts, (path, other))


#: Function on the left of an equality -> kind of guard, and how its value is written.
_COMPARED = {
    **dict.fromkeys(("len", "dict.__len__", "set.__len__", "frozenset.__len__"), ("length", "len({})")),
    **dict.fromkeys(("___tuple_iterator_len", "___list_reverseiterator_len"), ("length", "len({})")),
    **dict.fromkeys(("___normalize_range_iter", "___normalize_count_iter"), ("value", "{}")),
    **dict.fromkeys(("int", "float", "str", "bool", "complex", "bytes"), ("value", "{}")),
    "___dict_version": ("value", "{}"),
}
#: State that is not reached from the frame -> kind of guard, and its name.
_AMBIENT = {
    "utils_device.CURRENT_DEVICE": ("default_device", "torch.get_default_device()"),
    "torch.autograd.forward_ad._current_level": ("global_state", "forward AD level"),
}


def _read_equality(expression: Expression, left: ast.expr, right: ast.expr, negated: bool) -> Check | None:
    expected = expression.get_text(right)
    match left, right:
        case ast.Call(ast.Name("list"), [inner]), _:
            keys = expression.read_path(inner)
            if keys is not None and keys.text.endswith(".keys()"):
                return Check("dict_keys", keys.text, expected, None, (keys.parent,))
        case ast.Call(function, [value]), _ if (known := _COMPARED.get(name := ast.unparse(function))) is not None:
            path = expression.read_path(value)
            if path is None or (negated and known[0] != "length"):
                return None
            if name == "___dict_version":
                expected = f"unchanged since (version {expected})"
            return _check(known[0], path, expected, named=known[1])
        case ast.Call(ast.Attribute(value, "raw_repr")), ast.Call(ast.Attribute(ast.Call(_, keys), "raw_repr")):
            path = expression.read_path(value)
            listed = ", ".join(map(expression.get_text, keys))
            return None if path is None else _check("dispatch_keys", path, listed)
        case _, ast.Call(ast.Name("___get_current_stream"), [ast.Call(_, [ast.Constant(str() as device), *_])]):
            path = expression.read_path(left)
            stream = "" if path is None else path.text
            found = ("another stream", stream) if negated else (stream, "another stream")
            return Check("global_state", f"current {device} stream", *found)
    path = expression.read_path(left)
    if path is None or negated:
        return None
    if path.text in _AMBIENT:
        return Check(*_AMBIENT[path.text], expected)
    *_, keys_of, listed_as, item = (Step(""), Step(""), Step(""), *path.steps)
    if (keys_of[:2], listed_as[:2], item.kind) == (("function", "dict.keys"), ("function", "list"), "item"):
        return _check("dict_keys", path, expected)  # `list(dict.keys(d))[0]`
    if path.is_dimension or any(other.scope or other.is_dimension for _, other in expression.list_paths(right)):
        return None
    return _check("value", path, expected)


def _read_call(expression: Expression, call: ast.Call, negated: bool) -> Check | None:
    """Read a check that is a call of one of torch's functions."""
    function, arguments = ast.unparse(call.func), call.args
    path = expression.read_path(arguments[0]) if arguments else None
    found = (_ABSENT, _PRESENT) if negated else (_PRESENT, _ABSENT)
    match function, arguments:
        case "___check_torch_function_mode_stack", _:
            return Check("mode_stack", "torch function modes", "the same modes")
        case "torch._functorch.pyfunctorch.compare_functorch_state", _:
            return Check("mode_stack", FUNCTORCH_LEVELS, ", ".join(map(expression.get_text, arguments)))
        case "___check_global_state", _:
            return Check("global_state", "global state")
        case "check_no_aliasing", _:
            return _make_duplicates(
                tuple(path for argument in arguments for _, path in expression.list_paths(argument))
            )
        case "check_overlapping", _:
            groups = {keyword.arg: expression.list_paths(keyword.value) for keyword in call.keywords}
            overlapping = ", ".join(path.text for _, path in groups.get("overlapping", []))
            paths = tuple(path for group in groups.values() for _, path in group)
            names = ", ".join(path.text for path in paths) or None
            return Check("alias", names, f"overlapping storage: {overlapping or 'none'}", None, paths)
        case "___dict_contains", [key, ast.Attribute(value, "__dict__")] if owner := expression.read_path(value):
            # The value of `owner.__dict__` is not read: the object is what the name says.
            name = key.value if isinstance(key, ast.Constant) else None
            name = name if isinstance(name, str) else expression.get_text(key)
            return Check("hasattr", owner.then("attr", name).text, *found, (owner,))
        case "___dict_contains", [key, value] if owner := expression.read_path(value):
            return Check("dict_keys", f"{owner.text}[{expression.spell(key)}]", *found, (owner,))
        case _ if path is None:
            return None
        case "___check_type_id" | "___check_fake_script_type" | "TYPE_MISMATCH", _:
            return _check("type", path)
        case "___check_obj_id", _ if path.steps[-1:] == (Step("attr", "__code__"),):
            # CLOSURE_MATCH: a function is the same if its code is.
            return Check("identity", path.parent.text, "the same function", None, (path,))
        case "___check_obj_id", _:
            return _check("identity", path, "the same object")
        case "__check_obj_id", _:
            return _check("dict_keys", path, "the same object")
        case "set.__contains__", [_, item]:
            with_item, without = f"contains {expression.get_text(item)}", f"without {expression.get_text(item)}"
            return _check("value", path, *((without, with_item) if negated else (with_item, without)))
        case "hasattr", [_, ast.Constant(str() as name)]:
            kind = "symbolic_shape" if name.startswith("_dynamo_") else "hasattr"
            return Check(kind, path.then("attr", name).text, *found, (path,))
        case "check_tensor", [_, second, *_]:
            # Its other arguments as torch prints them, without the closing parenthesis.
            return _check("tensor_size", path, expression.restore(expression.text[second.col_offset : -1]))
        case "___cow_tensor_matches", [_, ast.Constant(bool() as wanted)]:
            return _check("value", path, str(wanted), str(not wanted), "torch._C._is_cow_tensor({})")
    return None


def _make_duplicates(paths: tuple[Path, ...]) -> Check:
    names = ", ".join(path.text for path in paths) or None
    return Check("alias", names, "different tensors", "the same tensor", paths)


def _read_marking(expression: Expression, body: ast.expr) -> Check | None:
    """Read the guards on marks of dimensions: `(marks.issubset({0})) if hasattr(x, marks) else True`."""
    match body:
        case ast.Call(ast.Attribute(marks, "issubset"), [allowed]):
            expected = f"within {expression.get_text(allowed)}"
        case ast.Compare(marks, [ast.Eq()], [right]):
            expected = expression.get_text(right)
        case _:
            return None
    match marks:
        case ast.Call(ast.Name("getattr"), [value, ast.Constant(str() as name), _]):
            owner = expression.read_path(value)
            path = None if owner is None else owner.then("attr", name)
        case _:
            path = expression.read_path(marks)
    if path is None:
        return None
    if path.steps[-1].value == "_dynamo_dynamic_range":
        expected = format_dim_ranges(expected)
    return Check("symbolic_shape", path.text, expected, None, (path,))


_RANGE = re.compile(r"_DimRange\(dim=(\d+), min=(\w+), max=(\w+)\)")


def format_dim_ranges(text: str) -> str:
    """Format the ranges that mark_dynamic got: `{_DimRange(dim=0, min=2, max=16)}` -> `dim 0: 2 to 16`."""
    ranges = sorted((int(dim), low, high) for dim, low, high in _RANGE.findall(text))
    bounds = (
        f"dim {dim}: {'any' if low == 'None' else low} to {'any' if high == 'None' else high}"
        for dim, low, high in ranges
    )
    return ", ".join(bounds) or "no range"


#: Functions in ShapeEnv's guards, from sympy's printer.
_SHAPE_FUNCTIONS = ("Eq", "Ne", "Mod", "Max", "Min", "And", "Or")


def _read_shape(expression: Expression) -> Check | None:
    """Read an expression over sizes and ints, from ShapeEnv.produce_guards_verbose; None for anything else."""
    node = expression.node
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(ast.Not()) | ast.BinOp(_, ast.Mod() | ast.FloorDiv()):
            pass
        case ast.Call(ast.Name(name)) if name in _SHAPE_FUNCTIONS:
            pass
        case _:
            return None
    found = [path for _, path in expression.list_paths(node)]
    # Where torch left the scopes out, all names are sources.
    paths = [path for path in found if path.scope or path.is_dimension] or [
        p for p in found if p.root not in _NO_VALUES
    ]
    if not paths:
        return None
    paths = sorted(dict.fromkeys(paths), key=lambda path: not path.is_dimension)
    bound = _format_bound(expression) if len(paths) == 1 else None
    names = ", ".join(dict.fromkeys(path.text for path in paths))
    return Check("symbolic_shape", names, bound or expression.spell(), None, tuple(paths))


_NO_VALUES = frozenset({"inf", "math", "sympy", "torch"})
_MIRRORED = {ast.Lt: ">", ast.LtE: ">="}
_OPERATORS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.NotEq: "!=", ast.Eq: ""}


def _format_bound(expression: Expression) -> str | None:
    """Format what an expression requires of its only source, if it has a simple form: `2 <= n` -> `>= 2`."""
    match expression.node:
        case ast.Compare(low, [lower], [value]) if (number := _read_number(low)) is not None:
            if expression.read_path(value) is not None and type(lower) in _MIRRORED:
                return f"{_MIRRORED[type(lower)]} {number}"
        case ast.Compare(low, [lower, upper], [value, high]) if expression.read_path(value) is not None:
            ends = _read_number(low), _read_number(high)
            if None not in ends and type(lower) in _MIRRORED and type(upper) in _MIRRORED:
                return f"{_MIRRORED[type(lower)]} {ends[0]} and {_OPERATORS[type(upper)]} {ends[1]}"
        case ast.Compare(value, [operator], [high]) if expression.read_path(value) is not None:
            if (number := _read_number(high)) is not None and type(operator) in _OPERATORS:
                return f"{_OPERATORS[type(operator)]} {number}".strip()
        case ast.Call(ast.Name("Eq" | "Ne" as name), [value, high]) if expression.read_path(value) is not None:
            if (number := _read_number(high)) is not None:
                return str(number) if name == "Eq" else f"!= {number}"
    return None


def _read_number(node: ast.expr) -> int | float | None:
    match node:
        case ast.Constant(int() | float() as number):
            return number
        case ast.UnaryOp(ast.USub(), ast.Constant(int() | float() as number)):
            return -number
    return None


# ---- texts that are no expression ----

_CALL_NAME = re.compile(r"(?:not )?([\w.]+)\(")
#: Function -> kind, for a check whose arguments Python cannot read: they contain what an object prints of itself.
_UNREADABLE = {
    **dict.fromkeys(("___check_type_id", "___check_fake_script_type"), "type"),
    "___check_obj_id": "identity",
    "___dict_contains": "dict_keys",
    "set.__contains__": "value",
    "check_tensor": "tensor_size",
    "len": "length",
    "hasattr": "hasattr",
}


def _read_beginning(code: str) -> Check:
    """Read a text as far as its beginning goes: `source == ...`, where the value is too long or no expression."""
    beginning = code[:MAX_PARSED]
    end = scan_source(beginning)
    path = parse_path(beginning[:end]) if end else None
    if path is not None and beginning.startswith(" == ", end):
        if beginning.startswith("list(") and path.text.endswith(".keys())"):
            name = path.text.removeprefix("list(").removesuffix(")")
            return Check("dict_keys", name, code[end + 4 :].strip(), None, (path.parent.parent,))
        return Check("value", path.text, code[end + 4 :].strip(), None, (path,))
    found = _CALL_NAME.match(beginning)
    return Check(_UNREADABLE.get(found[1], "other")) if found else OTHER


def _read_quoted(text: str) -> tuple[Path | None, str] | None:
    """A source in quotes and the text after it; None if the text does not begin so."""
    end = scan_source(text)
    if not text.startswith("'", end):
        return None
    return parse_path(text[:end]), text[end + 1 :]


#: What C++ says of a tensor, after its name.
_MISMATCH = re.compile(
    r" (?P<what>size|stride|rank|dtype|requires_grad|dispatch key set|Tensor device index) mismatch"
    r"(?: at index (?P<index>\d+))?\. [Ee]xpected (?:device index to be |(?P<flag>requires_grad=))?"
    r"(?P<old>DispatchKeySet\([^)]*\)|-?\w+)(?:, actual (?P<new>DispatchKeySet\([^)]*\)|-?\w+))?"
)


def _read_tensor_prose(text: str) -> Check | None:
    quoted = _read_quoted(text)
    found = _MISMATCH.match(quoted[1]) if quoted else None
    if quoted is None or found is None:
        return None
    name, operands = ("", ()) if quoted[0] is None else (quoted[0].text, (quoted[0],))
    what, index, flag, old, new = found.groups()
    match what:
        case "requires_grad" if flag is not None:
            is_wanted = old not in ("0", "False")
            return Check("requires_grad", f"{name}.requires_grad", str(is_wanted), str(not is_wanted), operands)
        case _ if new is None:
            return None
        case "size" | "stride" if index is not None:
            return Check(f"tensor_{what}", f"{name}.{what}()[{index}]", old, new, operands)
        case "rank":
            return Check("tensor_rank", f"{name}.dim()", old, new, operands)
        case "dtype":
            return Check("tensor_dtype", f"{name}.dtype", format_dtype(old), format_dtype(new), operands)
        case "Tensor device index":
            return Check("tensor_device", f"{name}.device", f"device index {old}", f"device index {new}", operands)
        case "dispatch key set":
            keys = (listed.removeprefix("DispatchKeySet(").removesuffix(")") for listed in (old, new))
            is_device, old, new = compare_dispatch_keys(*keys)
            kind, source = ("tensor_device", f"{name}.device") if is_device else ("dispatch_keys", name)
            return Check(kind, source, old, new, operands)
    return None


_TYPE_FOUND = re.compile(r" to be (?:(?P<old><[^<>]*>)|a tensor type)(?:, '? ?but found (?P<new><[^<>]*>))?")


def _read_type_prose(text: str) -> Check | None:
    quoted = _read_quoted(text)
    found = _TYPE_FOUND.match(quoted[1].replace("<locals>", "locals")) if quoted else None
    if quoted is None or found is None:
        return None
    path = quoted[0]
    old = "a tensor" if found["old"] is None else parse_class_name(found["old"])
    new = parse_class_name(found["new"]) if found["new"] else None
    return Check("type", path.text if path else None, old, new, (path,) if path else ())


def _about(kind: str, expected: str | None, actual: str | None = None, end: str = "") -> Callable[[str], Check | None]:
    """A reader of a text that is all source, but for `end`."""

    def read(text: str) -> Check | None:
        source = text.strip().removesuffix(end)
        path = parse_path(source)
        return Check(kind, format_source(source[:MAX_PARSED]) or None, expected, actual, (path,) if path else ())

    return read


def _about_state(name: str) -> Callable[[str], Check]:
    """A reader of a text whose rest is the state that is expected."""
    return lambda text: Check("global_state", name, text.strip() or None)


def _constantly(kind: str, expected: str | None = None, actual: str | None = None) -> Callable[[str], Check]:
    """A reader of a text that names no value."""
    return lambda _: Check(kind, None, expected, actual)


#: Text of a guard of torch 2.13 and later on marks of dimensions, which does not name the tensor -> expected, actual.
_MARKS = (
    (
        re.compile(r"(\w+):? not a subset: runtime (.*?) is not a subset of compiled (.*)", re.S),
        "{0} within {2}",
        "{1}",
    ),
    (
        re.compile(r"(\w+) (?:should be absent but is present|is present on runtime tensor but was absent)"),
        *("{0} absent", _PRESENT),
    ),
    (
        re.compile(r"(\w+):? (?:mismatch: )?expected (.*?)(?:,| but) (actual .*|attribute is absent.*)", re.S),
        *("{0} {1}", "{2}"),
    ),
    (re.compile(r"(\w+):? mismatch: expected (.*)", re.S), "{0} {1}", ""),
)


def _read_mark_prose(text: str) -> Check | None:
    for pattern, expected, actual in _MARKS:
        if found := pattern.match(text):
            groups = [group or "" for group in found.groups()]
            if groups[0] == "_dynamo_dynamic_range" and "mismatch: expected" in text:
                groups[1] = format_dim_ranges(groups[1])
            found_now = actual.format(*groups).strip() or None
            return Check("symbolic_shape", None, expected.format(*groups).strip(), found_now)
    return None


_BACKENDS = re.compile(r"Cached backend: ([^\n]*?)\. New backend: ([^\n]*?)\. If this is unexpected")


def _read_backend(text: str) -> Check | None:
    found = _BACKENDS.search(text[:MAX_PARSED])
    # torch 2.11 does not name the backends.
    old, new = found.groups() if found else ("the backend it was compiled with", "another backend")
    return Check("backend", "backend", old, new)


def _read_duplicates(text: str) -> Check | None:
    listed = parse_expression(text.removeprefix(":"))
    if listed is not None and isinstance(listed.node, ast.List):
        names = [one.value for one in listed.node.elts if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    else:
        rest = text.removeprefix(" where not expected!").strip()
        names = [rest[: scan_source(rest)].removesuffix("should")]
    return _make_duplicates(tuple(path for name in names if (path := parse_path(name)) is not None))


def _read_not_a_function(text: str) -> Check | None:
    _, found, source = text.partition("Not a function on ")
    head, dot, last = source.strip().rpartition(".")
    if not found or not dot or not last.startswith("__"):
        return None
    path = parse_path(head)
    return Check("type", format_source(head), "a Python function", None, (path,) if path else ())


#: How prose begins that has a source in quotes next.
QUOTING = ("tensor '", "expected type of '")
#: How a text that is no expression begins, and what reads the rest.
_PROSE: tuple[tuple[str, Callable[[str], Check | None]], ...] = (
    # TensorCheck::check_verbose, guards.cpp
    ("tensor '", _read_tensor_prose),
    ("expected type of '", _read_type_prose),  # torch 2.14 or 2.15 and later
    ("tensor has too few dimensions", _constantly("tensor_rank")),
    ("not a tensor - grad field is accessed ", _about("type", "a tensor")),
    ("not a tensor", _about("type", "a tensor")),
    ("_dynamo_", lambda text: _read_mark_prose(f"_dynamo_{text}")),
    ("_has_dynamo_", lambda text: _read_mark_prose(f"_has_dynamo_{text}")),
    ("_mark_", lambda text: _read_mark_prose(f"_mark_{text}")),
    # accessors that fail to reach the value
    ("getattr failed on source ", _about("hasattr", _PRESENT, "missing")),
    ("KeyError on ", _about("dict_keys", _PRESENT, "missing")),
    ("IndexError on ", _about("length", _PRESENT, "missing")),
    ("IndexError TupleIteratorGetItemAccessor", _constantly("length", _PRESENT, "missing")),
    ("Not a weakref obj ", _about("dead_reference", "a weak reference")),
    ("Not a weakref ", _about("dead_reference", "a weak reference")),
    ("Weakref_GetRef failed ", _about("dead_reference", "a weak reference")),
    ("CodeGuardAccessor", _read_not_a_function),
    ("FuncDefaultsGuardAccessor", _read_not_a_function),
    ("FuncKwDefaultsGuardAccessor", _read_not_a_function),
    ("ClosureGuardAccessor", _read_not_a_function),
    ("null type dict on ", _constantly("type")),
    ("Non tuple found!", _constantly("symbolic_shape")),
    ("Non integer found!", _constantly("symbolic_shape")),
    ("Non float found!", _constantly("symbolic_shape")),
    ("Non integer index found!", _constantly("symbolic_shape")),
    ("symbolic values found", _constantly("symbolic_shape")),
    ('"Shape guard failed with values: ', lambda text: Check("symbolic_shape", actual=text.partition('"')[0].strip())),
    ("Shape guard failed with values: ", lambda text: Check("symbolic_shape", actual=text.strip())),
    # the ambient state
    ("GLOBAL_STATE changed: ", lambda text: Check("global_state", text.strip() or None, "unchanged", "changed")),
    ("___check_global_state() against ", _about_state("global state")),
    ("torch._functorch.aot_autograd.utils.top_saved_tensors_hooks ids == ", _about_state("saved tensors hooks")),
    ("torch._functorch._aot_autograd.utils.top_saved_tensors_hooks ids == ", _about_state("saved tensors hooks")),
    # the entry itself
    ("Duplicate tensors found", _read_duplicates),
    ("Duplicate tensor found", _read_duplicates),
    ("Unexpected recompilation: runtime guards failed even though they passed", _constantly("all_passed")),
    ("BACKEND_MATCH", _read_backend),
    ("___check_current_backend", _read_backend),
    ("___skip_backend_check", _read_backend),
    ("Cache line invalidated because ", _about("dead_reference", "alive", "deallocated", end=" got deallocated")),
    # guard functions whose names end in numbers of the compile
    ("___check_metadata_", _constantly("value", "the same tensor subclass metadata", "other metadata")),
    ("__dtensor_spec_", _constantly("value", "the same DTensor spec", "another spec")),
    ("___check_opaque_guard_fn_", _constantly("value", "the same values of its guard_fn", "other values")),
)
