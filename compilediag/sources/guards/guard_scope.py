"""The current value of a guard's source, read in the scope in which torch evaluates it, as bounded text."""

from __future__ import annotations

import functools
import json
import linecache
import operator
import os
import re
import types
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from ...decode.guards.guard_forms import compare_dispatch_keys, format_dim_ranges, parse_class_name
from ...decode.guards.guard_text import ParsedGuard, TensorCheck, split_comment
from ...decode.guards.path import Path, parse_expression, parse_path
from ...system.interrupts import pass_on
from ..hooks.torch_names import is_torch_file
from . import torch_api
from .read_values import CANNOT_READ, FrameReader, Unreadable, code_place, describe, read_length, type_name

_OBJECT_ID = re.compile(r"___check_obj_id\(.+, (\d+)\)", re.S)
#: To search more of them (0.1 us each) is not worth a name.
_MOST_FINALIZERS = 20_000
#: Parts of a Python function that guards check; an object without them is no Python function.
FUNCTION_PARTS = (".__code__", ".__closure__", ".__defaults__", ".__kwdefaults__")
#: Stands for a value that is not known.
NOTHING = object()


class GuardScope:
    """Reads the values of guards for one entry and one call."""

    def __init__(self, guard_manager: Any, f_locals: dict[str, Any]):
        self.f_locals = f_locals
        self._manager = guard_manager
        f_globals = (guard_manager.global_scope or {}).get("G", {})
        self._reader = FrameReader(f_locals, f_globals, lambda: self.closure_vars)

    @functools.cached_property
    def closure_vars(self) -> dict[str, Any]:
        return self._manager.closure_vars or {}

    @functools.cached_property
    def own_file(self) -> str | None:
        """The file of the function that the entry is for."""
        entry = self._manager.cache_entry
        return entry.code.co_filename if entry is not None else None

    def value(self, path: Path | str) -> tuple[Any, Exception | None]:
        """(value, None), or (None, why it cannot be read). A text is torch's name of the value."""
        found = parse_path(path) if isinstance(path, str) else path
        if found is None:
            return None, Unreadable("its name")
        try:
            return self._reader.read(found), None
        except CANNOT_READ as error:
            pass_on(error)
            return None, error

    def step(self, name: str, base: str, base_value: Any) -> tuple[Any, Exception | None]:
        """As `value`, but from the value of the parent where the name only extends the parent's."""
        path, parent = parse_path(name), parse_path(base) if base_value is not NOTHING else None
        steps = path.find_steps_below(parent) if path is not None and parent is not None else None
        if steps is None:
            return self.value(path or name)
        try:
            return self._reader.walk(base_value, steps), None
        except CANNOT_READ as error:
            pass_on(error)
            return None, error

    def is_false(self, text: str) -> bool:
        """True if a code part can be decided and is false."""
        expression = parse_expression(split_comment(text)[0])
        if expression is None:
            return False
        try:
            result = self._reader.decide(expression)
        except CANNOT_READ as error:
            pass_on(error)
            return False
        return not isinstance(result, str) and not result

    def full_path(self, short: str | None) -> str | None:
        """The whole path of a file: torch removes the part that it shares with torch's own path."""
        return find_full_path(short, self.own_file)


def find_full_path(short: str | None, own_file: str | None) -> str | None:
    """The whole path of a file that a guard names. `own_file`: the file of the compiled function."""
    if not short or os.path.isabs(short):
        return short
    return own_file if own_file and own_file.endswith(short) else _found_path(short)


@functools.lru_cache(maxsize=1024)
def _found_path(short: str) -> str:
    folder = os.path.dirname(torch.__file__)
    while True:
        path = os.path.join(folder, short)
        if path in linecache.cache or os.path.exists(path):
            return path
        if folder == os.path.dirname(folder):
            return short
        folder = os.path.dirname(folder)


def find_user_line(stack: Any) -> tuple[str, int, str | None] | None:
    """File, line and text of the innermost frame outside torch in a traceback.StackSummary."""
    if not stack:
        return None
    frame = next((f for f in reversed(stack) if not is_torch_file(f.filename)), stack[-1])
    return frame.filename, frame.lineno, (frame.line or "").strip() or None


class GuardValues(NamedTuple):
    """The value that a guard expects and the value now, in the same form.

    `lookalike` is the object or class now, if it is another one that looks the same; `actual` says so too.
    """

    expected: str | None
    actual: str | None
    lookalike: str | None = None


