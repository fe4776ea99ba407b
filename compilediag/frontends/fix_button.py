"""The button **Try it** of the plan: searches for a change of the executed cells while the kernel stays usable."""

from __future__ import annotations

import atexit
import contextlib
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CompilediagError
from ..fix.report import make_headline
from ..fix.search import SearchLimits
from ..session import Session
from ..system.interrupts import pass_on
from ..trials.fresh_process import TrialProgress
from .cell_trial import (
    CellCode,
    CellProgram,
    TrialOptions,
    collect_cells,
    describe_gpu_memory,
    search_cells,
    store_search,
)

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from ..views.page_types import PageSearch
    from ..views.widget import DashboardWidget

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
