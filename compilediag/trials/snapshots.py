"""The user's objects that a workload can reach: saved before it runs, restored after it.

A workload trains a model, counts up, appends: its next run would start from another state, and the user's objects would
have changed. They are found from the function: its closure, defaults, globals, bound object, and from there modules,
optimizers, tensors, containers, plain objects and generators of random numbers. Not found: objects behind `__slots__`,
in extension types, files, iterators and other processes.
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
from ..sources.guards.describe import type_name
from ..sources.hooks.caller_frames import is_torch_file
from ..sources.hooks.own_errors import describe_error
from . import torch_api

#: Objects that are saved; of a workload that reaches more, the rest is not.
MAX_OBJECTS = 200_000
_CONTAINERS = (list, dict, set, deque, OrderedDict, defaultdict)
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
#: Never followed: their content belongs to the compiler, the interpreter or compilediag.
_NOT_THE_USERS = (types.ModuleType, types.CodeType, types.FrameType, types.GeneratorType, torch.device, torch.dtype)
_TOOLS = ("compilediag", "IPython", "ipykernel", "pytest", "_pytest")
_TORCH_WITH_STATE = ("torch.nn", "torch.optim", "torch.utils.data", "torch.amp")


class Snapshot:
    """The state of the objects that `workload` reaches. `restore` restores it; `find_changes` lists what a run changed.

    `problem` says in one line why not all of it could be saved or restored; None as long as nothing failed.
    """

    def __init__(self, workload: Callable[[], Any]):
        self.problem: str | None = None
        self._seen: dict[int, Any] = {}
        self._tensors: list[tuple[str, torch.Tensor, torch.Tensor | None, bool, torch.Tensor | None]] = []
        self._containers: list[tuple[str, Any, Any]] = []
        self._cells: list[tuple[str, types.CellType, Any]] = []
        self._globals: dict[tuple[int, str], tuple[dict[str, Any], Any]] = {}
        self._attributes: list[tuple[type, str, Any]] = []
        self._states: list[tuple[str, Callable[[Any], Any], Any]] = []
        self._walk([("workload", workload)])

    def _walk(self, waiting: list[tuple[str, Any]]) -> None:
        while waiting:
            name, found = waiting.pop()
            if _is_instance(found, _PLAIN) or id(found) in self._seen or _is_instance(found, _NOT_THE_USERS):
                continue
            if len(self._seen) >= MAX_OBJECTS:
                self._note(f"the workload reaches more than {MAX_OBJECTS:,} objects")
                return
            self._seen[id(found)] = found
            waiting.extend(self._keep(name, found))

    def _note(self, problem: str) -> None:
        """Remember the first problem."""
        self.problem = self.problem or problem

    def _keep(self, name: str, found: Any) -> Iterator[tuple[str, Any]]:
        """Keep the state of one object; gives what it holds, by name."""
        if _is_instance(found, torch.Tensor):
            return self._keep_tensor(name, found)
        if _is_instance(found, (types.FunctionType, types.MethodType, functools.partial)):
            return self._keep_callable(name, found)
        if _is_instance(found, torch.Generator):
            self._states.append((name, found.set_state, found.get_state()))
        elif _is_instance(found, random.Random):
            self._states.append((name, found.setstate, found.getstate()))
        elif type(found).__module__ == "numpy" and type(found).__name__ == "ndarray" and not found.dtype.hasobject:
            self._states.append((name, functools.partial(_put_array, found), found.copy()))
        elif _is_instance(found, type):
            return self._keep_class(name, found)
        elif _is_instance(found, (tuple, frozenset)):
            return ((f"{name}[{n}]", value) for n, value in enumerate(found))
        elif _is_instance(found, _CONTAINERS):
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
        if _is_instance(found, types.MethodType):
            yield name, found.__self__
            yield name, found.__func__
            return
        if _is_instance(found, functools.partial):
            yield name, found.func
            yield name, found.args
            yield name, found.keywords
            return
        inner = inner_function(found)
        if inner is not None:
            yield name, inner
        if _is_user_file(found.__code__.co_filename):
            yield from self._keep_function(name, found)

    def _keep_function(self, name: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue  # A variable that has no value yet.
            self._cells.append((variable, cell, value))
            yield variable, value
        yield name, function.__defaults__
        yield name, function.__kwdefaults__
        for variable in _names_in(function.__code__):
            if variable in function.__globals__:
                value = function.__globals__[variable]
                self._globals[(id(function.__globals__), variable)] = (function.__globals__, value)
                yield variable, value

    def _keep_class(self, name: str, found: type) -> Iterator[tuple[str, Any]]:
        """The attributes of a user's class; its functions lead to the globals that they name."""
        for base in found.__mro__:
            file = getattr(sys.modules.get(base.__module__), "__file__", None) or base.__module__
            if _is_user_file(file) and base.__module__ != "builtins":
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
        if not _has_user_state(cls):
            return
        try:
            own = object.__getattribute__(found, "__dict__")
        except Exception as error:
            if not isinstance(error, AttributeError):
                self._note(f"{name}, of {type_name(cls)}, does not give its attributes")
            return
        if isinstance(own, dict):
            self._seen[id(own)] = own
            yield from self._keep_container(name, own)
        yield name, cls

    def restore(self) -> None:
        """Restore everything. An object that refuses (a tensor in use, say) is left as it is and named in `problem`."""
        for name, restore in self._steps():
            try:
                restore()
            except Exception as error:
                self._note(f"{name}: {describe_error(error)}")

    def _steps(self) -> Iterator[tuple[str, Callable[[], object]]]:
        """(name, what restores it) of each object."""
        for name, cell, value in self._cells:
            yield name, functools.partial(setattr, cell, "cell_contents", value)
        for (_, variable), (namespace, value) in self._globals.items():
            if namespace.get(variable) is not value:
                yield variable, functools.partial(namespace.__setitem__, variable, value)
        for cls, attribute, value in self._attributes:
            if vars(cls).get(attribute) is not value:
                yield f"{cls.__name__}.{attribute}", functools.partial(setattr, cls, attribute, value)
        for name, container, content in self._containers:
            yield name, functools.partial(_refill, container, content)
        for name, put, state in self._states:
            yield name, functools.partial(put, state)
        for name, *kept in self._tensors:
            yield name, functools.partial(_restore_tensor, *kept)

    def find_changes(self) -> dict[str, Any]:
        """What differs from the snapshot now, by name: tensors and gradients as copies, plain values, lengths."""
        found: dict[str, Any] = {}
        for name, tensor, value, _, grad in self._tensors:
            if value is not None and not _is_same(tensor, value):
                found[name] = tensor
            if tensor.is_leaf and tensor.grad is not None and tensor.grad is not grad:
                found[f"{name}.grad"] = tensor.grad
        for name, container, content in self._containers:
            if not _is_unchanged(container, content):
                found[name] = _copy_shallow(container)
        for (_, variable), (namespace, value) in self._globals.items():
            if namespace.get(variable) is not value:
                found[variable] = namespace.get(variable)
        for cls, attribute, value in self._attributes:
            if vars(cls).get(attribute) is not value:
                found[f"{cls.__name__}.{attribute}"] = vars(cls).get(attribute)
        return found


