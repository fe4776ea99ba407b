"""One run of `compilediag try` or `fix`, in a process of its own: `python -m compilediag.cli.try_process JOB`.

The process records a program that otherwise runs as with `python SCRIPT`. Processes that the program spawns import this
file in place of the program's main module.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

from compilediag.cli.python_program import PythonProgram, execute, find_module, find_script
from compilediag.trials.trial_process import Files, RunResult, find_edited, join_run, run_process


def _find_program(job: dict[str, Any], files: Files) -> PythonProgram:
    """The script or the module, with its edits."""
    program = find_module(job["script"]) if job["is_module"] else find_script(job["script"])
    file = program.attributes["__file__"]
    edited = None if job["is_module"] else find_edited(files, file)
    return program if edited is None else dataclasses.replace(program, code=lambda: edited.compile(file))


def _prepare(job: dict[str, Any], files: Files) -> Callable[[RunResult], None]:
    program = _find_program(job, files)
    program.set_arguments(job["args"])
    return lambda result: execute(program, result.note_error)


def _prepare_spawned(job: dict[str, Any], files: Files) -> Callable[[RunResult], None]:
    """The program's main module as multiprocessing imports it: its names are those of this file."""
    program = _find_program(job, files)
    return lambda result: program.load_into(globals())


if __name__ == "__main__":
    sys.exit(run_process(sys.argv[1:], _prepare, __file__))
elif __name__ == "__mp_main__":
    join_run(_prepare_spawned)
