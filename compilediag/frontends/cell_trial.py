"""Runs the executed cells of a notebook in fresh processes: `%compilewatch try` and `fix`, and the button **Try it** of
the plan, which searches for a change while the kernel stays usable.
"""

from __future__ import annotations

import atexit
import contextlib
import re
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..diagnosis.plan.plan import META_KEY, SEARCH_KEY, SEEN_KEY
from ..document import to_text, wrap
from ..errors import CompilediagError
from ..events import Recompile
from ..fix.report import describe_fix, format_attempt, make_headline, to_outcome
from ..fix.search import FixResult, Search, SearchLimits
from ..formatting import format_bytes, format_names
from ..json_document import to_plain
from ..session import Session
from ..system.interrupts import pass_on
from ..trials.fresh_process import CellJob, ProcessRunner, ProgramJob, TrialProgress
from ..trials.script_trial import ScriptTrial, try_script
from .cell_source import FIRST_LINE, TRIALS, is_trial, name_cell, write_python

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from ..views.page_types import PageSearch
    from ..views.widget import DashboardWidget

_PROCESS = ("-m", "compilediag.frontends.cell_process")
#: The comment of a cell that is left out.
_SKIP = re.compile(r"^\s*#\s*compilediag:\s*skip\s*$", re.MULTILINE)
#: Runs without the plan, and with it.
_RUNS = 2
#: Hides the GPUs from a process.
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class CellCode:
    """A cell as typed, and its number, as in `Cell In[3]`."""

    text: str
    number: int

    @property
    def is_tried(self) -> bool:
        """True for a cell that was tried and not executed in the notebook."""
        match = FIRST_LINE.match(self.text.lstrip())
        return match is not None and is_trial(match[1])


@dataclass(frozen=True)
class TrialOptions:
    """How a trial runs. `skipped` are numbers of cells that are left out. `is_fast`: with the backend eager, or without
    the proof. `on_cpu`: the processes see no GPU.
    """

    skipped: frozenset[int] = frozenset()
    is_fast: bool = False
    on_cpu: bool = False


@dataclass(frozen=True)
class CellProgram:
    """The executed cells as a program for fresh processes, and what these do not repeat, one line each."""

    cells: tuple[CellJob, ...]
    notes: tuple[str, ...]
    folder: str
    options: TrialOptions

    def make_job(self, detail: str = "full", backend: str | None = None) -> ProgramJob:
        """The job that runs the cells."""
        return ProgramJob("the notebook", detail=detail, backend=backend, cells=self.cells)

    @contextlib.contextmanager
    def open_runner(self, progress: TrialProgress, cancelled: threading.Event | None = None) -> Iterator[ProcessRunner]:
        """A runner of such jobs, in a temporary folder. CompilediagError if the cells cannot be run."""
        variables = _NO_GPU if self.options.on_cpu else {}
        try:
            with tempfile.TemporaryDirectory(prefix="compilediag-try-", ignore_cleanup_errors=True) as folder:
                yield ProcessRunner(_PROCESS, Path(folder), None, progress, self.folder, False, variables, cancelled)
        except OSError as error:
            pass_on(error)
            raise CompilediagError(f"the cells cannot be run: {error}") from None
        finally:
            progress.end()


def find_number(shell: InteractiveShell) -> int:
    """The number of the cell that runs and has `%%compilewatch try` on top."""
    history = _read_history(shell)
    is_stored = bool(history) and CellCode(history[-1], 0).is_tried
    return len(history) - 1 if is_stored else shell.execution_count


def _read_history(shell: InteractiveShell) -> Sequence[str]:
    """The cells as typed, by number."""
    return shell.history_manager.input_hist_raw if shell.history_manager is not None else []


def collect_cells(shell: InteractiveShell, last: CellCode | None, options: TrialOptions) -> CellProgram:
    """The executed cells, up to `last` or up to now. CompilediagError if a cell that is to be left out was not
    executed.
    """
    cells = list(_list_cells(shell, last))
    if unknown := options.skipped - {cell.number for cell in cells}:
        raise CompilediagError(f"--skip {min(unknown)}: no cell with this number was executed")
    known = getattr(shell.history_manager, "exceptions", None)
    # Before IPython 9 it is not known which cells raised something.
    failures = known if isinstance(known, Mapping) else {cell.number: {} for cell in cells}
    names = {cell.number: (failures.get(cell.number) or {}).get("ename") for cell in cells}
    interrupted = {number for number, name in names.items() if name == "KeyboardInterrupt"}
    left_out = {cell.number for cell in cells if cell.number in options.skipped or _SKIP.search(cell.text)}
    return CellProgram(
        tuple(
            CellJob(cell.number, cell.text, write_python(cell.text), failures.get(cell.number) is not None)
            for cell in cells
            if cell.number not in interrupted | left_out
        ),
        tuple(_list_notes(interrupted - left_out, left_out, shell.user_ns)),
        shell.starting_dir,
        options,
    )


