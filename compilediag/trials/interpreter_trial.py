"""Runs a program with two interpreters in turn, such as those of two environments with other versions of torch, and
compares what they compiled.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..diagnosis.diff import CAUSES, Change, find_changes
from ..diagnosis.rules.cudagraphs import CAPTURES
from ..errors import CompilediagError
from ..events import CudaGraphAction
from ..formatting import format_line, format_names
from ..storage.data import SessionData
from .fresh_process import ProcessRunner, ProgramJob
from .measured_run import OutputComparison, RunSummary, compare_outputs, explain_end, measure

#: The folder of our package.
_PACKAGE = Path(__file__).parents[1]
#: What an interpreter is asked before it runs the program. Each part that fails is a line of its own.
_PROBE = """
import json, platform, sys
if sys.version_info < (3, 11):
    sys.exit(f"is Python {platform.python_version()}, and compilediag needs 3.11 or later")
try:
    import torch
    from torch.version import __version__ as version
except ImportError as error:
    sys.exit(f"can't import torch: {error}")
try:
    import compilediag.trials.trial_process
except ImportError as error:
    sys.exit(f"can't import compilediag: {error}")
print(json.dumps([platform.python_version(), str(version), compilediag.__path__[0]]))
"""
_PROBE_S = 600.0
#: Changes of times, which differ from run to run. The table has them.
TIMES = ("slower", "faster")


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that can run the program: its path as it was given, and as it is started, its version, and that of
    its torch.
    """

    path: str
    program: str
    python: str
    torch: str

    def __str__(self) -> str:
        return f"torch {self.torch} ({self.path})"


@dataclass(frozen=True)
class InterpreterTrial:
    """What `try_interpreters` found. `runs` are those of each interpreter, `captures` the CUDA graphs that each of them
    captured in its first run, and `changes` the causes that differ, what got worse first.

    `problem` says in one line how the ends of the runs differ or why they can't be compared; None if they can.
    """

    interpreters: tuple[Interpreter, Interpreter]
    runs: tuple[Sequence[RunSummary], Sequence[RunSummary]]
    captures: tuple[int, int]
    changes: Sequence[Change]
    output: OutputComparison
    problem: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def is_as_good(self) -> bool:
        """True if no cause is new or occurs more often with the second interpreter, and its results are the same."""
        is_worse = any(change.worse for change in self.changes)
        return self.problem is None and self.output.is_same is not False and not is_worse


def make_variables(folder: Path) -> dict[str, str]:
    """The variables with which any interpreter imports this compilediag, and nothing else of where it is installed: a
    folder that has only a link to it is searched first.
    """
    link = folder / "package"
    link.mkdir(mode=0o700)
    (link / _PACKAGE.name).symlink_to(_PACKAGE, target_is_directory=True)
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(link), os.environ.get("PYTHONPATH")]))}


def find_interpreter(path: str, variables: Mapping[str, str]) -> Interpreter:
    """Start an interpreter, which is named as for a shell, and ask for its versions. CompilediagError, in one line, if
    it can't run the program.
    """
    found = shutil.which(os.path.expanduser(path))
    if found is None:
        raise CompilediagError(f"{path} is not an interpreter that can be started; pass the path of a python")
    command = [found, "-c", _PROBE]
    environment = {**os.environ, **variables}
    try:
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_PROBE_S
        )
        lines = done.stdout.splitlines()
        versions = json.loads(lines[-1]) if done.returncode == 0 and lines else None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise CompilediagError(f"{path} can't be used: {format_line(error, 200)}") from None
    if versions is None:
        last = format_line(([*done.stderr.strip().splitlines()] or [f"it exited with {done.returncode}"])[-1], 300)
        raise CompilediagError(f"{path} can't be used: it {last.removeprefix('it ')}")
    python, version, package = versions
    if not os.path.samefile(package, _PACKAGE):
        raise CompilediagError(f"{path} can't be used: it imports another compilediag, {package}; run it elsewhere")
    return Interpreter(path, found, python, version)


def try_interpreters(
    runner: ProcessRunner,
    interpreters: tuple[Interpreter, Interpreter],
    job: ProgramJob,
    runs: int,
) -> InterpreterTrial:
    """Run `job` with both interpreters, `runs` times each, in turn. CompilediagError if it cannot be started."""
    sides: tuple[list[RunSummary], list[RunSummary]] = ([], [])
    for _ in range(runs):
        for interpreter, own in zip(interpreters, sides, strict=True):
            own.append(
                measure(
                    runner, replace(job, python=interpreter.program, requests=("guard_checks",)), f"with {interpreter}"
                )
            )
            if own[-1].run.exit_code is None:
                raise CompilediagError(f"with {interpreter}, {explain_end(own[-1].run)}")
    sessions = [SessionData(own[0].run.session) for own in sides]
    first, second = (sum(row.action in CAPTURES for row in data.rows(CudaGraphAction)) for data in sessions)
    problem = _compare_ends(interpreters, sides)
    files = [[one.run.stdout for one in own] for own in sides]
    names = "with the first interpreter", "with the second interpreter"
    same = OutputComparison(None) if problem else compare_outputs(files[0], files[1], names=names)
    return InterpreterTrial(
        interpreters,
        sides,
        (first, second),
        [one for one in find_changes(*sessions) if one.kind in CAUSES and one.change not in TIMES],
        same,
        problem,
        tuple(_list_chances(interpreters, sides)),
    )


def _compare_ends(interpreters: Sequence[Interpreter], sides: Sequence[Sequence[RunSummary]]) -> str | None:
    for interpreter, own in zip(interpreters, sides, strict=True):
        ends = [end for one in own if (end := explain_end(one.run)) is not None]
        if ends:
            return f"with {interpreter}, {ends[0]}"
    codes = [sorted({str(one.run.exit_code) for one in own}) for own in sides]
    return (
        None if codes[0] == codes[1] else f"the exit code was {format_names(codes[0])}, then {format_names(codes[1])}"
    )


def _list_chances(interpreters: Sequence[Interpreter], sides: Sequence[Sequence[RunSummary]]) -> list[str]:
    """Interpreters whose own runs differ in their recompiles, so a difference between the two may be chance."""
    counts = [sorted({one.recompiles for one in own}) for own in sides]
    return [
        f"the runs with {interpreter} differ: {format_names([str(number) for number in own])} recompiles"
        for interpreter, own in zip(interpreters, counts, strict=True)
        if len(own) > 1
    ]
