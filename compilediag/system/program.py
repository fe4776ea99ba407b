"""The program that runs: its script or module, arguments and folder, and where the libraries are."""

from __future__ import annotations

import builtins
import os
import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .files import find_working_folder
from .interrupts import ignore

#: The key of a session's meta.
META_KEY = "program"


@dataclass(frozen=True)
class RunningProgram:
    """A Python program: `python script arguments` or `python -m module arguments`, in `folder`."""

    script: str | None
    module: str | None
    arguments: tuple[str, ...]
    folder: str

    @property
    def command(self) -> str:
        """The command line after `python`, for people."""
        name = f"-m {self.module}" if self.module else os.path.basename(self.script or "")
        return " ".join([name, *self.arguments])


_announced: RunningProgram | None = None


def announce_program(script: str | None, module: str | None, arguments: Sequence[str]) -> None:
    """Name the program that this process is about to run; otherwise `__main__` names it."""
    global _announced
    path = _find_path(script) if script is not None and module is None else None
    _announced = RunningProgram(path, module, tuple(arguments), find_working_folder() or "")


def program_name() -> str:
    """The name of the notebook (as its server tells the kernel), script or package that runs; "" if there is none."""
    path = Path(os.environ.get("JPY_SESSION_NAME") or sys.argv[0])
    name = path.parent.name if path.name == "__main__.py" else path.name
    return " ".join(name.split())


def describe_program() -> dict[str, Any] | None:
    """The program of this process as plain values; None in a notebook or at a prompt."""
    found = _announced or _find_main()
    return None if found is None else {**asdict(found), "arguments": [*found.arguments]}


def _find_main() -> RunningProgram | None:
    main = sys.modules.get("__main__")
    file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
    if file is None or hasattr(builtins, "__IPYTHON__"):
        return None
    module = spec.name.removesuffix(".__main__") if spec is not None and spec.name else None
    script = None if module else _find_path(file)
    return RunningProgram(script, module, tuple(sys.argv[1:]), find_working_folder() or "")


def _find_path(script: str) -> str:
    """The absolute path of a script, as far as it is known: the program can have deleted its working directory."""
    return script if find_working_folder() is None else os.path.abspath(script)


def describe_command(meta: Mapping[str, Any]) -> str | None:
    """What ran, for people: `python train.py --epochs 3`; None if it was not recorded."""
    found = read_program(meta)
    if found is not None:
        return f"python {found.command}"
    # Sessions of older versions, logs and merged folders do not have the key.
    return "cells of a notebook, or lines at a prompt" if META_KEY in meta else None


def read_program(meta: Mapping[str, Any]) -> RunningProgram | None:
    """The program of a session; None if it is not known."""
    found = meta.get(META_KEY)
    if not isinstance(found, dict):
        return None
    script, module, folder = (found.get(name) or "" for name in ("script", "module", "folder"))
    arguments = found.get("arguments") or []
    are_texts = all(isinstance(text, str) for text in (script, module, folder)) and isinstance(arguments, list)
    if not are_texts or not (script or module):
        return None
    return RunningProgram(script or None, module or None, tuple(map(str, arguments)), folder)


def list_library_folders() -> list[str]:
    """Where this process has the standard library and installed packages."""
    paths = sysconfig.get_paths()
    folders = {paths.get(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    with ignore(Exception):  # Not every site module has these, and a restricted user has no home.
        folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return sorted(filter(None, folders))
