"""Patches of torch's functions, which can be removed whoever else patches the same function.

Those of modules that torch imports late are installed when torch imports them, in the thread that does.

Every patch is listed before it is in its place and until it is out of it, so that one that an interrupt (Ctrl-C) left
behind is found and removed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import MethodType, ModuleType
from typing import Any

from ...system.own_errors import run_each

#: As all state of a module, they outlive `importlib.reload`.
_installed: list[Patch] = globals().get("_installed", [])
_finders: list[WhenImported] = globals().get("_finders", [])
#: The attribute of a wrapper that another copy of this package recognizes it by: `Patch.passes_on_to`.
_PASSES_ON = "_compilediag_passes_on_to"

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
#: What a call raised; None if it did not.
Raised = BaseException | None
#: Called after a watched call: with its arguments, its result (None if it raised) and what it raised; where there is a
#: `Before`, also with what that returned, None if it was not called or failed.
Observer = Callable[..., None]
#: Called before a watched call, with its arguments.
Before = Callable[[Args, Kwargs], Any]


class Patch:
    """`owner.name`, a function or method of torch, observed after each call, before it, or both.

    The program's own call happens exactly once, and its result or exception passes through. `shield` runs the
    observer (see `Source.run_shielded`); if the shield itself raises, `handle` gets the error and raises it
    again if it is an interrupt. `fail`, which is written in C, gets a RecursionError: `handle` could not be called.

    After `remove` the original is back; where another tool has installed its own wrapper on top of ours, that one stays
    and ours only passes calls through. If that tool puts our wrapper back later, the next patch of the same place
    replaces it, so that no chain of wrappers grows.
    """

    def __init__(
        self,
        owner: Any,
        name: str,
        observe: Observer | None,
        shield: Callable[..., Any],
        fail: Callable[[BaseException], object],
        handle: Callable[[BaseException], None],
        before: Before | None = None,
    ):
        self.owner = owner
        self.name = name
        self.is_live = False
        self._observe, self._shield, self._before = observe, shield, before
        self._not_begun = () if before is None else (None,)
        self._fail, self._handle = fail, handle
        self._original = skip_inert(vars(owner)[name])
        self._function = self._wrap(_function_of(self._original))
        setattr(self._function, _PASSES_ON, self.passes_on_to)

    def _wrap(self, original: Callable[..., Any]) -> Callable[..., Any]:
        # Near the limit of recursion the call of the shield itself can raise.
        @functools.wraps(original)
        def watch_call(*args: Any, **kwargs: Any) -> Any:
            begun: tuple[Any, ...] = self._not_begun
            if self.is_live and self._before is not None:
                try:
                    begun = (self._shield(self._before, args, kwargs),)
                except RecursionError as failure:
                    self._fail(failure)
                except BaseException as failure:
                    self._handle(failure)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                if self.is_live and self._observe is not None:
                    try:
                        self._shield(self._observe, args, kwargs, None, error, *begun)
                    except RecursionError as failure:
                        self._fail(failure)
                    except BaseException as failure:
                        self._handle(failure)
                raise
            if self.is_live and self._observe is not None:
                try:
                    self._shield(self._observe, args, kwargs, result, None, *begun)
                except RecursionError as failure:
                    self._fail(failure)
                except BaseException as failure:
                    self._handle(failure)
            return result

        return watch_call

    def install(self) -> None:
        _installed.append(self)
        function: Any = self._function
        if isinstance(self._original, (staticmethod, classmethod)):
            function = type(self._original)(function)
        elif isinstance(self._original, MethodType):
            function = MethodType(function, self._original.__self__)
        setattr(self.owner, self.name, function)
        self.is_live = True

    def remove(self) -> None:
        """Put the original back. Does nothing the second time, and goes on where it was interrupted."""
        self.is_live = False
        if _function_of(vars(self.owner).get(self.name)) is self._function:
            setattr(self.owner, self.name, skip_inert(self._original))
        with contextlib.suppress(ValueError):
            _installed.remove(self)
        # Who keeps the wrapper does not keep the recording.
        self._observe = self._shield = self._before = lambda *args: None

    def passes_on_to(self, function: Any) -> Any:
        """What `function` calls, if it is this patch's wrapper and without effect; else None."""
        return self._original if function is self._function and not self.is_live else None


def _function_of(value: Any) -> Any:
    """The function of a static or class method, also of one that a tool has read with `getattr` and put back bound."""
    return getattr(value, "__func__", value)


def skip_inert(function: Any) -> Any:
    """A function without those outer wrappers, of any copy of this package, that have no effect any more.

    A tool's wrapper can have our attribute too: `functools.wraps` copies it.
    """
    while (passes_on_to := getattr(_function_of(function), _PASSES_ON, None)) is not None:
        original = passes_on_to(_function_of(function))
        if original is None:
            break
        function = original
    return function


# Modules that torch imports late. To import them early would cost every watch seconds, and one of them cannot be
# imported early at all: `cudagraph_trees` keeps its state with the thread that imports it first.


class WhenImported(MetaPathFinder):
    """Calls `actions[name]()` right after module `name` was imported; while it is in `sys.meta_path`, once a module.

    `fail` and `handle` get what is raised there, as those of a `Patch` do.
    """

    def __init__(
        self,
        actions: dict[str, Callable[[], None]],
        fail: Callable[[BaseException], object],
        handle: Callable[[BaseException], None],
    ):
        self.actions = actions
        self._fail, self._handle = fail, handle
        #: `name`: the module whose own loader this thread searches now.
        self._searching = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        try:
            action = self.actions.get(name)
            if action is None or getattr(self._searching, "name", None) == name:
                return None
            try:
                self._searching.name = name
                spec = importlib.util.find_spec(name)
            finally:
                self._searching.name = None
            if spec is not None and spec.loader is not None:
                spec.loader = _NotifyingLoader(spec.loader, action, self._fail, self._handle)
            return spec
        except RecursionError as error:
            self._fail(error)
        except BaseException as error:
            self._handle(error)
        return None

    def install(self) -> None:
        _finders.append(self)
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Take it out. A tool that keeps copies of `sys.meta_path` can put it back; then it finds nothing."""
        self.actions = {}
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        with contextlib.suppress(ValueError):
            _finders.remove(self)


@dataclass(eq=False)
class _NotifyingLoader(Loader):
    """The module's own loader, which stays the module's loader, and a call when it is done."""

    _loader: Loader
    _action: Callable[[], None]
    _fail: Callable[[BaseException], object]
    _handle: Callable[[BaseException], None]

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._action()
        except RecursionError as error:
            self._fail(error)
        except BaseException as error:
            self._handle(error)


# All that is installed


def remove_all() -> None:
    """Remove every patch, the last first, and take every finder out."""
    patches, finders = [*reversed(_installed)], [finder for finder in _finders if finder in sys.meta_path]
    run_each([*(patch.remove for patch in patches), *(finder.remove for finder in finders)])


def list_installed() -> list[str]:
    """The functions that are patched now, as `module.name`; empty when no watch runs."""
    return [f"{getattr(p.owner, '__name__', p.owner)}.{p.name}" for p in _installed]


def list_waiting() -> list[str]:
    """The modules whose import is waited for now; empty when no watch runs."""
    return [f"import of {name}" for finder in _finders if finder in sys.meta_path for name in finder.actions]
