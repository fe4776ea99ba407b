"""Patches of torch's functions, which can be removed whoever else patches the same function.

Every patch is listed before it is in its place and until it is out of it, so that one that an interrupt (Ctrl-C) left
behind is found and removed.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

from ...system import own_errors

#: As all state of a module, it outlives `importlib.reload`.
_installed: list[Patch] = globals().get("_installed", [])
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


def remove_all() -> None:
    """Remove every patch, the last first."""
    own_errors.run_each(patch.remove for patch in reversed(_installed[:]))


def list_installed() -> list[str]:
    """The functions that are patched now, as `module.name`; empty when no watch runs."""
    return [f"{getattr(p.owner, '__name__', p.owner)}.{p.name}" for p in _installed]
