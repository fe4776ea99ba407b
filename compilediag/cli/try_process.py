"""One run of `compilediag try` or `fix`, in a process of its own: `python -m compilediag.cli.try_process JOB`.

The process records a program that otherwise runs as with `python SCRIPT`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from compilediag.trials.trial_process import Files, RunResult, find_edited, run_process

from .python_program import execute, find_module, find_script


def _prepare(job: dict[str, Any], files: Files) -> Callable[[RunResult], None]:
    """Find the script or the module, with its edits."""
    program = find_module(job["script"]) if job["is_module"] else find_script(job["script"])
    edited = None if job["is_module"] else find_edited(files, program.attributes["__file__"])
    if edited is not None:
        file = program.attributes["__file__"]
        program = dataclasses.replace(program, code=lambda: edited.compile(file))
    program.set_arguments(job["args"])
    return lambda result: execute(program, result.note_error)


if __name__ == "__main__":
    sys.exit(run_process(sys.argv[1:], _prepare))
