"""Patches of torch's functions, which can be removed whoever else patches the same function.

Every patch is listed before it is in its place and until it is out of it, so that one that an interrupt (Ctrl-C) left
behind is found and removed.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import Any

from . import own_errors

_installed: list[Patch] = []
#: id of a wrapper -> its patch, as long as somebody holds the wrapper.
_by_wrapper: weakref.WeakValueDictionary[int, Patch] = weakref.WeakValueDictionary()

Args = tuple[Any, ...]
Kwargs = dict[str, Any]
#: What a call raised; None if it did not.
Raised = BaseException | None
#: Called after a watched call: with its arguments, its result (None if it raised) and what it raised.
Observer = Callable[[Args, Kwargs, Any, Raised], None]
#: Called before a watched call, for what the call destroys.
Before = Callable[[Args, Kwargs], None]


class Patch:
    """`owner.name`, a function or method of torch, observed after each call, and before it if need be.

    The program's own call happens exactly once, and its result or exception passes through. `shield` runs the
    observer (see `Source.run_shielded`). After `remove` the original is back; where another tool has installed its
    own wrapper on top of ours, that one stays and ours only passes calls through. If that tool puts our wrapper back
    later, the next patch of the same place replaces it, so that no chain of wrappers grows.
    """

    def __init__(
        self, owner: Any, name: str, observe: Observer, shield: Callable[..., None], before: Before | None = None
    ):
        self.owner = owner
        self.name = name
        self.is_live = False
        self._observe, self._shield, self._before = observe, shield, before
        self._original = skip_inert(vars(owner)[name])
        #: staticmethod or classmethod: the wrapper has to be the same.
        self._binding = type(self._original) if isinstance(self._original, (staticmethod, classmethod)) else None
        self._wrapper = self._wrap(self._original.__func__ if self._binding else self._original)
        _by_wrapper[id(self._wrapper)] = self

    def _wrap(self, original: Callable[..., Any]) -> Any:
        # Near the limit of recursion the call of the shield itself raises.
        @functools.wraps(original)
        def watch_call(*args: Any, **kwargs: Any) -> Any:
            if self.is_live and self._before is not None:
                try:
                    self._shield(self._before, args, kwargs)
                except Exception as failure:
                    own_errors.report(self.name, failure)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                if self.is_live:
                    try:
                        self._shield(self._observe, args, kwargs, None, error)
                    except Exception as failure:
                        own_errors.report(self.name, failure)
                raise
            if self.is_live:
                try:
                    self._shield(self._observe, args, kwargs, result, None)
                except Exception as failure:
                    own_errors.report(self.name, failure)
            return result

        return self._binding(watch_call) if self._binding else watch_call

    def install(self) -> None:
        _installed.append(self)
        setattr(self.owner, self.name, self._wrapper)
        self.is_live = True

    def remove(self) -> None:
        """Put the original back. Does nothing the second time, and goes on where it was interrupted."""
        self.is_live = False
        if vars(self.owner).get(self.name) is self._wrapper:
            setattr(self.owner, self.name, skip_inert(self._original))
        with contextlib.suppress(ValueError):
            _installed.remove(self)
        # Who keeps the wrapper does not keep the recording.
        self._observe, self._shield, self._before = _ignore, _ignore, None

    def passes_on_to(self, function: Any) -> Any:
        """What `function` calls, if it is this patch's wrapper and without effect; else None."""
        return self._original if function is self._wrapper and not self.is_live else None


def _ignore(*args: Any) -> None:
    """What a wrapper calls that has no effect any more."""


def skip_inert(function: Any) -> Any:
    """A function without those outer wrappers of ours that have no effect any more."""
    while (patch := _by_wrapper.get(id(function))) is not None:
        original = patch.passes_on_to(function)
        if original is None:
            break
        function = original
    return function


def remove_all() -> None:
    """Remove every patch, the last first."""
    for patch in reversed(_installed[:]):
        patch.remove()


def list_installed() -> list[str]:
    """The functions that are patched now, as `module.name`; empty when no watch runs."""
    return [f"{getattr(p.owner, '__name__', p.owner)}.{p.name}" for p in _installed]
