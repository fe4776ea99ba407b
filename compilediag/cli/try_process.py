"""One run of `compilediag try`, in a process of its own: `python -m compilediag.cli.try_process JOB`.

The process records a program that otherwise runs as with `python SCRIPT`. The job is a JSON file that
`trials/fresh_process.py` writes; the result is written beside it when the process ends.
"""

from __future__ import annotations

import atexit
import dataclasses
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from compilediag.diagnosis.source_edits import EditedSource
from compilediag.errors import CompilediagError
from compilediag.files import write_file
from compilediag.formatting import format_first_line, format_place

from .python_program import PythonProgram, execute, find_module, find_script

_CACHES = "TORCHINDUCTOR_CACHE_DIR"


class _Result:
    """What the parent is sent when the process ends."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._caches = os.environ.get(_CACHES)
        self.values: dict[str, Any] = {}

    def note_error(self, error: BaseException) -> None:
        """Keep the exception that ended the program."""
        self.values["raised"] = _describe(error)
        self.values["is_torchs"] = type(error).__module__.partition(".")[0] == "torch"

    def write(self) -> None:
        self.values["has_own_caches"] = os.environ.get(_CACHES) == self._caches
        write_file(self._folder / "result.json", json.dumps(self.values))


def main(job_file: str) -> int:
    """Run a job; return 2 if it cannot be started."""
    job = json.loads(Path(job_file).read_text())
    result = _Result(Path(job["folder"]))
    files = {file: EditedSource(text, tuple(lines)) for file, (text, lines) in job["files"].items()}
    try:
        program = _prepare(job, files)
    except CompilediagError as error:
        result.values["problem"] = str(error)
        result.write()
        return error.exit_code
    atexit.register(_finish, result, os.getpid())
    execute(program, result.note_error)
    return 0


def _prepare(job: dict[str, Any], files: dict[str, EditedSource]) -> PythonProgram:
    """Make the changes, start the recording, and find the program."""
    from compilediag.trials import program_changes
    from compilediag.watch import start

    program_changes.import_edited(files)
    program = find_module(job["script"]) if job["is_module"] else find_script(job["script"])
    edited = None if job["is_module"] else program_changes.find_edited(files, program.attributes["__file__"])
    if edited is not None:
        file = program.attributes["__file__"]
        program = dataclasses.replace(program, code=lambda: edited.compile(file))
    program_changes.apply_settings(job["settings"])
    if job["is_fast"]:
        program_changes.use_eager_backend()
    program.set_arguments(job["args"])
    start(os.path.join(job["folder"], "run.cdiag"), job["detail"])
    return program


def _describe(error: BaseException) -> str:
    """An exception in one line, with the last line of the program that raised it; its own text may fail."""
    text = format_first_line("".join(traceback.format_exception_only(error)))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "compilediag" not in frame.filename]
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f"{text} ({format_place(own[-1].filename, own[-1].lineno)})" if own else text


def _finish(result: _Result, owner: int) -> None:
    """End the recording and write the result. Does nothing in a forked child."""
    if os.getpid() == owner:
        from compilediag.watch import stop_all

        stop_all()
        result.write()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
