"""Private names of torch and triton: declared in a `torch_api.py`, looked up when a watch begins."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import operator
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

#: Wrappers of other tools that are looked through for a function's parameters.
_MOST_WRAPPERS = 20


class Unavailable(Exception):
    """The installed torch lacks what a source needs; the message says what."""


class NothingToWatch(Unavailable):
    """What a source watches cannot happen here (triton is not installed, say), so nothing is missed."""


@dataclass(frozen=True, slots=True)
class TorchName:
    """A private name: the module and the dotted path in it.

    `required` is False for a name that some supported torch versions lack; code that uses it has to check.
    """

    module: str
    path: str
    required: bool = True

    def __str__(self) -> str:
        return f"{self.module}.{self.path}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition(".")[2]

    def owner(self) -> Any:
        """The module or class that holds the name, imported if need be; Unavailable if the name is not there."""
        try:
            owner = self._find_owner()
        except ImportError as error:
            raise Unavailable(f"this torch has no {self.module} ({error})") from None
        if owner is None:
            raise Unavailable(f"this torch has no {self}")
        return owner

    def _find_owner(self) -> Any:
        owner: Any = importlib.import_module(self.module)
        for part in self.path.split(".")[:-1]:
            owner = getattr(owner, part, None)
        return None if owner is None or self.name not in vars(owner) else owner

    def find(self) -> Any:
        """The value of the name, imported if need be; Unavailable if it is not there."""
        return getattr(self.owner(), self.name)

    def require_value(self) -> None:
        """Unavailable if it is not there, or None."""
        if self.find() is None:
            raise Unavailable(f"{self} of this torch is None")

    def exists(self) -> bool:
        """True if the installed torch has it."""
        # Nothing is raised and caught: an interrupt just then would keep the frames alive that the exception passed.
        if self.module not in sys.modules and importlib.util.find_spec(self.module) is None:
            return False
        return self._find_owner() is not None

    def get_loaded(self) -> Any:
        """The value of the name in a module that is already imported. Fast: for use inside hooks."""
        return _make_getter(self.path)(sys.modules[self.module])


_make_getter = functools.cache(operator.attrgetter)


class HookPoint(TorchName):
    """A function or method of torch that a source watches. torch looks it up by name at every call."""

    __slots__ = ()

    def require_value(self) -> None:
        """Unavailable if it is no function, or one without the parameters that hooks read."""
        function = vars(self.owner())[self.name]
        function = getattr(function, "__func__", function)  # Of a static or class method.
        if not callable(function):
            raise Unavailable(f"{self} of this torch is no function but {type(function).__name__}")
        wanted, found = _parameters.get(self, ()), _read_parameters(function)
        if found is None:
            return
        pairs = zip(wanted, found, strict=False)
        if len(found) < len(wanted) or any(name != "_" and other not in name.split("|") for name, other in pairs):
            raise Unavailable(f"{self} of this torch has other parameters: {', '.join(found) or 'none'}")


#: Hook point -> the names of its first parameters, as far as hooks read them.
_parameters: dict[TorchName, tuple[str, ...]] = {}


def declare_parameters(parameters: Mapping[HookPoint, str]) -> None:
    """Say which parameters hooks read: their names in order, `_` for any name, `a|b` for a name that has changed."""
    _parameters.update({point: tuple(names.split()) for point, names in parameters.items()})


def _read_parameters(function: Any) -> tuple[str, ...] | None:
    """The names of a function's positional parameters; None if they are not known or any number is accepted."""
    for _ in range(_MOST_WRAPPERS):
        if not hasattr(function, "__wrapped__"):
            break
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_flags & inspect.CO_VARARGS:
        return None
    return code.co_varnames[: code.co_argcount]


def hook_points(module: str, cls: str, *names: str) -> tuple[HookPoint, ...]:
    """Several methods of one class."""
    return tuple(HookPoint(module, f"{cls}.{name}") for name in names)


def fields(module: str, cls: str, *names: str) -> tuple[TorchName, ...]:
    """Attributes that are read from objects of one class. They are listed in docs/torch_internals.md, not looked up:
    most exist on instances only.
    """
    return tuple(TorchName(module, f"{cls}.{name}") for name in names)


def require_modules(*modules: str) -> None:
    """Unavailable if one of these modules cannot be imported. Imports their packages only."""
    for name in modules:
        try:
            spec = importlib.util.find_spec(name)
        except ImportError:
            spec = None
        if spec is None:
            raise Unavailable(f"this torch has no {name}")


def require_triton() -> None:
    """NothingToWatch without triton. triton is not imported: its own names are looked up when torch imports it."""
    if importlib.util.find_spec("triton") is None:
        raise NothingToWatch("triton is not installed")


def require(names: Iterable[TorchName]) -> None:
    """Unavailable, with the name, unless the installed torch has all of them, as what they are used for."""
    for name in names:
        name.require_value()


def call_argument(args: tuple[Any, ...], kwargs: dict[str, Any], position: int, name: str) -> Any:
    """An argument of a watched call, positional or by keyword; None if it was not passed."""
    return args[position] if len(args) > position else kwargs.get(name)


def call_arguments(args: tuple[Any, ...], kwargs: dict[str, Any], /, **positions: int) -> list[Any]:
    """Several arguments of a watched call, by their names and positions; None for one that was not passed."""
    return [call_argument(args, kwargs, position, name) for name, position in positions.items()]


def is_frame_of(frame: FrameType, module: str, *functions: str) -> bool:
    """True if `frame` runs one of these functions of a module."""
    return frame.f_code.co_name in functions and frame.f_globals.get("__name__") == module


def find_frame(depth: int, module: str, *functions: str) -> FrameType | None:
    """The innermost frame that runs one of these functions of a module, of the `depth` above the function that asks."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and depth > 0:
        if is_frame_of(frame, module, *functions):
            return frame
        frame, depth = frame.f_back, depth - 1
    return None


def caller_frames(depth: int) -> Iterator[FrameType]:
    """The frames above the function that asks, innermost first, at most `depth`."""
    frame = sys._getframe(1).f_back
    while frame is not None and depth > 0:
        yield frame
        frame, depth = frame.f_back, depth - 1


def is_torch_file(file: str) -> bool:
    """True for a file of the installed torch."""
    return file.startswith(_find_torch_folder())


@functools.cache
def _find_torch_folder() -> str:
    return os.path.dirname(str(sys.modules["torch"].__file__)) + os.sep
