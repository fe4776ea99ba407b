"""One run of `%compilewatch try` or `fix`, in a process of its own: `python -m compilediag.frontends.cell_process JOB`.

The process records the executed cells of a notebook, in an IPython without a kernel. A cell keeps its number, so that
recorded places are those of the notebook.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import getpass
import io
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from ..session import Session
from ..trials.trial_process import Files, RunResult, is_torchs, run_process
from ..watch import current, notice
from .cell_source import hide_magic, is_statement, name_cell

#: Cell magics that run shell commands.
_SHELLS = ("bash", "script", "sh")


class _CellFormatter(DisplayFormatter):
    """Displays nothing of a recording: each run has other times, and the plan changes what is recorded."""

    def format(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        return ({}, {}) if _is_of_recording(obj) else super().format(obj, *args, **kwargs)


class _CellShell(InteractiveShell):
    """An IPython that runs no shell commands: what they did to files has been done. `x = !command` still runs."""

    def system(self, cmd: str) -> None: ...

    def init_display_formatter(self) -> None:
        self.display_formatter = _CellFormatter(parent=self)
        self.configurables.append(self.display_formatter)


class _EditedCells(ast.NodeTransformer):
    """Gives IPython the edited code of a cell instead of the code that it has parsed."""

    def __init__(self, shell: InteractiveShell, files: Files):
        super().__init__()
        self._shell = shell
        self._files = files
        #: The number of the cell that runs; None when it has been parsed.
        self.number: int | None = None

    def visit(self, node: ast.AST) -> Any:
        edited = None if self.number is None else self._files.get(name_cell(self.number))
        self.number = None  # What the cell runs with `run_cell` is none of the notebook's cells.
        return node if edited is None else edited.parse("<cell>", self._shell.compile.flags)


def _prepare(job: dict[str, Any], files: Files) -> Callable[[RunResult], None]:
    """Make an IPython in which our magics do nothing."""
    if not sys.flags.safe_path:
        sys.path[0] = ""
    settings = Config()
    settings.HistoryManager.enabled = False
    settings.HistoryManager.hist_file = ":memory:"
    settings.InteractiveShell.colors = "NoColor"
    settings.InteractiveShell.ipython_dir = os.path.join(job["folder"], "ipython")
    shell = _CellShell.instance(config=settings)
    shell.input_transformers_cleanup.append(hide_magic)
    magics: dict[str, dict[str, Callable[..., Any]]] = shell.magics_manager.magics
    magics["line"]["compilewatch"] = functools.partial(_run_magic, shell)
    magics["cell"].update(dict.fromkeys(_SHELLS, lambda *_: None))
    assert shell.extension_manager is not None
    shell.extension_manager.loaded.add("compilediag")
    builtins.input = getpass.getpass = _refuse_input
    edited = _EditedCells(shell, files)
    shell.ast_transformers.append(edited)
    return functools.partial(_run_cells, shell, edited, job["cells"])


def _run_magic(shell: InteractiveShell, line: str) -> Session | None:
    """The recording runs already, and has to run to the end of the process."""
    is_on = line.partition(" ")[0] in ("", "on")
    return current() if is_on and not is_statement(shell) else None


def _refuse_input(*_: object, **__: object) -> NoReturn:
    raise EOFError("nobody can answer input()")


def _run_cells(shell: InteractiveShell, edited: _EditedCells, cells: list[dict[str, Any]], result: RunResult) -> None:
    """Run the cells as the notebook did, up to the first one that raises and did not raise there."""
    history = shell.history_manager
    assert history is not None
    for cell in cells:
        for inputs in (history.input_hist_parsed, history.input_hist_raw):
            inputs.extend([""] * (cell["number"] - len(inputs)))
        shell.execution_count = edited.number = cell["number"]
        with (
            contextlib.redirect_stdout(io.StringIO())
            if _uses_recording(shell, cell["source"])
            else contextlib.nullcontext()
        ):
            done = shell.run_cell(cell["text"], store_history=True)
        error = done.error_before_exec or done.error_in_exec
        if error is None:
            continue
        notice(error)
        if not cell["may_raise"] or is_torchs(error):
            result.note_error(error, cell["number"])
        if not cell["may_raise"]:
            sys.exit(1)


def _uses_recording(shell: InteractiveShell, source: str) -> bool:
    """True for a cell that uses a session, a plan or a finding: what it shows has to differ with the plan."""
    try:
        nodes = [*ast.walk(ast.parse(source))]
    except SyntaxError:
        return False
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    values = (shell.user_ns[name] for name in names & shell.user_ns.keys())
    return any(map(_is_of_recording, values))


def _is_of_recording(value: object) -> bool:
    """True for a session, a plan or a finding."""
    return type(value).__module__.partition(".")[0] == "compilediag"


if __name__ == "__main__":
    sys.exit(run_process(sys.argv[1:], _prepare))