def describe_guard(parsed: ParsedGuard, scope: GuardScope, value: Any = NOTHING) -> GuardValues:
    """Describe what the guard expects, and the value now."""
    if (parsed.source or "").endswith("._dynamo_dynamic_range"):
        marks, _ = scope.value(parsed.operands[0])
        is_torchs = type(marks) is set and all(type_name(type(mark)) == "_DimRange" for mark in marks)
        # The repr of torch's own class has the numbers alone.
        return GuardValues(parsed.expected, format_dim_ranges(repr(marks) if is_torchs else ""))
    if parsed.kind in ("symbolic_shape", "alias") and parsed.operands:
        texts = []
        for path in parsed.operands:
            operand, gap = scope.value(path)
            text = describe(operand) if gap is None else _describe_missing(gap)
            texts.append(text if len(parsed.operands) == 1 else f"{path.text} = {text}" if text is not None else None)
        return GuardValues(parsed.expected, ", ".join(text for text in texts if text is not None) or None)
    if value is NOTHING:
        if not parsed.operands:
            return GuardValues(parsed.expected, None)
        value, missing = scope.value(parsed.operands[0])
        if missing is not None:
            return GuardValues(parsed.expected, _describe_missing(missing))
    describe_kind = _DESCRIBERS.get(parsed.kind)
    return describe_kind(parsed, value) if describe_kind else GuardValues(parsed.expected, describe(value))


def _describe_missing(error: Exception) -> str | None:
    """Why a value cannot be read; None if that says nothing of the value."""
    return None if isinstance(error, Unreadable) else f"missing: {type(error).__name__}"


_Describer = Callable[[ParsedGuard, Any], GuardValues]
_DESCRIBERS: dict[str, _Describer] = {}


def register(kind: str) -> Callable[[_Describer], _Describer]:
    """The function describes guards of this kind."""

    def add(describer: _Describer) -> _Describer:
        _DESCRIBERS[kind] = describer
        return describer

    return add


@register("type")
def _describe_type(parsed: ParsedGuard, value: Any) -> GuardValues:
    expected, actual = parsed.expected, type_name(type(value))
    if actual.rpartition(".")[2] != expected:
        return GuardValues(expected, actual)
    expected = parse_class_name(parsed.text, module=True)
    actual = parse_class_name(type.__repr__(type(value)), module=True) or actual
    # A class that was defined again, when a notebook's cell ran again, has the same name.
    return _compare(expected, actual, actual == expected, "class")


@register("identity")
def _describe_identity(parsed: ParsedGuard, value: Any) -> GuardValues:
    old = _find_expected_object(parsed.text)
    actual = _identity(value)
    if old is None:
        cls = value if isinstance(value, type) else type(value)
        same = parse_class_name(parsed.text) == type_name(cls).rpartition(".")[2]
        return _compare(parsed.expected, actual, same, "object")
    expected = _identity(old)
    return _compare(expected, actual, actual == expected, "object")


def _compare(expected: str | None, actual: str, looks_same: bool, what: str) -> GuardValues:
    return GuardValues(expected, f"{actual} (another {what})", actual) if looks_same else GuardValues(expected, actual)


def _identity(value: Any) -> str:
    if type(value) is types.CodeType:
        return f"{getattr(value, 'co_qualname', value.co_name).rpartition('.<locals>.')[2]} at {code_place(value)}"
    return describe(value)


def _find_expected_object(text: str) -> Any:
    """The object that an ID_MATCH guard expects, or None.

    It is alive: torch drops the entry when it dies, by a `weakref.finalize` on it, and there it is found.
    """
    found = _OBJECT_ID.search(text)
    registry = getattr(weakref.finalize, "_registry", {})
    if not found or len(registry) > _MOST_FINALIZERS:
        return None
    wanted = int(found[1])
    for info in list(registry.values()):
        value = info.weakref()
        if id(value) == wanted:
            return value
    return None


@register("length")
def _describe_length(parsed: ParsedGuard, value: Any) -> GuardValues:
    if parsed.text.startswith(("___tuple_iterator_len", "___list_reverseiterator_len")):
        actual = str(operator.length_hint(value)) if type(value) in _ITERATORS else describe(value)
        return GuardValues(parsed.expected, actual)
    try:
        return GuardValues(parsed.expected, str(read_length(value)))
    except Unreadable:
        # An object without a length fails the guard too.
        return GuardValues(parsed.expected, describe(value))


#: Iterators whose remaining length is guarded.
_ITERATORS: tuple[type, ...] = (type(iter(())), type(reversed([1])))


