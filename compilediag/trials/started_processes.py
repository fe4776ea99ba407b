"""Notes whether a program starts Python processes: a trial neither changes nor records those that are not forked."""

from __future__ import annotations

import multiprocessing.process
import os
import subprocess
import sys
from typing import Any


class StartedProcesses:
    """Watches `multiprocessing` and `subprocess`, for the rest of the process. `has_any`: one was started."""

    def __init__(self) -> None:
        self.has_any = False

    def watch(self) -> None:
        """Begin."""
        process: Any = multiprocessing.process.BaseProcess
        command: Any = subprocess.Popen
        start, begin = process.start, command.__init__

        def note_start(process: Any) -> None:
            self.has_any = True
            start(process)

        def note_command(command: Any, args: Any, *rest: Any, **more: Any) -> None:
            self.has_any |= _is_python(args)
            begin(command, args, *rest, **more)

        process.start, command.__init__ = note_start, note_command


def _is_python(args: Any) -> bool:
    """True for the command of an interpreter, or of a script such as torchrun that is installed beside it."""
    words = args.split() if isinstance(args, str) else [*args] if isinstance(args, (list, tuple)) else [args]
    program = os.fsdecode(words[0]) if words and isinstance(words[0], (str, bytes, os.PathLike)) else ""
    name = os.path.basename(program)
    return name.startswith("python") or (
        name != "" and os.path.exists(os.path.join(os.path.dirname(sys.executable), name))
    )
