"""The watch of one training: begins and ends with it, and has its numbers for the trainer's loggers.

Nothing here raises into the training, and ranks never wait for each other.
"""

from __future__ import annotations

import atexit
import functools
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..document import escape_unprintable
from ..session import Session, load
from ..system.interrupts import pass_on
from ..views.summary import format_closing_line
from ..views.totals import compute_totals
from ..watch import start, stop

if TYPE_CHECKING:
    from ..views.totals import TotalsDict

logger = logging.getLogger("compilediag")

#: The prefix of the metrics' names, and the total behind each of them.
PREFIX = "compilediag/"
METRICS = {"compiles": "compiles", "recompiles": "recompiles", "compile_s": "compile_s", "lost_s": "lost_s"}

Result = TypeVar("Result")


def read_metrics(session: Session) -> dict[str, float]:
    """The totals of a session for a logger: compiles, recompiles, seconds compiling, and seconds lost to recompiles.

    The names are `compilediag/compiles`, `compilediag/recompiles`, `compilediag/compile_s` and `compilediag/lost_s`.
    """
    with session.settled():
        totals: TotalsDict = compute_totals(session.data)
    values: dict[str, Any] = {**totals}
    return {f"{PREFIX}{name}": values[total] for name, total in METRICS.items()}


def log_errors(method: Callable[..., Result]) -> Callable[..., Result | None]:
    """Make a method log what it raises, and return None then: a training does not fail because of its diagnosis."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Result | None:
        try:
            return method(*args, **kwargs)
        except Exception as error:
            pass_on(error)
            logger.warning("compilediag: %s failed, the training goes on: %s", method.__name__, error)
            return None

    return call


class TrainingWatch:
    """Records a training to `path` and writes `report` at its end.

    In a job of several ranks each rank has its own file in a folder: `path` itself, or `run/` for `run.cdiag`.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        report: str | os.PathLike[str] | None,
        detail: str,
        show_plan: bool,
    ):
        self.session: Session | None = None
        self._path = None if path is None else os.fspath(path)
        self._report = None if report is None else Path(report)
        self._detail = detail
        self._show_plan = show_plan
        self._is_first = True
        self._is_running = False

    @log_errors
    def begin(self, ranks: int, is_first: bool) -> None:
        """Begin to record. `is_first` is true for rank zero, which logs, reports and prints."""
        self.end()
        self._is_first = is_first
        if self._path is not None and ranks > 1:
            self._path = _name_folder(self._path)
        if self._path is not None:
            Path(self._path).absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.session = start(self._path, self._detail)
        self._is_running = True
        # A training that raises calls no hook of some trainers.
        atexit.register(self.end)

    @log_errors
    def read_metrics(self) -> dict[str, float]:
        """The totals so far; empty on other ranks than the first, and before the training began."""
        return read_metrics(self.session) if self.session is not None and self._is_first else {}

    @log_errors
    def end(self) -> None:
        """Stop to record; rank zero writes the report and prints the plan. Does nothing if it has ended already."""
        if not self._is_running:
            return
        self._is_running = False
        atexit.unregister(self.end)
        stop()
        if self._is_first and self.session is not None:
            self._write_results(self.session)

    def _write_results(self, own: Session) -> None:
        """Of all ranks whose files are here, as far as they are: this rank does not wait for the others."""
        path = self._path if self._path is not None and _is_at(own, Path(self._path).absolute()) else None
        session = load(path) if path is not None and Path(path).is_dir() else own
        if self._report is not None:
            self._report.absolute().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            session.report(self._report)
        if not self._show_plan or sys.stderr is None:
            return
        plan = session.plan()
        text = f"{plan}\n" if plan.steps else ""
        line = format_closing_line(session.data, path, keep="path='run.cdiag' keeps it")
        print(escape_unprintable(f"{text}{line}", sys.stderr.encoding), file=sys.stderr)


class TrainingHooks:
    """What the callbacks of all trainers have in common; their own docstrings explain the options."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        report: str | os.PathLike[str] | None = None,
        detail: str = "full",
        show_plan: bool = True,
    ):
        super().__init__()
        self._watch = TrainingWatch(path, report, detail, show_plan)

    @property
    def session(self) -> Session | None:
        """The session of the last training."""
        return self._watch.session


def _is_at(session: Session, path: Path) -> bool:
    """True if a session was recorded to a path or into that folder, and not to that of a watch around the training."""
    return path in (session.path, session.path.parent)


def _name_folder(path: str) -> str:
    """`run/` for `run.cdiag`: a slash at the end means a folder with a file for each rank."""
    return os.path.join(path.removesuffix(".cdiag"), "")