def _restore_tensor(
    tensor: torch.Tensor, value: torch.Tensor | None, requires_grad: bool, grad: torch.Tensor | None
) -> None:
    with torch.no_grad():
        if value is not None and not _is_same(tensor, value):
            with torch.inference_mode(tensor.is_inference()):
                _put_tensor(tensor, value)
        if tensor.is_leaf:
            if tensor.requires_grad != requires_grad:
                tensor.requires_grad_(requires_grad)
            if tensor.grad is not grad:
                tensor.grad = grad


def _is_instance(found: Any, kinds: Any) -> bool:
    """isinstance, without asking the object for its `__class__`."""
    return issubclass(type(found), kinds)


def _copy_shallow(container: Any) -> Any:
    """The values of a container that can be compared without asking them: numbers, texts, tensors; else their class."""
    if isinstance(container, dict):
        return {str(k) if isinstance(k, _PLAIN) else type(k).__name__: _copy_leaf(v) for k, v in dict.items(container)}
    return len(container) if isinstance(container, set) else [_copy_leaf(value) for value in container]


def _copy_leaf(value: Any) -> Any:
    return value if _is_instance(value, (*_PLAIN, torch.Tensor)) else type(value)


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
    return bool(torch.equal(tensor.detach().to("cpu"), value))


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


def _has_user_state(cls: type) -> bool:
    module = cls.__module__ or ""
    root = module.partition(".")[0]
    if root == "torch":
        return module.startswith(_TORCH_WITH_STATE) or (module == torch_api.COMPILED_MODULE.module and _is_module(cls))
    return root not in sys.stdlib_module_names and root not in _TOOLS


def _is_module(cls: type) -> bool:
    with contextlib.suppress(TypeError):
        return issubclass(cls, torch.nn.Module)
    return False


@functools.lru_cache(maxsize=4096)
def _is_user_file(file: str) -> bool:
    """False for files of torch, of installed packages, of Python and of this package: their state is not the user's."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = (sysconfig.get_path(name) + os.sep for name in ("stdlib", "purelib", "platlib"))
    return not (is_torch_file(file) or file.startswith((ours + os.sep, "<frozen", *installed)))
