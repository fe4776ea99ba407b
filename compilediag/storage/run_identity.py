"""Which process records a session: its pid, and what distinguishes it from a later process that got the same pid.

A session's meta has the host, the id of the boot and the time at which the process started, in clock ticks since the
boot. Pids are reused, within a boot and after the next one; the four values together are not.
"""

from __future__ import annotations

import functools
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..system.interrupts import pass_on

#: The keys of a session's meta, beside "pid".
HOST, BOOT, STARTED = "host", "boot_id", "process_start"


def identify_process() -> dict[str, Any]:
    """What identifies this process in a session's meta."""
    return {"pid": os.getpid(), HOST: platform.node(), BOOT: _read_boot_id(), STARTED: _read_start(os.getpid())}


def is_this_process(meta: Mapping[str, Any]) -> bool:
    """True if the session was begun by this process."""
    return meta.get("pid") == os.getpid() and _is_same_run(meta)


def is_recorded_elsewhere(meta: Mapping[str, Any]) -> bool:
    """True while another living process of this machine records the session."""
    is_open = bool(meta) and meta.get("stopped_ns") is None and meta.get("pid") != os.getpid()
    return is_open and is_running(meta)


def is_of_this_machine(meta: Mapping[str, Any]) -> bool:
    """True if the session was recorded on this machine; files of older versions do not name another one."""
    return meta.get(HOST) in (None, platform.node())


def is_running(meta: Mapping[str, Any]) -> bool:
    """True while the process that began the session runs on this machine: not another one that has its pid now."""
    return is_alive(meta.get("pid")) and _is_same_run(meta)


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
