"""Hooks for modules that torch imports late: installed when torch imports them, in the thread that does.

To import them early would cost every watch seconds, and one of them cannot be imported early at all:
`cudagraph_trees` keeps its state with the thread that imports it first.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from ...system.own_errors import run_each

#: As all state of a module, it outlives `importlib.reload`.
_installed: list[WhenImported] = globals().get("_installed", [])


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
        _installed.append(self)
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Take it out. A tool that keeps copies of `sys.meta_path` can put it back; then it finds nothing."""
        self.actions = {}
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        with contextlib.suppress(ValueError):
            _installed.remove(self)


def list_waiting() -> list[str]:
    """The modules whose import is waited for now; empty when no watch runs."""
    return [f"import of {name}" for finder in _installed_finders() for name in finder.actions]


def remove_all() -> None:
    """Take every finder out."""
    run_each(finder.remove for finder in _installed_finders())


def _installed_finders() -> list[WhenImported]:
    return [finder for finder in _installed if finder in sys.meta_path]


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
