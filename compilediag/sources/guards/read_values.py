"""Read guarded values from a frame, and decide expressions over them, as torch's guards do; no text is evaluated.

A path is walked step by step with a fixed table of accessors. They are the methods of Python's own types, so no method
that the user wrote runs: where one would have to (`__getitem__` of a class that is no dict or list, a property), the
value is unreadable.

`describe(value)` is a value as text, in at most 200 characters, without running the user's code. A guard's value can be
anything in the user's program, so it is not trusted: only exact builtin types are printed, tensors by metadata (no
data is read, no device waited for), and everything else by the name of its class. A class can lie about its name or
raise from any dunder method; `type(obj)` and the slots of `type` itself cannot.
"""

from __future__ import annotations

import ast
import enum
import math
import operator
import os
import sys
import types
import weakref
from collections import deque, namedtuple
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

from ...decode.guards.path import Expression, NotConstant, Opaque, Path, Step, read_constant
from ...formatting import cut_text
from ...system.interrupts import pass_on
from ..hooks.torch_names import is_torch_file
from . import torch_api


class Unreadable(Exception):
    """Reading the value would run the user's code or wait for a device, or its form is unknown."""


#: What reading a value raises if the value is missing or of another type. Anything else is an error of ours.
CANNOT_READ = (Unreadable, LookupError, AttributeError, NameError, TypeError, ValueError, ArithmeticError)


def _find_base(value: Any, classes: Iterable[type]) -> Any:
    """The first of these classes that a value is of, or of a class that extends it."""
    for cls in classes:
        if issubclass(type(value), cls):
            return cls
    raise Unreadable("of another type")


def read_length(value: Any) -> int:
    """The length of a container, by the method of Python's own type that it is or extends."""
    return int(_find_base(value, _SIZED).__len__(value))


def read_item(value: Any, key: Any) -> Any:
    """The item of a container, by the method of Python's own type that it is or extends."""
    if issubclass(type(value), dict):
        return _read_dict_item(value, key)
    return _find_base(value, _INDEXED).__getitem__(value, key)


def _read_dict_item(value: Any, key: Any) -> Any:
    # `dict.__getitem__` would call `__missing__` of a subclass, which adds the key to a defaultdict.
    found = dict.get(value, key, _MISSING)
    if found is _MISSING:
        raise KeyError(key)
    return found


_SIZED: tuple[Any, ...] = (
    *(dict, list, tuple, set, frozenset, str, bytes, bytearray, deque, range, memoryview),
    *(type({}.keys()), type({}.values()), type({}.items())),
)
_LISTED: tuple[Any, ...] = (dict, list, tuple, set, frozenset, range, *_SIZED[-3:])
_INDEXED: tuple[Any, ...] = (list, tuple, deque, range)
#: What `object` has for each class with `__slots__`, and what C types have for their fields.
_FIELDS = (types.MemberDescriptorType, types.GetSetDescriptorType, type(vars(namedtuple("_Fields", "one"))["one"]))
_MISSING = object()


def read_attribute(value: Any, name: str) -> Any:
    """An attribute as Python finds it, without properties, `__getattr__` and `__getattribute__` of the user's."""
    cls = type(value)
    if issubclass(cls, type):
        field = _find_in_classes(type(value), name)
        if type(field) in _FIELDS:
            return field.__get__(value, type(value))
        found = _find_in_classes(value, name)
        if found is _MISSING:
            raise AttributeError(name)
        if type(found) in (staticmethod, classmethod):
            return found.__get__(None, value)
        if (
            type(found) not in (types.FunctionType, property, *_FIELDS)
            and _find_in_classes(type(found), "__get__") is not _MISSING
        ):
            raise Unreadable("a property of its class")
        return found
    found = _find_in_classes(cls, name)
    if type(found) in _FIELDS:
        try:
            return found.__get__(value, cls)
        except RuntimeError as error:  # Of a tensor: it has no such field now.
            pass_on(error)
            raise Unreadable(name) from None
    getter = _find_in_classes(cls, "__dict__")
    # Empty for an object that has no `__dict__`, or one of its class's making. It can be of a subclass.
    own = getter.__get__(value, cls) if type(getter) in _FIELDS else {}
    if (attribute := dict.get(own, name, _MISSING)) is not _MISSING:
        return attribute
    if found is not _MISSING:
        return _bind(found, value, cls)
    # Parameters, buffers and submodules are found by torch's own `__getattr__`.
    for kind in ("_parameters", "_buffers", "_modules") if issubclass(cls, torch.nn.Module) else ():
        members = dict.get(own, kind, _MISSING)
        if issubclass(type(members), dict) and dict.__contains__(members, name):
            return _read_dict_item(members, name)
    raise AttributeError(name)