@register("dict_keys")
def _describe_keys(parsed: ParsedGuard, value: Any) -> GuardValues:
    whole = type(value) in (dict, types.MappingProxyType) and (parsed.source or "").endswith(".keys()")
    keys = list(dict.keys(value) if type(value) is dict else value) if whole else value
    return GuardValues(parsed.expected, describe(keys))


# Guards on torch's global state: what they expect and what it is now.

#: c10::ScalarType by number: the state's JSON has dtypes as numbers.
_DTYPES = {5: "torch.float16", 6: "torch.float32", 7: "torch.float64", 15: "torch.bfloat16"}
#: at::autocast's devices by position; the others are shown as numbers.
_AUTOCAST_DEVICES = ("cpu", "cuda")


def find_state_changes(text: str) -> Iterator[tuple[str, str, str]]:
    """(part, expected, actual) for each part of torch's global state that differs from the guard's text."""
    try:
        before = json.loads(text.partition(" against ")[2])
    except ValueError as error:
        pass_on(error)
        before = {}
    now = json.loads(torch_api.GLOBAL_STATE.find()().__getstate__())
    for part in now:
        old, new = before.get(part), now[part]
        if part not in before or old == new:
            continue
        if part == "default_dtype":
            yield part, _dtype_name(old), _dtype_name(new)
        elif part != "autocast_state":
            yield part, str(old), str(new)
        elif _autocast_text(old) != _autocast_text(new):
            yield "autocast", _autocast_text(old), _autocast_text(new)
        elif old["cached_enabled"] != new["cached_enabled"]:
            yield "autocast_cache", str(old["cached_enabled"]), str(new["cached_enabled"])
    if not before:
        yield "global state", "unchanged", "changed"


def _dtype_name(number: Any) -> str:
    return _DTYPES.get(number, f"dtype {number}")


def _autocast_text(state: dict[str, Any]) -> str:
    on = [
        f"{_AUTOCAST_DEVICES[i] if i < len(_AUTOCAST_DEVICES) else f'device {i}'} {_dtype_name(dtype)}"
        for i, (enabled, dtype) in enumerate(zip(state["enabled"], state["dtype"], strict=True))
        if enabled
    ]
    return "on: " + ", ".join(on) if on else "off"


def read_state(parsed: ParsedGuard, scope: GuardScope) -> str | None:
    """The current value of a global state, for the guards whose text names no value; else None."""
    if parsed.kind == "default_device":
        return describe(scope.value(torch_api.CURRENT_DEVICE)[0])
    if parsed.kind == "mode_stack" and parsed.source == "torch function modes":
        return _join_names([type(mode) for mode in torch_api.FUNCTION_MODES.find()()])
    if parsed.kind == "global_state" and parsed.source == "forward AD level":
        return describe(scope.value(torch_api.FORWARD_AD_LEVEL)[0])
    return None


def read_mode_types(parsed: ParsedGuard, closure_vars: dict[str, Any]) -> str | None:
    """The torch function modes of compile time: Dynamo's own Python check keeps their types in its closure."""
    check = closure_vars.get(torch_api.MODE_STACK_CHECK)
    code = getattr(check, "__code__", None)
    if check is None or parsed.source != "torch function modes" or code is None or "types" not in code.co_freevars:
        return None
    return _join_names(check.__closure__[code.co_freevars.index("types")].cell_contents)


def _join_names(modes: list[type]) -> str:
    return ", ".join(type_name(mode) for mode in modes) or "no mode"


# TENSOR_MATCH guards, one failure per property: torch reports the first mismatch only.

#: (kind, source, expected, actual)
Mismatch = tuple[str, str, str, str]


def find_mismatches(check: TensorCheck, value: Any) -> tuple[bool, list[Mismatch]]:
    """(is it a tensor of the expected type?, what differs, in the order in which C++ compares)."""
    name = type_name(type(value))
    if not isinstance(value, torch.Tensor) or name != check.pytype:
        return False, [("type", check.name, check.pytype, name)]
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
    if value.dim() != len(check.size):
        return True, [*found, ("tensor_rank", f"{check.name}.dim()", str(len(check.size)), str(value.dim()))]
    return True, found + _compare_geometry(check, value)


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
    now = set(torch_api.OVERLAPPING.find()([value for value, _ in values], symbolic=False))
    shared = ", ".join(path.text for position, path in enumerate(parsed.operands) if position in now)
    actual = f"overlapping storage: {shared or 'none'}"
    return None if actual == parsed.expected else actual
