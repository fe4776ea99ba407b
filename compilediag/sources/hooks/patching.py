"""Patches that can be taken out again, whoever else patches the same place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_installed: list[Patch] = []

#: What a patch tells of a call: its arguments, its result (None if it raised) and what it raised (None if not).
Args = tuple[Any, ...]
Kwargs = dict[str, Any]
Raised = BaseException | None
Observer = Callable[[Args, Kwargs, Any, Raised], None]
#: What a patch tells before a call, for what is gone after it.
Before = Callable[[Args, Kwargs], None]


class Patch:
    """`owner.name`, a function or method of torch's, observed after each call, and before it if need be.

    The host's call happens exactly once, and its result or exception passes through. `shield` runs the
    observer (see `Source.guarded`). After `take_out` the original is back; where another tool has put its
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
        #: staticmethod or classmethod, if it is one: what the wrapper has to be as well.
        self._binding = type(self._original) if isinstance(self._original, (staticmethod, classmethod)) else None
        self._wrapper = self._wrap(self._original.__func__ if self._binding else self._original, observe, shield)

    def _wrap(self, original: Callable[..., Any], observe: Observer, shield: Callable[..., None]) -> Any:
        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
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

        return self._binding(watched) if self._binding else watched

    def put_in(self) -> None:
        setattr(self.owner, self.name, self._wrapper)
        self._live = True
        _installed.append(self)

    def take_out(self) -> None:
        self._live = False
        if self not in _installed:
            return
        _installed.remove(self)
        if vars(self.owner).get(self.name) is self._wrapper:
            setattr(self.owner, self.name, self._original)


def installed() -> list[str]:
    """The places that are patched now, as `module.name`; empty when no watch runs."""
    return [f"{getattr(p.owner, '__name__', p.owner)}.{p.name}" for p in _installed]