def _find_in_classes(cls: type, name: str) -> Any:
    for base in type.__dict__["__mro__"].__get__(cls):
        found = type.__dict__["__dict__"].__get__(base).get(name, _MISSING)
        if found is not _MISSING:
            return found
    return _MISSING


def _bind(found: Any, value: Any, cls: type) -> Any:
    """What a class has under a name, as the attribute of an object."""
    kind = type(found)
    if kind is types.FunctionType:
        return types.MethodType(found, value)
    if kind in (staticmethod, classmethod, types.MethodDescriptorType, types.WrapperDescriptorType):
        return found.__get__(value, cls)
    if _find_in_classes(kind, "__get__") is not _MISSING:
        raise Unreadable("a property")
    return found


#: Keys of a dict that are looked at to find methods of the user's. A larger dict is taken to have some.
_MOST_KEYS = 10_000


def has_users_methods(value: Any) -> bool:
    """True if the length or truth of a container, or the comparison of its keys, is code that the user wrote."""
    if type(value) not in _SIZED:
        methods = (_find_in_classes(type(value), name) for name in ("__len__", "__bool__"))
        functions = (method for method in methods if type(method) is types.FunctionType)
        if any(not is_torch_file(function.__code__.co_filename) for function in functions):
            return True
    if not issubclass(type(value), dict):
        return False
    if dict.__len__(value) > _MOST_KEYS:
        return True
    return any(type(_find_in_classes(cls, "__eq__")) is types.FunctionType for cls in {*map(type, dict.keys(value))})


def has_attribute(value: Any, name: str) -> bool:
    """True if an object has an attribute, as far as Python's own look-up finds it."""
    try:
        read_attribute(value, name)
    except AttributeError as error:
        pass_on(error)
        return False
    except Unreadable:
        return True
    return True


def _list_items(value: Any) -> list[Any]:
    return list(_find_base(value, _LISTED).__iter__(value))


def _convert(cls: Any, method: str) -> Callable[[Any], Any]:
    return lambda value: getattr(_find_base(value, (cls,)), method)(value)


def _read_keys(value: Any) -> Any:
    return _find_base(value, (dict,)).keys(value)


def _read_attribute_or(value: Any, name: Any, *default: Any) -> Any:
    """`getattr` with a default, which is None or an empty set in torch's texts."""
    if not default or has_attribute(value, name):
        return read_attribute(value, name)
    return set() if isinstance(default[0], Opaque) else default[0]


