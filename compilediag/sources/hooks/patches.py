"""Patches of torch's functions, which can be removed whoever else patches the same function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_installed: list[Patch] = []

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
    own wrapper on top of ours, that one stays and ours only passes calls through.
    """

    def __init__(
        self, owner: Any, name: str, observe: Observer, shield: Callable[..., None], before: Before | None = None
    ):
        self.owner = owner
        self.name = name
        self._before = before
        self._original = vars(owner)[name]
        self._live = False
        #: staticmethod or classmethod: the wrapper has to be the same.
        self._binding = type(self._original) if isinstance(self._original, (staticmethod, classmethod)) else None
        self._wrapper = self._wrap(self._original.__func__ if self._binding else self._original, observe, shield)

    def _wrap(self, original: Callable[..., Any], observe: Observer, shield: Callable[..., None]) -> Any:
        @functools.wraps(original)
        def watch_call(*args: Any, **kwargs: Any) -> Any:
            if self._before is not None and self._live:
                shield(self._before, args, kwargs)
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                if self._live:
                    shield(observe, args, kwargs, None, error)
                raise
            if self._live:
                shield(observe, args, kwargs, result, None)
            return result

        return self._binding(watch_call) if self._binding else watch_call

    def install(self) -> None:
        setattr(self.owner, self.name, self._wrapper)
        self._live = True
        _installed.append(self)

    def remove(self) -> None:
        self._live = False
        if self not in _installed:
            return
        _installed.remove(self)
        if vars(self.owner).get(self.name) is self._wrapper:
            setattr(self.owner, self.name, self._original)


def list_installed() -> list[str]:
    """The functions that are patched now, as `module.name`; empty when no watch runs."""
    return [f"{getattr(p.owner, '__name__', p.owner)}.{p.name}" for p in _installed]
