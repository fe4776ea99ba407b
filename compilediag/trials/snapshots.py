"""What a workload can reach of the user's objects, kept before it runs and put back after.

A workload trains a model, counts up, appends: its next run would begin elsewhere, and the user's objects would have
moved on. Found from the function: its closure, defaults, globals, bound object, and from there modules, optimizers,
tensors, containers, plain objects and generators of random numbers. Not found: what is behind `__slots__`, in
extension types, files, iterators and other processes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import sys
import sysconfig
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..sources.dynamo.torch_api import inner_function
from ..sources.hooks.caller_frames import is_torch_file
from . import torch_api

#: A workload that reaches more objects than this is kept in part.
MAX_OBJECTS = 200_000
_CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict)
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
#: Never walked: what they hold is the compiler's, the interpreter's or ours.
_NOT_THEIRS = (types.ModuleType, types.CodeType, types.FrameType, types.GeneratorType, torch.device, torch.dtype)
_TOOLS = ("compilediag", "IPython", "ipykernel", "pytest", "_pytest")
_THEIR_TORCH = ("torch.nn", "torch.optim", "torch.utils.data", "torch.amp")


class Snapshot:
    """The state of all that `workload` reaches. `restore` puts it back; `changed` tells what a run changed."""

    def __init__(self, workload: Callable[[], Any]):
        self.complete = True
        self._seen: dict[int, Any] = {}
        self._tensors: list[tuple[str, torch.Tensor, torch.Tensor | None, bool, torch.Tensor | None]] = []
        self._containers: list[tuple[str, Any, Any]] = []
        self._cells: list[tuple[types.CellType, Any]] = []
        self._globals: dict[tuple[int, str], tuple[dict[str, Any], Any]] = {}
        self._attributes: list[tuple[type, str, Any]] = []
        self._states: list[tuple[Callable[[Any], Any], Any]] = []
        self._walk([("workload", workload)])

    def _walk(self, waiting: list[tuple[str, Any]]) -> None:
        while waiting:
            name, found = waiting.pop()
            if _is(found, _PLAIN) or id(found) in self._seen or _is(found, _NOT_THEIRS):
                continue
            if len(self._seen) >= MAX_OBJECTS:
                self.complete = False
                return
            self._seen[id(found)] = found
            waiting.extend(self._keep(name, found))

    def _keep(self, name: str, found: Any) -> Iterator[tuple[str, Any]]:
        """Keep the state of one object; gives what it holds, by name."""
        if _is(found, torch.Tensor):
            return self._keep_tensor(name, found)
        if _is(found, (types.FunctionType, types.MethodType, functools.partial)):
            return self._keep_callable(name, found)
        if _is(found, torch.Generator):
            self._states.append((found.set_state, found.get_state()))
        elif _is(found, random.Random):
            self._states.append((found.setstate, found.getstate()))
        elif type(found).__module__ == "numpy" and type(found).__name__ == "ndarray" and not found.dtype.hasobject:
            self._states.append((functools.partial(_put_array, found), found.copy()))
        elif _is(found, type):
            return self._keep_class(name, found)
        elif _is(found, (tuple, frozenset)):
            return ((f"{name}[{n}]", value) for n, value in enumerate(found))
        elif _is(found, _CONTAINERS):
            return self._keep_container(name, found)
        else:
            return self._keep_object(name, found)
        return iter(())

    def _keep_tensor(self, name: str, tensor: torch.Tensor) -> Iterator[tuple[str, Any]]:
        is_plain = tensor.layout is torch.strided and tensor.device.type != "meta"
        value = tensor.detach().to("cpu", copy=True) if is_plain else None
        grad = tensor.grad if tensor.is_leaf else None
        self._tensors.append((name, tensor, value, tensor.requires_grad, grad))
        if grad is not None:
            yield f"{name}.grad", grad

    def _keep_callable(self, name: str, found: Any) -> Iterator[tuple[str, Any]]:
        if _is(found, types.MethodType):
            yield name, found.__self__
            yield name, found.__func__
            return
        if _is(found, functools.partial):
            yield name, found.func
            yield name, found.args
            yield name, found.keywords
            return
        inner = inner_function(found)
        if inner is not None:
            yield name, inner
        if _is_theirs(found.__code__.co_filename):
            yield from self._keep_function(name, found)

    def _keep_function(self, name: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue  # A variable that has no value yet.
            self._cells.append((cell, value))
            yield variable, value
        yield name, function.__defaults__
        yield name, function.__kwdefaults__
        for variable in _names_in(function.__code__):
            if variable in function.__globals__:
                value = function.__globals__[variable]
                self._globals[(id(function.__globals__), variable)] = (function.__globals__, value)
                yield variable, value

    def _keep_class(self, name: str, found: type) -> Iterator[tuple[str, Any]]:
        """The attributes of a class of the user's; its functions lead to the globals that they name."""
        for base in found.__mro__:
            file = getattr(sys.modules.get(base.__module__), "__file__", None) or base.__module__
            if _is_theirs(file) and base.__module__ != "builtins":
                for attribute, value in list(vars(base).items()):
                    if not attribute.startswith("__"):
                        self._attributes.append((base, attribute, value))
                        yield f"{base.__name__}.{attribute}", value

    def _keep_container(self, name: str, found: Any) -> Iterator[tuple[str, Any]]:
        self._containers.append((name, found, dict(found) if isinstance(found, dict) else list(found)))
        if isinstance(found, dict):
            for key, value in dict.items(found):
                shown = f".{key}" if isinstance(key, str) and key.isidentifier() else "[...]"
                yield (f"{name}{shown}" if not isinstance(key, int) else f"{name}[{key}]"), value
                if not isinstance(key, _PLAIN):
                    yield name, key
        else:
            yield from ((f"{name}[{n}]", value) for n, value in enumerate(found))

    def _keep_object(self, name: str, found: Any) -> Iterator[tuple[str, Any]]:
        cls = type(found)
        if not _is_walked(cls):
            return
        try:
            own = object.__getattribute__(found, "__dict__")
        except Exception as error:
            if not isinstance(error, AttributeError):
                self.complete = False  # An object that refuses: what it holds is not kept.
            return
        if isinstance(own, dict):
            self._seen[id(own)] = own
            yield from self._keep_container(name, own)
        yield name, cls

    def restore(self) -> None:
        """Put everything back as it was. What can't be (a tensor that refuses) is left and makes it incomplete."""
        for cell, value in self._cells:
            cell.cell_contents = value
        for (_, variable), (namespace, value) in self._globals.items():
            if namespace.get(variable) is not value:
                namespace[variable] = value
        for cls, attribute, value in self._attributes:
            if vars(cls).get(attribute) is not value:
                setattr(cls, attribute, value)
        for _, container, content in self._containers:
            _refill(container, content)
        for put, state in self._states:
            put(state)
        with torch.no_grad():
            for _, tensor, value, requires_grad, grad in self._tensors:
                self._restore_tensor(tensor, value, requires_grad, grad)

    def _restore_tensor(
        self, tensor: torch.Tensor, value: torch.Tensor | None, requires_grad: bool, grad: torch.Tensor | None
    ) -> None:
        try:
            if value is not None and not _is_same(tensor, value):
                with torch.inference_mode(tensor.is_inference()):
                    _put_tensor(tensor, value)
            if tensor.is_leaf:
                if tensor.requires_grad != requires_grad:
                    tensor.requires_grad_(requires_grad)
                if tensor.grad is not grad:
                    tensor.grad = grad
        except RuntimeError:
            self.complete = False

    def changed(self) -> dict[str, Any]:
        """What differs from the snapshot now, by name: tensors and gradients as copies, plain values, lengths."""
        found: dict[str, Any] = {}
        for name, tensor, value, _, grad in self._tensors:
            if value is not None and not _is_same(tensor, value):
                found[name] = tensor
            if tensor.is_leaf and tensor.grad is not None and tensor.grad is not grad:
                found[f"{name}.grad"] = tensor.grad
        for name, container, content in self._containers:
            if not _is_unchanged(container, content):
                found[name] = _shallow(container)
        for (_, variable), (namespace, value) in self._globals.items():
            if namespace.get(variable) is not value:
                found[variable] = namespace.get(variable)
        for cls, attribute, value in self._attributes:
            if vars(cls).get(attribute) is not value:
                found[f"{cls.__name__}.{attribute}"] = vars(cls).get(attribute)
        return found