#: Functions in torch's names of values. Those that are missing here are functions of Dynamo, called by their names.
_FUNCTIONS: dict[object, Callable[..., Any]] = {
    **dict.fromkeys(("dict.__getitem__", "___odict_getitem"), read_item),
    "list.__getitem__": list.__getitem__,
    "tuple.__getitem__": tuple.__getitem__,
    "___set_getitem": lambda value, index: _list_items(value)[index],
    **dict.fromkeys(("getattr", "object.__getattribute__"), _read_attribute_or),
    "dict.keys": _read_keys,
    "type": type,
    "len": read_length,
    "list": _list_items,
    "tuple": lambda value: tuple(_list_items(value)),
    "set": lambda value: set(_list_items(value)),
    "dict": lambda value: {key: read_item(value, key) for key in _list_items(value)},
    "int": _convert(int, "__int__"),
    "float": _convert(float, "__float__"),
    "complex": _convert(complex, "__pos__"),
    "bool": _convert(bool, "__bool__"),
    "str": _convert(str, "__str__"),
    "bytes": _convert(bytes, "__bytes__"),
    "___namedtuple_fields": lambda value: read_attribute(value, "_fields"),
}
#: Functions of Dynamo that a name of a value may call. They run no code of the user's.
_OF_DYNAMO = frozenset(
    {
        *("___from_numpy", "___as_tensor", "___unwrap_async_collective_tensor", "___tuple_iterator_getitem"),
        *("___list_reverseiterator_backing_list", "___dataclass_fields", "___get_torch_function_mode_stack_at"),
    }
)
#: Functions of Dynamo that a check may call with a value that was read.
_CHECKS_OF_DYNAMO = frozenset(
    {
        *("___tuple_iterator_len", "___list_reverseiterator_len", "___normalize_range_iter", "___normalize_count_iter"),
        *("___cow_tensor_matches", "___check_torch_function_mode_stack", "IsNonOverlappingAndDenseIndicator"),
        "cast_symbool_to_symint_guardless",
    }
)
#: Modules that a check may name without a scope.
_MODULES = ("torch", "utils_device")


