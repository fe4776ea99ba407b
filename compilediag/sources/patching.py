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


class Patch:
    """`owner.name`, a function or method of torch's, observed after each call.

    The host's call happens exactly once, and its result or exception passes through. `shield` runs the
    observer (see `Source.guarded`). After `take_out` the original is back; where another tool has put its
    own wrapper on top of ours, that one stays and ours only passes calls through.
    """

    def __init__(self, owner: Any, name: str, observe: Observer, shield: Callable[..., None]):
        self.owner = owner
        self.name = name
        self._original = vars(owner)[name]
        self._static = isinstance(self._original, staticmethod)
        self._live = False
        self._wrapper = self._wrap(self._original.__func__ if self._static else self._original, observe, shield)

    def _wrap(self, original: Callable[..., Any], observe: Observer, shield: Callable[..., None]) -> Any:
        @functools.wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            try:
                result = original(*args, **kwargs)
            except BaseException as error:
                if self._live:
                    shield(observe, args, kwargs, None, error)
                raise
            if self._live:
                shield(observe, args, kwargs, result, None)
            return result

        return staticmethod(watched) if self._static else watched

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
