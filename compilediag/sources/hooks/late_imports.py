"""Hooks for modules that torch imports late: put in when torch imports them, in the thread in which it does.

Importing them ourselves would cost every watch seconds, and one of them can't be imported early at all:
`cudagraph_trees` keeps its state with the thread that imports it first.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class WhenImported(MetaPathFinder):
    """Calls `then[name]()` right after module `name` was imported; while it is in `sys.meta_path`, once a module."""

    def __init__(self, then: dict[str, Callable[[], None]]):
        self.names = tuple(then)
        self._then = then
        self._looking = threading.local()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self._then or getattr(self._looking, "name", None) == name:
            return None
        self._looking.name = name
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._looking.name = None
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._then[name])
        return spec

    def put_in(self) -> None:
        sys.meta_path.insert(0, self)

    def take_out(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def waiting() -> list[str]:
    """The modules that are waited for now; empty when no watch runs."""
    return [
        f"import of {name}" for finder in sys.meta_path if isinstance(finder, WhenImported) for name in finder.names
    ]


class _Loader(Loader):
    """The module's own loader, which the module is left with, and a call when it is done."""

    def __init__(self, loader: Any, then: Callable[[], None]):
        self._loader = loader
        self._then = then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()
