"""A process that a recorded program has started records to its parent's session, as soon as it may compile."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from multiprocessing import util
from pathlib import Path
from types import ModuleType

from ..sources.hooks.late_imports import WhenImported
from ..system.child_processes import find_parent
from ..system.interrupts import pass_on
from ..system.own_errors import log_warning
from .active_recording import begin, end_all, is_recorded_by_another

#: multiprocessing calls its finalizers of a higher priority first, and those of its own queues and pools have 10 to 15.
_AFTER_POOLS = 5


class TorchImports(MetaPathFinder):
    """Waits until `torch._dynamo` is imported and whatever of torch imports it is complete; then the process records.

    A process that compiles nothing does not import it, and is not made to.
    """

    #: The module of torch that is imported now, and itself imports the others.
    _outermost: str | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_inside = self._outermost in sys.modules  # One whose import fails leaves them.
        if name.partition(".")[0] != "torch" or is_inside:
            return None
        spec = WhenImported({name: self._leave}, _note, _note).find_spec(name)
        self._outermost = None if spec is None else name
        return spec

    def _leave(self) -> None:
        self._outermost = None
        if "torch._dynamo" not in sys.modules or self not in sys.meta_path:
            return
        sys.meta_path.remove(self)
        parent = find_parent()
        # A file to which nobody records any more is complete: it would be replaced.
        if parent is not None and (os.path.isdir(parent[0]) or is_recorded_by_another(Path(parent[0]))):
            begin(*parent)
            # A process of a fork server ends without the functions of `atexit`.
            util.Finalize(None, end_all, exitpriority=_AFTER_POOLS)


def _note(error: BaseException) -> None:
    pass_on(error)
    log_warning("compilediag: process %d is not recorded: %s", os.getpid(), error)