class FrameReader:
    """Reads values for one entry and one call: `f_locals` and `f_globals` are the frame's, `functions` is Dynamo's."""

    def __init__(
        self, f_locals: Mapping[str, Any], f_globals: Mapping[str, Any], functions: Callable[[], Mapping[str, Any]]
    ):
        self._scopes = {"L": f_locals, "G": f_globals}
        self._functions = functions

    def read(self, path: Path) -> Any:
        """The value of a path. LookupError or AttributeError if it does not exist; Unreadable."""
        value: Any
        if path.scope in self._scopes:
            value = self._scopes[path.scope][path.root]
        elif path.scope == "function" and path.root == "__import__":
            value = sys.modules[str(path.arguments[0])]
        elif path.scope == "function":
            value = self._get_function(path.root, _OF_DYNAMO)(*path.arguments)
        elif path.root in self._scopes:
            value = self._scopes[path.root]  # The guard tree has a manager for the globals.
        elif path.root in _MODULES:
            value = self._functions()[path.root]
        else:
            raise NameError(path.root)
        return self.walk(value, path.steps)

    def walk(self, value: Any, steps: tuple[Step, ...]) -> Any:
        """The value that some steps lead to."""
        at = 0
        while at < len(steps):
            if steps[at : at + 2] == _NUMBER_AS_TENSOR:
                at += 2  # The tensor is made of the number, so it has no other value.
                continue
            value = self._take(value, steps[at])
            at += 1
        return value

    def _take(self, value: Any, step: Step) -> Any:
        kind, name, arguments = step
        match kind:
            case "attr":
                return read_attribute(value, str(name))
            case "item":
                return read_item(value, self._read_key(name))
            case "method" if name in ("size", "stride", "storage_offset", "dim"):
                return torch_api.read_geometry(value, str(name))
            case "method" if name == "keys":
                return _read_keys(value)
            case "method" if name == "__neg__":
                return -_as_number(value)
            case "call" if type(value) is weakref.ReferenceType:
                return value()
            case "function":
                function = _FUNCTIONS.get(name) or self._get_function(str(name), _OF_DYNAMO)
                return function(value, *(self._read_key(one) if isinstance(one, Path) else one for one in arguments))
        raise Unreadable(f"by {kind} {name}")

    def _read_key(self, key: object) -> Any:
        if isinstance(key, Opaque):
            raise Unreadable("its key")
        return self.read(key) if isinstance(key, Path) else key

    def _get_function(self, name: str, known: frozenset[str]) -> Callable[..., Any]:
        function: Callable[..., Any] | None = self._functions().get(name) if name in known else None
        if function is None:
            raise Unreadable(f"by {name}")
        return function

    def decide(self, expression: Expression) -> Any:
        """The value of a check. Unreadable if a part of it is of no known form."""
        return self._decide(expression.node, expression)

    def _decide(self, node: ast.expr, within: Expression) -> Any:
        match node:
            case ast.Constant(value):
                return value
            case ast.Name(name) if name in _NAMES:
                return _NAMES[name]
            case ast.BoolOp(ast.And() | ast.Or() as op, values):
                is_and = isinstance(op, ast.And)
                found: Any = is_and
                for part in values:
                    found = _as_bool(self._decide(part, within))
                    if found is not is_and:
                        break
                return found
            case ast.UnaryOp(op, operand):
                return _UNARY[type(op)](self._decide(operand, within))
            case ast.BinOp(left, op, right) if type(op) in _BINARY:
                return _BINARY[type(op)](*map(_as_number, (self._decide(left, within), self._decide(right, within))))
            case ast.Compare(left, operators, others):
                return self._compare(left, operators, others, within)
            case ast.IfExp(test, body, orelse):
                return self._decide(body if _as_bool(self._decide(test, within)) else orelse, within)
            case ast.Tuple(items) | ast.List(items) | ast.Set(items):
                made = {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(node)]
                return made(self._decide(item, within) for item in items)
        path = within.read_path(node)
        if path is not None:
            return self.read(path)
        if isinstance(node, ast.Call) and not node.keywords:
            return self._call(node, within)
        try:
            return read_constant(node)
        except NotConstant:
            raise Unreadable(type(node).__name__) from None

    def _compare(self, left: ast.expr, operators: list[ast.cmpop], others: list[ast.expr], within: Expression) -> bool:
        value = self._decide(left, within)
        for op, node in zip(operators, others, strict=True):
            other = self._decide(node, within)
            if isinstance(op, ast.Is | ast.IsNot):
                holds = (value is other) is isinstance(op, ast.Is)
            elif isinstance(op, ast.Eq | ast.NotEq):
                # A NaN does not equal itself.
                is_same = value is other and not isinstance(value, float | complex)
                holds = (is_same or bool(_as_plain(value) == _as_plain(other))) is isinstance(op, ast.Eq)
            elif type(op) in _ORDER:
                holds = _ORDER[type(op)](_as_number(value), _as_number(other))
            else:
                raise Unreadable(type(op).__name__)
            if not holds:
                return False
            value = other
        return True

    def _call(self, node: ast.Call, within: Expression) -> Any:
        name = ast.unparse(node.func)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "issubset" and len(node.args) == 1:
            sets = self._decide(node.func.value, within), self._decide(node.args[0], within)
            return set.issubset(*(set(_list_items(one)) for one in sets))
        arguments = [self._decide(argument, within) for argument in node.args]
        if name in _NUMERIC:
            return _NUMERIC[name](*map(_as_number, arguments))
        if name in _CHECKS:
            return _CHECKS[name](*arguments)
        return self._get_function(name, _CHECKS_OF_DYNAMO)(*arguments)


