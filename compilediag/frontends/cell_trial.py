"""Runs the executed cells of a notebook in fresh processes: `%compilewatch try` and `fix`."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnosis.plan.plan import META_KEY
from ..document import to_text, wrap
from ..errors import CompilediagError
from ..fix.report import describe_fix
from ..fix.search import Search, SearchLimits
from ..formatting import format_names
from ..session import Session
from ..system.interrupts import pass_on
from ..trials.fresh_process import CellJob, ProcessRunner, ProgramJob, TrialProgress
from ..trials.script_trial import ScriptTrial, try_script
from .cell_source import FIRST_LINE, FIX, TRIALS, name_cell, write_python

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_PROCESS = ("-m", "compilediag.frontends.cell_process")
#: Runs without the plan, and with it.
_RUNS = 2


@dataclass(frozen=True)
class CellCode:
    """A cell as typed, and its number, as in `Cell In[3]`."""

    text: str
    number: int

    @property
    def is_tried(self) -> bool:
        """True for a cell that was tried and not executed in the notebook."""
        match = FIRST_LINE.match(self.text.lstrip())
        return match is not None and match[1].strip() in TRIALS


def find_number(shell: InteractiveShell) -> int:
    """The number of the cell that runs and has `%%compilewatch try` on top."""
    history = _read_history(shell)
    is_stored = bool(history) and CellCode(history[-1], 0).is_tried
    return len(history) - 1 if is_stored else shell.execution_count


def _read_history(shell: InteractiveShell) -> Sequence[str]:
    """The cells as typed, by number."""
    return shell.history_manager.input_hist_raw if shell.history_manager is not None else []


def run_trial(action: str, shell: InteractiveShell, last: CellCode | None, session: Session | None) -> str:
    """Try the plan of the executed cells, up to `last` or up to now, or search for the change that fixes them; gives
    what came out as text.

    The cells run in processes of their own, from the first one on, so that nothing in this process is touched. The
    outcome of a plan is stored in `session` if it is that session's. CompilediagError if the cells cannot be run.
    """
    cells = list(_list_cells(shell, last))
    failures = {cell.number: _read_failure(shell, cell.number) for cell in cells}
    interrupted = [cell.number for cell in cells if failures[cell.number] == "KeyboardInterrupt"]
    job = ProgramJob(
        "the notebook",
        detail="lean" if session is not None and session.meta.get("detail") == "lean" and action != FIX else "full",
        cells=tuple(
            CellJob(cell.number, cell.text, write_python(cell.text), failures[cell.number] is not None)
            for cell in cells
            if cell.number not in interrupted
        ),
    )
    progress = TrialProgress(2 * _RUNS)
    try:
        with tempfile.TemporaryDirectory(prefix="compilediag-try-", ignore_cleanup_errors=True) as folder:
            runner = ProcessRunner(_PROCESS, Path(folder), None, progress, shell.starting_dir, reads_input=False)
            if action == FIX:
                found = Search(runner, job, SearchLimits()).run()
                text = to_text(describe_fix(found))
            else:
                trial = try_script(runner, job, None, _RUNS)
                _store(trial, session)
                text = _format_trial(trial)
    except OSError as error:
        pass_on(error)
        raise CompilediagError(f"the cells cannot be run: {error}") from None
    finally:
        progress.end()
    return "\n".join([text, *_list_notes(interrupted, shell.user_ns)])


def _list_cells(shell: InteractiveShell, last: CellCode | None) -> Iterator[CellCode]:
    """The executed cells, as typed. A cell that was executed twice, or edited in between, is two."""
    executed = [CellCode(text, number) for number, text in enumerate(_read_history(shell)) if text.strip()]
    if last is None and executed and any(f"%compilewatch {action}" in executed[-1].text for action in TRIALS):
        executed.pop()  # The cell that runs.
    yield from (cell for cell in executed if not cell.is_tried and (last is None or cell.number < last.number))
    if last is not None:
        yield last


def _read_failure(shell: InteractiveShell, number: int) -> str | None:
    """The name of the exception that a cell raised; None if it raised none. Before IPython 9 it is not known."""
    failures = getattr(shell.history_manager, "exceptions", None)
    if not isinstance(failures, Mapping):
        return "unknown"
    failure = failures.get(number)
    return None if failure is None else str(failure.get("ename"))


def _store(trial: ScriptTrial, session: Session | None) -> None:
    if session is None or trial.outcome is None or session.plan().code() != trial.outcome.code:
        return
    # A session that cannot be written keeps no outcome; the caller has it.
    with contextlib.suppress(CompilediagError):
        session.data.set_meta(**{META_KEY: trial.outcome.to_dict()})


def _format_trial(trial: ScriptTrial) -> str:
    if trial.outcome is None:
        return f"compilediag: {trial.problem}"
    return "\n".join([str(trial.plan), "", *wrap(str(trial.outcome))])


def _list_notes(interrupted: list[int], variables: Mapping[str, Any]) -> Iterator[str]:
    """What a fresh process does not repeat, one line each."""
    if interrupted:
        yield f"Left out, because you interrupted it: {format_names([name_cell(number) for number in interrupted])}."
    widgets = getattr(sys.modules.get("ipywidgets"), "ValueWidget", None)
    names = [name for name, value in variables.items() if widgets is not None and issubclass(type(value), widgets)]
    names = [f"`{name}`" for name in names if not name.startswith("_")]
    if names:
        yield f"In a fresh process, widgets have their first values: {format_names(names)}."
