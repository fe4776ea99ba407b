"""TENSOR_MATCH guards, one failure per property: torch reports the first mismatch only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ...decode.guards.cpp_names import compare_dispatch_keys
from ...decode.guards.guard_text import ParsedGuard
from ...decode.guards.tensor_text import TensorCheck
from ...interrupts import pass_on
from . import torch_api
from .describe import type_name
from .guard_scope import GuardScope

#: (kind, source, expected, actual)
Mismatch = tuple[str, str, str, str]


def find_mismatches(check: TensorCheck, value: Any) -> tuple[bool, list[Mismatch]]:
    """(is it a tensor of the expected type?, what differs, in the order in which C++ compares)."""
    name = type_name(type(value))
    if not isinstance(value, torch.Tensor) or name != check.pytype:
        return False, [("type", check.name, check.pytype, name)]
    found = _compare_properties(check, value)
    if value.dim() != len(check.size):
        return True, [*found, ("tensor_rank", f"{check.name}.dim()", str(len(check.size)), str(value.dim()))]
    return True, found + _compare_geometry(check, value)


def _compare_properties(check: TensorCheck, value: Any) -> list[Mismatch]:
    found: list[Mismatch] = []
    keys = torch_api.dispatch_keys(value)
    device = str(value.device)
    if keys != check.keys:
        is_device, expected, actual = compare_dispatch_keys(check.keys, keys)
        if is_device:
            index = "" if check.device_index is None else f":{check.device_index}"
            found.append(("tensor_device", f"{check.name}.device", expected + index, device))
        else:
            found.append(("dispatch_keys", check.name, expected, actual))
    if str(value.dtype) != check.dtype:
        found.append(("tensor_dtype", f"{check.name}.dtype", check.dtype, str(value.dtype)))
    number = torch.accelerator.current_device_index() if check.is_on_current else check.device_index
    if value.device.index != number and not any(kind == "tensor_device" for kind, *_ in found):
        expected = value.device.type if number is None else f"{value.device.type}:{number}"
        found.append(("tensor_device", f"{check.name}.device", expected, device))
    if value.requires_grad != check.requires_grad:
        found.append(
            ("requires_grad", f"{check.name}.requires_grad", str(check.requires_grad), str(value.requires_grad))
        )
    return found


def _compare_geometry(check: TensorCheck, value: Any) -> list[Mismatch]:
    sizes = tuple(value.size())
    found = [
        ("tensor_size", f"{check.name}.size()[{i}]", str(want), str(now))
        for i, (want, now) in enumerate(zip(check.size, sizes, strict=True))
        if want is not None and want != now
    ]
    try:
        strides = tuple(value.stride())
    except RuntimeError as error:  # Sparse layouts have no strides.
        pass_on(error)
        return found
    if found and _is_dense(check.size, check.stride) and _is_dense(sizes, strides):
        # Both are contiguous, so the strides differ only because the sizes do.
        return found
    return found + [
        ("tensor_stride", f"{check.name}.stride()[{i}]", str(want), str(now))
        for i, (want, now) in enumerate(zip(check.stride, strides, strict=True))
        if want is not None and want != now
    ]


def _is_dense(sizes: tuple[int | None, ...], strides: tuple[int | None, ...]) -> bool:
    """True if these are a contiguous tensor's strides, as far as the sizes are known."""
    step: int | None = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size == 1:
            continue
        if step is not None and stride is not None and stride != step:
            return False
        step = None if step is None or size is None else step * size
    return True


@dataclass(frozen=True, slots=True)
class TensorProperties:
    """What the guards on tensors compare of one value; `size` is None if it is no tensor."""

    pytype: str
    keys: str = ""
    dtype: str = ""
    device_index: int | None = None
    requires_grad: bool = False
    size: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None


def read_properties(value: Any) -> TensorProperties:
    """Read the properties of a value once, to compare them with the guards of many entries."""
    name = type_name(type(value))
    if not isinstance(value, torch.Tensor):
        return TensorProperties(name)
    try:
        stride: tuple[int, ...] | None = tuple(value.stride())
    except RuntimeError as error:  # Sparse layouts have no strides.
        pass_on(error)
        stride = None
    keys, dtype = torch_api.dispatch_keys(value), str(value.dtype)
    size = tuple(value.size())
    return TensorProperties(name, keys, dtype, value.device.index, value.requires_grad, size, stride)


def count_mismatches(check: TensorCheck, now: TensorProperties) -> int:
    """Count what `find_mismatches` would list, without the texts; negative if a type or a rank differs."""
    if now.size is None or now.pytype != check.pytype:
        return -1
    count = (now.keys != check.keys) + (now.dtype != check.dtype) + (now.requires_grad != check.requires_grad)
    count += now.keys == check.keys and now.device_index != check.device_index
    if len(now.size) != len(check.size):
        return -count - 1
    sizes = _count_different(check.size, now.size)
    return count + (sizes or (0 if now.stride is None else _count_different(check.stride, now.stride)))


def _count_different(wanted: tuple[int | None, ...], now: tuple[int, ...]) -> int:
    return sum(want is not None and want != have for want, have in zip(wanted, now, strict=True))


def describe_overlap(parsed: ParsedGuard, scope: GuardScope) -> str | None:
    """Which of the tensors of a STORAGE_OVERLAPPING guard share storage now; None if that has not changed."""
    values = [scope.value(path) for path in parsed.operands]
    if any(missing is not None for _, missing in values):
        return None
    now = torch_api.overlapping_tensors([value for value, _ in values])
    shared = ", ".join(path.text for position, path in enumerate(parsed.operands) if position in now)
    actual = f"overlapping storage: {shared or 'none'}"
    return None if actual == parsed.expected else actual