def describe_gpu_memory() -> str | None:
    """What this kernel holds on GPUs, in one line; None if it holds nothing there."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    held = sum(torch.cuda.memory_reserved(device) for device in range(torch.cuda.device_count()))
    if not held:
        return None
    return f"This kernel holds {format_bytes(held)} of GPU memory. The processes need theirs beside it."


def try_cells(program: CellProgram, session: Session | None) -> str:
    """Try the plan of the cells; gives what came out as text.

    The cells run in processes of their own, from the first one on, so that nothing in this process is touched. The
    outcome is stored in `session` if the plan is that session's. CompilediagError if the cells cannot be run.
    """
    detail = "lean" if session is not None and session.meta.get("detail") == "lean" else "full"
    job = program.make_job(detail, "eager" if program.options.is_fast else None)
    with program.open_runner(TrialProgress(2 * _RUNS)) as runner:
        trial = try_script(runner, job, None, _RUNS)
        if session is not None and trial.outcome is not None and session.plan().code() == trial.outcome.code:
            _store(session, META_KEY, trial.outcome.to_dict())
        return "\n".join([_format_trial(trial), *program.notes])


def fix_cells(program: CellProgram, session: Session | None) -> str:
    """Search for a change of the cells; gives what came out as text. The outcome is stored in `session`.

    CompilediagError if the cells cannot be run.
    """
    progress = TrialProgress(SearchLimits().max_runs)
    with program.open_runner(progress) as runner:
        result = search_cells(program, runner, lambda line: print(f"compilediag: {line}"))
        store_search(session, result, program.notes)
        return "\n".join([to_text(describe_fix(result)), *program.notes])


def search_cells(program: CellProgram, runner: ProcessRunner, report: Callable[[str], None]) -> FixResult:
    """Search for a change of the cells; `report` gets a line for each run that has ended."""
    limits = SearchLimits(with_proof=not program.options.is_fast)
    job = program.make_job()
    return Search(runner, job, limits, lambda result, attempt: report(format_attempt(result, attempt))).run()


def store_search(session: Session | None, result: FixResult, notes: Sequence[str]) -> None:
    """Keep what a search found in a session."""
    if session is not None and result.problem is None and result.before is not None:
        outcome = to_outcome(result)
        _store(session, SEARCH_KEY, to_plain(replace(outcome, notes=(*outcome.notes, *notes))))


def _store(session: Session, key: str, values: dict[str, Any]) -> None:
    # A session that cannot be written keeps no outcome; the caller has it.
    with contextlib.suppress(CompilediagError):
        session.data.set_meta(**{key: values, SEEN_KEY: len(session.data.rows(Recompile))})


def _list_cells(shell: InteractiveShell, last: CellCode | None) -> Iterator[CellCode]:
    """The executed cells, as typed. A cell that was executed twice, or edited in between, is two."""
    executed = [CellCode(text, number) for number, text in enumerate(_read_history(shell)) if text.strip()]
    if last is None and executed and any(f"%compilewatch {action}" in executed[-1].text for action in TRIALS):
        executed.pop()  # The cell that runs.
    yield from (cell for cell in executed if not cell.is_tried and (last is None or cell.number < last.number))
    if last is not None:
        yield last


def _format_trial(trial: ScriptTrial) -> str:
    if trial.outcome is None:
        return f"compilediag: {trial.problem}"
    return "\n".join([str(trial.plan), "", *wrap(str(trial.outcome))])


def _list_notes(interrupted: Collection[int], left_out: Collection[int], variables: Mapping[str, Any]) -> Iterator[str]:
    """What a fresh process does not repeat, one line each."""
    if left_out:
        yield f"Left out, as you asked: {_name_cells(left_out)}."
    if interrupted:
        yield f"Left out, because you interrupted it: {_name_cells(interrupted)}."
    widgets = getattr(sys.modules.get("ipywidgets"), "ValueWidget", None)
    names = [name for name, value in variables.items() if widgets is not None and issubclass(type(value), widgets)]
    names = [f"`{name}`" for name in names if not name.startswith("_")]
    if names:
        yield f"In a fresh process, widgets have their first values: {format_names(names)}."


def _name_cells(numbers: Collection[int]) -> str:
    return format_names([name_cell(number) for number in sorted(numbers)])


# The button

_TYPE = "fix"
#: Seconds that a kernel which ends waits for the processes of a search to be ended.
_END_S = 5.0


class FixButton:
    """Answers what pages ask for with messages of the type "fix". There is one search at a time in a kernel.

    `find_cell` gives the last cell that a session has watched; None if it watched more than one cell.
    """

    def __init__(self, shell: InteractiveShell, find_cell: Callable[[Path], CellCode | None]):
        self._shell = shell
        self._find_cell = find_cell
        self._running: _CardSearch | None = None

    def install(self) -> None:
        """Let the pages of this kernel have the button."""
        # Without anywidget there are no pages.
        with contextlib.suppress(CompilediagError):
            from ..views.widget import ANSWERS

            ANSWERS[_TYPE] = self.answer
            atexit.register(self._cancel)

    def remove(self) -> None:
        """Take the button away, and end a search."""
        with contextlib.suppress(CompilediagError):
            from ..views.widget import ANSWERS

            ANSWERS.pop(_TYPE, None)
            atexit.unregister(self._cancel)
        self._cancel()

    def answer(self, widget: DashboardWidget, message: Mapping[str, Any]) -> dict[str, Any]:
        """Begin or cancel a search. The answer has the line that a reader has to accept before it begins.

        CompilediagError if it cannot begin.
        """
        action = message.get("action")
        if action == "cancel":
            self._cancel(0.0)
        elif action == "start":
            is_small = bool(message.get("on_cpu"))
            held = None if is_small or message.get("is_accepted") else describe_gpu_memory()
            if held is not None:
                return {"notice": held}
            self._start(widget, TrialOptions(is_fast=is_small, on_cpu=is_small))
        return {}

    def _start(self, widget: DashboardWidget, options: TrialOptions) -> None:
        if self._running is not None and self._running.is_alive():
            raise CompilediagError("another search is running in this kernel")
        data = widget.model.data
        program = collect_cells(self._shell, self._find_cell(data.path), options)
        self._running = _CardSearch(widget, program, Session(data))
        self._running.start()

    def _cancel(self, wait: float = _END_S) -> None:
        if self._running is not None:
            self._running.cancelled.set()
            if self._running.is_alive():
                self._running.join(wait)


class _CardSearch(threading.Thread):
    """A search that shows its progress on the plan's card of a widget, and then what it found."""

    def __init__(self, widget: DashboardWidget, program: CellProgram, session: Session):
        super().__init__(name="compilediag-fix", daemon=True)
        self.cancelled = threading.Event()
        self._widget = widget
        self._program = program
        self._session = session
        self._shown: PageSearch = {"running": True, "now": "", "done": 0, "total": 0, "lines": [], "error": ""}

    def start(self) -> None:
        """Begin, and show that."""
        self._show()
        super().start()

    def run(self) -> None:
        """Search, store what was found, and show it."""
        try:
            progress = TrialProgress(SearchLimits().max_runs, self)
            with self._program.open_runner(progress, self.cancelled) as runner:
                found = search_cells(
                    self._program, runner, lambda line: self._show(lines=[*self._shown["lines"], line])
                )
                is_found = found.problem is None and not (found.is_interrupted and not found.changes)
                if is_found:
                    store_search(self._session, found, self._program.notes)
                self._show(running=False, error="" if is_found else make_headline(found))
            self._widget.show_outcome()
        except Exception as error:
            pass_on(error)
            is_explained = isinstance(error, CompilediagError)
            self._show(running=False, error=str(error) if is_explained else f"{type(error).__name__}: {error}")

    def show(self, number: int, total: int, what: str) -> None:
        """Show the run that begins, as the display of a `TrialProgress`."""
        self._show(done=number - 1, total=total, now=what)

    def end(self) -> None:
        """`run` itself shows the end."""

    def _show(self, **changed: Any) -> None:
        self._shown = {**self._shown, **changed}  # type: ignore[typeddict-item]
        self._widget.search = dict(self._shown)
