"""Whether two runs gave the same: tensors within what kernels may differ by, plain values, containers of these.

No method of the user's objects is called: of an object that is neither, only the class is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

#: (relative, absolute) difference that other kernels for the same mathematics may make.
_TOLERANCES = {
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (3e-2, 3e-2),
    torch.float32: (1e-3, 1e-4),
    torch.complex64: (1e-3, 1e-4),
    torch.float64: (1e-6, 1e-8),
    torch.complex128: (1e-6, 1e-8),
}
_NUMBERS = (int, float, complex)
_TEXTS = (str, bytes, bool, type(None), type)
MAX_DEPTH, MAX_VALUES = 20, 100_000


def copy_value(value: Any, depth: int = 0) -> Any:
    """`value` as it is now: copies of tensors (on the CPU) and of containers; of other objects only the class."""
    cls = type(value)
    if issubclass(cls, torch.Tensor):
        return _copy_tensor(value)
    if issubclass(cls, (*_NUMBERS, *_TEXTS)):
        return value
    if depth >= MAX_DEPTH:
        return cls
    if issubclass(cls, dict):
        return {_name_key(k): copy_value(v, depth + 1) for k, v in list(dict.items(value))[:MAX_VALUES]}
    if cls.__module__ == "numpy" and cls.__name__ == "ndarray" and not value.dtype.hasobject:
        return value.tolist() if value.size <= MAX_VALUES else value.copy().tobytes()
    if issubclass(cls, (list, tuple)):
        return [copy_value(v, depth + 1) for v in list(value)[:MAX_VALUES]]
    own = _read_attributes(value)
    if own and cls.__module__.partition(".")[0] != "torch":
        return [cls, {_name_key(k): copy_value(v, depth + 1) for k, v in own.items()}]
    return cls


def _read_attributes(value: Any) -> dict[Any, Any]:
    """The attributes of an object, without any code of its class."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return dict(own) if type(own) is dict else {}


def _name_key(key: Any) -> str:
    return str(key) if issubclass(type(key), (*_NUMBERS, *_TEXTS)) else type(key).__name__


def _copy_tensor(tensor: torch.Tensor) -> Any:
    if tensor.device.type == "meta":
        return ["meta", list(tensor.shape), str(tensor.dtype)]
    found = tensor.detach()
    found = found if found.layout is torch.strided else found.to_dense()
    return found.to("cpu", copy=True)


def find_difference(one: Any, other: Any, name: str = "the result") -> str | None:
    """The first difference of two copies, in words; None if they are the same."""
    if issubclass(type(one), torch.Tensor) and issubclass(type(other), torch.Tensor):
        return _compare_tensors(one, other, name)
    if type(one) is bool or type(other) is bool or not _are_both(one, other, _NUMBERS):
        return _compare_others(one, other, name)
    near = one == other or (one != one and other != other) or _is_near(one, other)
    return None if near else f"{name} was {one!r:.40}, then {other!r:.40}"


def _is_near(one: Any, other: Any) -> bool:
    if _are_both(one, other, int):
        return False
    return bool(abs(one - other) <= max(1e-6 * max(abs(one), abs(other)), 1e-8)) if _are_finite(one, other) else False


def _are_finite(*values: Any) -> bool:
    return all(math.isfinite(abs(value)) for value in values)


def _are_both(one: Any, other: Any, kinds: Any) -> bool:
    return issubclass(type(one), kinds) and issubclass(type(other), kinds)


def _compare_others(one: Any, other: Any, name: str) -> str | None:
    if type(one) is not type(other):
        return f"{name} was of {type(one).__name__}, then of {type(other).__name__}"
    if _are_both(one, other, dict):
        if list(one) != list(other):
            return f"{name} had other keys"
        return _find_first(find_difference(one[key], other[key], f"{name}[{key!r}]") for key in one)
    if _are_both(one, other, list):
        if len(one) != len(other):
            return f"{name} had {len(one)} values, then {len(other)}"
        return _find_first(
            find_difference(a, b, f"{name}[{n}]") for n, (a, b) in enumerate(zip(one, other, strict=True))
        )
    if _are_both(one, other, _TEXTS):
        return None if one is other or one == other else f"{name} was {one!r:.40}, then {other!r:.40}"
    return None


def _find_first(found: Iterator[str | None]) -> str | None:
    return next((text for text in found if text is not None), None)


def _compare_tensors(one: torch.Tensor, other: torch.Tensor, name: str) -> str | None:
    if one.shape != other.shape or one.dtype != other.dtype:
        return f"{name} was {_describe_tensor(one)}, then {_describe_tensor(other)}"
    relative, absolute = _TOLERANCES.get(one.dtype, (0.0, 0.0))
    if one.numel() == 0 or torch.equal(one, other):
        return None
    if not (one.is_floating_point() or one.is_complex()):
        return f"{name} has other values"
    if torch.allclose(one, other, rtol=relative, atol=absolute, equal_nan=True):
        return None
    both = one.isfinite() & other.isfinite()
    worst = (one - other).abs()[both]
    return f"{name} differs by up to {worst.max().item():.2g}" if worst.numel() else f"{name} has other values"


def _describe_tensor(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"
