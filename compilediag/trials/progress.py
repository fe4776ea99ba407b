"""The progress of a trial: a bar in a notebook, a line on stderr in a terminal, and nothing elsewhere."""

from __future__ import annotations

import html
import sys
from typing import Any, Protocol


class ProgressDisplay(Protocol):
    """Where progress is shown."""

    def show(self, done: int, total: int, text: str) -> None: ...
    def end(self) -> None: ...


class TrialProgress:
    """Counts the runs of a trial and shows which one is running."""

    def __init__(self, total: int):
        self.total = total
        self._done = 0
        self._display = _find_display()

    def begin_run(self, what: str) -> None:
        """Show that the next run begins. More runs than planned extend the total."""
        self._done += 1
        self.total = max(self.total, self._done)
        self.describe(what)

    def describe(self, what: str) -> None:
        """Show what the current run does."""
        if self._display is not None:
            text = f"compilediag: run {self._done} of {self.total}: {what}"
            self._display.show(self._done - 1, self.total, text)

    def end(self) -> None:
        """Remove what is shown."""
        if self._display is not None:
            self._display.end()


class _TerminalLine:
    """One line on stderr, which is overwritten."""

    def show(self, done: int, total: int, text: str) -> None:
        print(f"\r\x1b[K{text[:200]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _NotebookBar:
    """A bar in the output of the cell that runs."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, done: int, total: int, text: str) -> None:
        from IPython.display import HTML, display

        bar = HTML(f'<progress value="{done}" max="{total}" aria-label="progress"></progress> {html.escape(text)}')
        if self._handle is None:
            self._handle = display(bar, display_id=True)
        else:
            self._handle.update(bar)

    def end(self) -> None:
        from IPython.display import HTML

        if self._handle is not None:
            self._handle.update(HTML(""))


def _find_display() -> ProgressDisplay | None:
    # A program without IPython must not import it for this.
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = get_ipython() if get_ipython is not None else None
    if getattr(shell, "kernel", None) is not None:
        return _NotebookBar()
    stderr = sys.stderr
    return _TerminalLine() if stderr is not None and stderr.isatty() else None
