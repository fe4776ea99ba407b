"""Lets the Python processes that a program starts record to the session of `compilediag run`: those of
`multiprocessing`, of pools, of launchers, and commands.

A forked process goes on recording by itself. Any other one finds in its environment where its parent records, and a
module `sitecustomize` that makes it record there as well, see `recording/joining.py`. The process of `compilediag run`
is the program's, so its environment stays changed until it ends.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

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
