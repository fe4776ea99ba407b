"""Runs at the start of each Python process that a recorded program starts: this folder is in its PYTHONPATH.

It does what the program's own module of this name does, and waits for the import of torch: a process without it pays
nothing. See `compilediag.system.program`.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_FOLDER = os.path.dirname(os.path.abspath(__file__))
#: Parts of the command lines of processes that torch itself starts.
_TORCHS = ("torch._inductor", os.path.join("torch", "_inductor", ""))


class _Torch:
    """Finds torch as `TorchImports` does, which is imported for it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch" or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        try:
            from compilediag.recording.active_recording import TorchImports
        except ImportError:  # The interpreter of another environment.
            return None
        imports = TorchImports()
        sys.meta_path.insert(0, imports)
        return imports.find_spec(name)


def _run_programs_own() -> None:
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != _FOLDER]
    spec = importlib.machinery.PathFinder.find_spec(__name__, sys.path)
    if spec is None or spec.loader is None:
        return
    module = sys.modules[__name__] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if "COMPILEDIAG_PARENT" in os.environ and not any(part in text for text in sys.orig_argv for part in _TORCHS):
    sys.meta_path.insert(0, _Torch())
_run_programs_own()
