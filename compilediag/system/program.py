"""The program that runs: its script or module, arguments and folder, its process, and where the libraries are.

A session's meta has the program, and what distinguishes its process from a later one that got the same pid: the host,
the id of the boot and the time at which the process started, in clock ticks since the boot. Pids are reused, within a
boot and after the next one; the four values together are not.
"""

from __future__ import annotations

import builtins
import functools
import json
import os
import platform
import site
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .files import find_working_folder
from .interrupts import ignore, pass_on

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
    found = _announced
    if found is None:
        main = sys.modules.get("__main__")
        file, spec = getattr(main, "__file__", None), getattr(main, "__spec__", None)
        if file is None or hasattr(builtins, "__IPYTHON__"):
            return None
        module = spec.name.removesuffix(".__main__") if spec is not None and spec.name else None
        script = None if module else _find_path(file)
        found = RunningProgram(script, module, tuple(sys.argv[1:]), find_working_folder() or "")
    return {**asdict(found), "arguments": [*found.arguments]}


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


def describe_try(meta: Mapping[str, Any]) -> str:
    """The command that tries the plan of a session: `compilediag try train.py --epochs 3`."""
    found = read_program(meta)
    return "%compilewatch try" if found is None else f"compilediag try {found.command}"


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


# The process

#: The keys of a session's meta, beside "pid".
HOST, BOOT, STARTED = "host", "boot_id", "process_start"


def identify_process() -> dict[str, Any]:
    """What identifies this process in a session's meta."""
    return {"pid": os.getpid(), HOST: platform.node(), BOOT: _read_boot_id(), STARTED: _read_start(os.getpid())}


def is_this_process(meta: Mapping[str, Any]) -> bool:
    """True if the session was begun by this process."""
    return meta.get("pid") == os.getpid() and _is_same_run(meta)


def is_recorded_elsewhere(meta: Mapping[str, Any]) -> bool:
    """True while another living process of this machine records the session: not one that has its pid by now."""
    is_open = bool(meta) and meta.get("stopped_ns") is None and meta.get("pid") != os.getpid()
    return is_open and is_alive(meta.get("pid")) and _is_same_run(meta)


def is_of_this_machine(meta: Mapping[str, Any]) -> bool:
    """True if the session was recorded on this machine; files of older versions do not name another one."""
    return meta.get(HOST) in (None, platform.node())


def is_alive(pid: object) -> bool:
    """True for a process of this machine that runs; one that has ended and waits for its parent does not."""
    try:
        os.kill(int(str(pid)), 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError) as error:
        pass_on(error)
        return False
    state = _read_stat(pid)
    return not state or state[0] != "Z"


def _is_same_run(meta: Mapping[str, Any]) -> bool:
    """True if the process that has the pid now is the one of the meta. Files of older versions have its pid alone."""
    if not is_of_this_machine(meta):
        return False
    boot = _read_boot_id()
    if None not in (meta.get(BOOT), boot) and meta[BOOT] != boot:
        return False
    start = _read_start(meta.get("pid"))
    # No start is known where there is no such file system.
    return None in (meta.get(STARTED), start) or meta[STARTED] == start


def _read_start(pid: object) -> int | None:
    """When a process started, in clock ticks since the boot; None if that is not known."""
    values = _read_stat(pid)
    return int(values[19]) if len(values) > 19 and values[19].isdecimal() else None


def _read_stat(pid: object) -> list[str]:
    """The values of /proc/PID/stat behind the name, which is in parentheses and may contain parentheses; [] without
    such a file.
    """
    try:
        return Path(f"/proc/{int(str(pid))}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (OSError, ValueError) as error:
        pass_on(error)
        return []


@functools.cache
def _read_boot_id() -> str | None:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError as error:
        pass_on(error)
        return None


# The Python processes that it starts: those of `multiprocessing`, of pools, of launchers, and commands.
#
# `compilediag run` lets them record to its session. A forked process goes on recording by itself. Any other one finds
# in its environment where its parent records, and a module `sitecustomize` that makes it record there as well, see
# `TorchImports` in `recording/active_recording.py`. The process of `compilediag run` is the program's, so its
# environment stays changed until it ends.

#: Where to record to, and how: the first four arguments of `active_recording.begin`, as JSON.
_PARENT = "COMPILEDIAG_PARENT"
_STARTUP = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "recording", "startup")


def record_children(path: str, meta: Mapping[str, Any]) -> None:
    """Let all processes that this one starts from now on record to `path`: the session of this process, or the folder
    that it is in. `meta` is that of the session.
    """
    os.environ[_PARENT] = json.dumps([path, meta["detail"], meta["asked_for"], meta["my_code"]])
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_STARTUP, os.environ.get("PYTHONPATH"))))


def find_parent() -> tuple[str, str, list[str], list[str]] | None:
    """Where the parent of this process records: the path, the detail, what else was asked for, and `my_code`."""
    given = os.environ.get(_PARENT)
    if given is None:
        return None
    path, detail, asked_for, my_code = json.loads(given)
    return path, detail, asked_for, my_code


def ignore_parent() -> None:
    """In a command of ours that the program starts: neither it nor what it starts is a part of the program."""
    os.environ.pop(_PARENT, None)