def _is(found: Any, kinds: Any) -> bool:
    """isinstance, without asking the object for its `__class__`."""
    return issubclass(type(found), kinds)


def _shallow(container: Any) -> Any:
    """The values of a container that can be compared without asking them: numbers, texts, tensors; else their class."""
    if isinstance(container, dict):
        return {str(k) if isinstance(k, _PLAIN) else type(k).__name__: _leaf(v) for k, v in dict.items(container)}
    return len(container) if isinstance(container, set) else [_leaf(value) for value in container]


def _leaf(value: Any) -> Any:
    return value if _is(value, (*_PLAIN, torch.Tensor)) else type(value)


def _is_unchanged(container: Any, content: Any) -> bool:
    if len(container) != len(content):
        return False
    if isinstance(container, dict):
        pairs = zip(dict.items(container), content.items(), strict=True)
        return all(k is old_k and v is old_v for (k, v), (old_k, old_v) in pairs)
    return isinstance(container, set) or all(a is b for a, b in zip(container, content, strict=True))


def _refill(container: Any, content: Any) -> None:
    if not isinstance(container, set) and _is_unchanged(container, content):
        return
    if isinstance(container, dict):
        dict.clear(container)
        dict.update(container, content)
    elif isinstance(container, list):
        list.__setitem__(container, slice(None), content)
    else:
        container.clear()
        (container.update if isinstance(container, set) else container.extend)(content)


def _is_same(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    if tensor.shape != value.shape or tensor.dtype != value.dtype:
        return False
    return torch.equal(tensor.detach().to("cpu"), value)


def _put_tensor(tensor: torch.Tensor, value: torch.Tensor) -> None:
    if tensor.shape == value.shape and tensor.dtype == value.dtype:
        tensor.data.copy_(value)
    else:
        tensor.data = value.to(tensor.device)


def _put_array(array: Any, value: Any) -> None:
    array[...] = value


def _names_in(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _is_walked(cls: type) -> bool:
    module = cls.__module__ or ""
    root = module.partition(".")[0]
    if root == "torch":
        return module.startswith(_THEIR_TORCH) or (module == torch_api.COMPILED_MODULE.module and _is_module(cls))
    return root not in sys.stdlib_module_names and root not in _TOOLS


def _is_module(cls: type) -> bool:
    with contextlib.suppress(TypeError):
        return issubclass(cls, torch.nn.Module)
    return False


@functools.lru_cache(maxsize=4096)
def _is_theirs(file: str) -> bool:
    """False for files of torch, of installed packages, of Python and of this package: their state is not the user's."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = (sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))
    return not (is_torch_file(file) or file.startswith((ours + os.sep, "<frozen", *installed)))