_NUMBER_AS_TENSOR = (Step("function", "___as_tensor"), Step("method", "item"))
_NAMES = {"inf": math.inf, "float": float, "complex": complex, "int": int, "bool": bool, "str": str}
_NUMBERS = (bool, int, float)
#: Types whose comparison runs no code of the user's.
_PLAIN = (*_NUMBERS, str, bytes, complex, type(None), type(Ellipsis))
_PLAIN_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size)
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: lambda value: not _as_bool(value),
    ast.USub: lambda value: -_as_number(value),
    ast.UAdd: lambda value: +_as_number(value),
}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda base, exponent: base ** _bound_exponent(exponent),
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
#: Functions over sizes and numbers, as sympy's printers of torch name them.
_NUMERIC: dict[str, Callable[..., Any]] = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "FloorDiv": operator.floordiv,
    "CleanDiv": operator.floordiv,
    **dict.fromkeys(("max", "Max", "torch.sym_max"), max),
    **dict.fromkeys(("min", "Min", "torch.sym_min"), min),
    **dict.fromkeys(("abs", "Abs"), abs),
    "int": int,
    "float": float,
    "round": round,
    "torch.sym_float": float,
    "torch.sym_int": int,
    **{f"math.{name}": getattr(math, name) for name in ("floor", "ceil", "trunc", "sqrt", "isnan", "log2")},
    "torch.sym_not": operator.not_,
    "__math_isnan": math.isnan,
}
#: Checks of objects.
_CHECKS: dict[str, Callable[..., Any]] = {
    "___check_type_id": lambda value, address: id(type(value)) == address,
    "___check_obj_id": lambda value, address: id(value) == address,
    "__check_obj_id": lambda value, address: id(value) == address,
    "___dict_contains": lambda key, value: _find_base(value, (dict,)).__contains__(value, _as_plain(key)),
    "set.__contains__": lambda value, key: _find_base(value, (set,)).__contains__(value, _as_plain(key)),
    "hasattr": has_attribute,
}


def _as_number(value: Any) -> Any:
    if type(value) not in _NUMBERS:
        raise Unreadable("no number")
    return value


def _as_bool(value: Any) -> bool:
    """The truth of a value of Python's own types."""
    if type(value) in _PLAIN:
        return bool(value)
    return bool(read_length(value))


def _as_plain(value: Any) -> Any:
    if not _is_plain(value):
        raise Unreadable("no constant")
    return value


def _is_plain(value: Any, depth: int = 4) -> bool:
    if type(value) in _PLAIN or type(value) in _PLAIN_OF_TORCH:
        return True
    if type(value) in (tuple, list, set, frozenset) and depth:
        return all(_is_plain(item, depth - 1) for item in value)
    return False


def _bound_exponent(exponent: Any) -> Any:
    if exponent > 64:
        raise Unreadable("a large power")
    return exponent


# Values as text

MAX_CHARS = 200
MAX_ITEMS = 6
MAX_DEPTH = 2
#: str(int) takes quadratic time, so of longer integers only the size is printed.
MAX_INT_BITS = 512

_EXACT = (bool, int, float, complex, type(None), type(Ellipsis), type(NotImplemented))
_BRACKETS = {
    id(list): ("[", "]"),
    id(tuple): ("(", ")"),
    id(set): ("{", "}"),
    id(frozenset): ("{", "}"),
    id(dict): ("{", "}"),
}
_OF_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def describe(value: Any) -> str:
    """A value as text: at most 200 characters, and safe (see the module's docstring)."""
    return cut_text(_describe(value, MAX_DEPTH), MAX_CHARS)


def type_name(cls: type, module: bool = False) -> str:
    """The name of a class, as `list` or (`module=True`) `torch.nn.modules.linear.Linear`."""
    name: str = type.__dict__["__qualname__"].__get__(cls).rpartition(".<locals>.")[2]
    if not module:
        return name
    # The slot of `type` itself: `cls.__module__` could run a metaclass's code.
    owner = type.__dict__["__module__"].__get__(cls)
    return f"{owner}.{name}" if type(owner) is str and owner != "builtins" else name


def code_place(code: types.CodeType) -> str:
    """The place of a code object, as `model.py:12`."""
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def _is_one(cls: type, known: Iterable[type]) -> bool:
    """`cls in known` without `__eq__` and `__hash__`, which a metaclass can override."""
    return any(cls is one for one in known)


