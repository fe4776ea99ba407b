"""The process of one run of a trial: it makes the changes of a job, records the program, and writes how it ended.

`fresh_process.py` writes the job, a JSON file, and reads the result, which is written beside it when the process ends.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import json
import os
import traceback
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..diagnosis.change import Settings
from ..diagnosis.source_edits import EditedSource
from ..errors import CompilediagError
from ..formatting import format_first_line, format_place
from ..notebook_cells import CellNames
from ..recording.active_recording import begin, end_all
from ..sources.hooks.torch_names import Unavailable
from ..system.files import write_file
from . import torch_api

_CACHES = "TORCHINDUCTOR_CACHE_DIR"
#: Settings that are lists of sources: the new names are added to what the user has set.
_JOINED = ("dynamic_sources", "unbacked_sources")

Files = dict[str, EditedSource]


class RunResult:
    """How the program ended, as the parent process reads it."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._caches = os.environ.get(_CACHES)
        self._values: dict[str, Any] = {}

    def note_problem(self, problem: str) -> None:
        """Keep why the program could not be started."""
        self._values["problem"] = problem

    def note_error(self, error: BaseException, cell: int | None = None) -> None:
        """Keep the exception that ended the program, and the number of the notebook cell that raised it."""
        self._values |= {"raised": _describe(error), "is_torchs": is_torchs(error), "cell": cell}

    def write(self) -> None:
        """Write it for the parent process."""
        self._values["has_own_caches"] = os.environ.get(_CACHES) == self._caches
        write_file(self._folder / "result.json", json.dumps(self._values))


def run_job(job_file: str, prepare: Callable[[dict[str, Any], Files], Callable[[RunResult], None]]) -> int:
    """Run a job; return 2 if it cannot be started.

    `prepare` finds the program of the job, of which some files are edited, and gives what runs it.
    """
    job = json.loads(Path(job_file).read_text())
    result = RunResult(Path(job["folder"]))
    files = {file: EditedSource(text, tuple(lines)) for file, (text, lines) in job["files"].items()}
    try:
        import_edited(files)
        run = prepare(job, files)
        apply_settings(job["settings"])
        if job["is_fast"]:
            use_eager_backend()
        begin(os.path.join(job["folder"], "run.cdiag"), job["detail"], [])
    except CompilediagError as error:
        result.note_problem(str(error))
        result.write()
        return error.exit_code
    atexit.register(_finish, result, os.getpid())
    run(result)
    return 0


def is_torchs(error: BaseException) -> bool:
    """True if torch defines the exception."""
    return type(error).__module__.partition(".")[0] == "torch"


def _describe(error: BaseException) -> str:
    """An exception in one line, with the last line of the program that raised it; its own text may fail."""
    text = format_first_line("".join(traceback.format_exception_only(error)))
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "compilediag" not in frame.filename]
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    if not own:
        return text
    place = CellNames().name(own[-1].filename) or own[-1].filename
    return f"{text} ({format_place(place, own[-1].lineno)})"


def _finish(result: RunResult, owner: int) -> None:
    """End the recording and write the result. Does nothing in a forked child."""
    if os.getpid() == owner:
        end_all()
        result.write()


# Changes of the program, made before it starts


def apply_settings(settings: Settings) -> None:
    """Assign settings, as the user's code would. CompilediagError if this torch lacks one."""
    for key, value in settings.items():
        try:
            owner = torch_api.find_config(key)
        except Unavailable as why:
            raise CompilediagError(f"this plan cannot be tried here: {why}") from None
        now = getattr(owner, key)
        setattr(owner, key, f"{now},{value}" if key in _JOINED and now else value)


def use_eager_backend() -> None:
    """Let every `torch.compile` with a backend of torch's own use the backend "eager". CompilediagError if it can't."""
    try:
        torch_api.replace_backends()
    except Unavailable as why:
        raise CompilediagError(f"--fast does not work here: {why}") from None


def import_edited(files: Mapping[str, EditedSource]) -> None:
    """Let imports of these files run the edited code, under the name of the file and with its line numbers."""
    loader: Any = importlib.machinery.SourceFileLoader
    get_code: Callable[[Any, str], types.CodeType | None] = loader.get_code

    def get_edited_code(self: importlib.machinery.SourceFileLoader, fullname: str) -> types.CodeType | None:
        file = self.get_filename(fullname)
        edited = find_edited(files, file)
        return get_code(self, fullname) if edited is None else edited.compile(file)

    if files:
        loader.get_code = get_edited_code


def find_edited(files: Mapping[str, EditedSource], file: str) -> EditedSource | None:
    """The edited text of a file; None if it is not edited."""
    return files.get(file) or files.get(os.path.realpath(file))
