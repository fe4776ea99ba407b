"""`describe(value)`: a value as text, in at most 200 characters, without running the user's code.

A guard's value can be anything in the user's program, so it is not trusted: only exact builtin types are printed,
tensors by their metadata (no data is read, no device is waited for), and everything else by the name of its class. A
class can lie about its name or raise from any dunder method; `type(obj)` and the slots of `type` itself cannot.
"""

from __future__ import annotations

import enum
import os
import sys
import types
from collections.abc import Iterable
from typing import Any

from ...system.interrupts import pass_on

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
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)


def describe(value: Any) -> str:
    """A value as text: at most 200 characters, and safe (see the module's docstring)."""
    text = _describe(value, MAX_DEPTH)
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 3] + "..."


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
        return _span(value, depth)
    if _is_one(cls, (str, bytes, bytearray)):
        return _text(value)
    if id(cls) in _BRACKETS:
        return _container(value, depth)
    if _is_one(cls, _FUNCTIONS):
        return _function(value)
    if cls is types.ModuleType:
        return f"<module {_plain(types.ModuleType.__getattribute__(value, '__dict__').get('__name__'))}>"
    if cls is types.CodeType:
        return f"<code {value.co_name} at {code_place(value)}>"
    if issubclass(cls, type):
        return f"<class {type_name(value, module=True)}>"
    if issubclass(cls, enum.Enum):
        return _member(value, depth)
    return _torch_value(value, depth) or _numpy_value(value) or f"<{type_name(cls, module=True)} object>"


def _plain(text: Any) -> str:
    return text if type(text) is str else "?"


def _text(value: str | bytes | bytearray) -> str:
    if len(value) <= MAX_CHARS:
        return repr(value)
    return f"{value[: MAX_CHARS // 2]!r}... ({len(value)} long)"


def _span(value: slice | range, depth: int) -> str:
    parts = ", ".join(_describe(part, depth - 1) for part in (value.start, value.stop, value.step))
    return f"{type(value).__name__}({parts})"


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
        return _describe(value.__func__, 1) if _is_one(type(value.__func__), _FUNCTIONS) else "<method object>"
    code = getattr(value, "__code__", None)
    return f"{name} at {code_place(code)}" if code is not None else f"<builtin {name}>"


def _member(value: enum.Enum, depth: int) -> str:
    name = object.__getattribute__(value, "__dict__").get("_name_")
    return f"{type_name(type(value))}.{_plain(name)}"


def _torch_value(value: Any, depth: int) -> str | None:
    torch = sys.modules.get("torch")
    # A half-imported torch has no Tensor yet.
    if torch is None or not hasattr(torch, "nn"):
        return None
    cls = type(value)
    if issubclass(cls, torch.Tensor):
        return _tensor(value)
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


def _tensor(value: Any) -> str:
    """A tensor's dtype, shape and device, as `Tensor float32[2, 4] cpu`; reads no data."""
    from .torch_api import tensor_metadata  # torch is imported by now: there is a tensor.

    dtype, shape, device = tensor_metadata(value)
    return f"{type_name(type(value))} {dtype}{shape} {device}"