def _describe(value: Any, depth: int) -> str:
    cls = type(value)
    if cls is int and value.bit_length() > MAX_INT_BITS:
        return f"<int of {value.bit_length()} bits>"
    if _is_one(cls, _EXACT):
        return repr(value)
    if _is_one(cls, (slice, range)):
        parts = ", ".join(_describe(part, depth - 1) for part in (value.start, value.stop, value.step))
        return f"{cls.__name__}({parts})"
    if _is_one(cls, (str, bytes, bytearray)):
        return repr(value) if len(value) <= MAX_CHARS else f"{value[: MAX_CHARS // 2]!r}... ({len(value)} long)"
    if id(cls) in _BRACKETS:
        return _container(value, depth)
    if _is_one(cls, _OF_CODE):
        return _function(value)
    if cls is types.ModuleType:
        return f"<module {_plain(types.ModuleType.__getattribute__(value, '__dict__').get('__name__'))}>"
    if cls is types.CodeType:
        return f"<code {value.co_name} at {code_place(value)}>"
    if issubclass(cls, type):
        return f"<class {type_name(value, module=True)}>"
    if issubclass(cls, enum.Enum):
        return f"{type_name(cls)}.{_plain(object.__getattribute__(value, '__dict__').get('_name_'))}"
    return _torch_value(value, depth) or _numpy_value(value) or f"<{type_name(cls, module=True)} object>"


def _plain(text: Any) -> str:
    return text if type(text) is str else "?"


def _container(value: Any, depth: int) -> str:
    opening, closing = _BRACKETS[id(type(value))]
    size = len(value)
    if not size:
        return repr(value)
    if depth <= 0:
        return f"{opening}{size} items{closing}"
    shown: list[str] = []
    try:
        # By items, since `value[key]` would run the key's __hash__.
        for item in value.items() if type(value) is dict else value:
            if len(shown) == MAX_ITEMS:
                shown.append(f"... {size} items")
                break
            shown.append(": ".join(_describe(part, depth - 1) for part in (item if type(value) is dict else (item,))))
    except RuntimeError as error:
        pass_on(error)
        # Another thread changed its size meanwhile; the items read so far are shown.
        shown.append("...")
    if type(value) is tuple and size == 1:
        shown.append("")
    inner = ", ".join(shown).rstrip(" ")
    return f"frozenset({{{inner}}})" if type(value) is frozenset else f"{opening}{inner}{closing}"


def _function(value: Any) -> str:
    name = value.__qualname__.rpartition(".<locals>.")[2] if type(value) is not types.MethodType else None
    if type(value) is types.MethodType:
        return _describe(value.__func__, 1) if _is_one(type(value.__func__), _OF_CODE) else "<method object>"
    code = getattr(value, "__code__", None)
    return f"{name} at {code_place(code)}" if code is not None else f"<builtin {name}>"


def _torch_value(value: Any, depth: int) -> str | None:
    cls = type(value)
    if issubclass(cls, torch.Tensor):
        # As `Tensor float32[2, 4] cpu`; reads no data.
        dtype, shape, device = torch_api.tensor_metadata(value)
        return f"{type_name(cls)} {dtype}{shape} {device}"
    if _is_one(cls, (torch.dtype, torch.device, torch.layout, torch.memory_format)):
        return repr(value)
    if cls is torch.Size:
        return f"torch.Size({_describe(list(value), depth)})"
    if issubclass(cls, torch.nn.Module):
        return f"{type_name(cls)} module"
    return None


def _numpy_value(value: Any) -> str | None:
    numpy = sys.modules.get("numpy")
    if numpy is None or not hasattr(numpy, "ndarray"):
        return None
    cls = type(value)
    if cls is numpy.ndarray:
        return f"ndarray {value.dtype.name}{list(value.shape)}"
    if issubclass(cls, numpy.generic) and _is_one(cls, numpy.sctypeDict.values()):
        return f"{cls.__name__}({_describe(value.item(), 0)})"
    return None
