"""A Python program as `python SCRIPT` and `python -m MODULE` run it, to be run in this process as `__main__`."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any

from compilediag.errors import CompilediagError
from compilediag.logs.inputs import InputKind, check_input

_HERE = os.path.dirname(__file__)


@dataclass(frozen=True)
class PythonProgram:
    """A program to run. `folder` becomes `sys.path[0]`, and `argv0` the first of its arguments."""

    folder: str
    code: Callable[[], types.CodeType]
    attributes: dict[str, Any]
    argv0: str

    def set_arguments(self, args: list[str]) -> None:
        """Make the program's arguments those of this process."""
        sys.argv[:] = [self.argv0, *args]

    def run(self) -> None:
        """Run it as `__main__`, which stays: pickles, threads and spawned workers look it up later."""
        _set_first_path(self.folder)
        module = types.ModuleType("__main__")
        module.__dict__.update({"__builtins__": builtins, "__cached__": None, **self.attributes})
        sys.modules["__main__"] = module
        exec(self.code(), module.__dict__)

    def load_into(self, names: dict[str, Any]) -> None:
        """Run it as a spawned process imports it: `names` has the name `__mp_main__`."""
        names.update({"__cached__": None, **self.attributes})
        exec(self.code(), names)


def execute(program: PythonProgram, on_error: Callable[[BaseException], None]) -> None:
    """Run a program to its end or to its own exception, whose traceback is shown without our frames.

    `on_error` gets the exception first. SystemExit passes, and takes the place of every other exception.
    """
    try:
        program.run()
    except SystemExit:
        raise
    except BaseException as error:
        from compilediag.watch import notice

        notice(error)
        on_error(error)
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_HERE):
            frames = frames.tb_next
        sys.excepthook(type(error), error.with_traceback(frames), frames)
        raise SystemExit(1) from None


def find_script(script: str) -> PythonProgram:
    """Return the program in a file. CompilediagError, in one line, if it can't be read or is no program."""
    check_input(script, InputKind.SCRIPT, InputKind.TEXT, InputKind.EMPTY, InputKind.STREAM)
    file = os.path.abspath(script)
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        raise CompilediagError(f"can't run {script}: {error.strerror}") from None
    attributes = {"__file__": file, "__loader__": SourceFileLoader("__main__", file), "__package__": None}
    folder = os.path.dirname(os.path.realpath(file))
    return PythonProgram(folder, lambda: compile(source, file, "exec", dont_inherit=True), attributes, argv0=script)


def find_module(name: str) -> PythonProgram:
    """Return the program in a module, or in the `__main__` of a package. CompilediagError if there is none."""
    _set_first_path(os.getcwd())
    spec = _find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _find_spec(f"{name}.__main__")
    get_code = getattr(spec and spec.loader, "get_code", None)
    code = get_code(spec.name) if spec is not None and get_code is not None else None
    if spec is None or code is None:
        raise CompilediagError(f"can't run {name}: no such module")
    attributes = {"__file__": spec.origin, "__loader__": spec.loader, "__package__": spec.parent, "__spec__": spec}
    return PythonProgram(os.getcwd(), lambda: code, attributes, argv0=spec.origin or name)


def _find_spec(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            return None
        raise


def _set_first_path(folder: str) -> None:
    """Replace `sys.path[0]`, which is the folder of this command, by the program's."""
    if not sys.flags.safe_path:
        sys.path[0] = folder
