"""The IPython magics `%compilewatch` and `%%compilewatch`.

`%%compilewatch` does not run its cell. An input transformation replaces the first line of the cell with a call that
starts the watch, and IPython's event `post_run_cell` ends it. So the cell runs like any other: its line numbers,
result, traceback, history and top-level `await` are unchanged.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import cell_magic as transform_cell_magic
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display

from ..diagnosis import explain_gaps, find_gaps
from ..errors import CompilediagError
from ..events import Recompile
from ..formatting import format_bytes
from ..session import Session
from ..system.files import HTML_PAGE, check_output
from ..views.explorer_text import format_explorer
from ..views.summary import format_headline, format_status
from ..views.totals import TotalsDict, compute_totals
from ..watch import current, notice, start, stop, stop_all
from .cell_source import FIRST_LINE, FIX, TRIALS, is_statement, is_trial, show_magic_in_tracebacks
from .cell_trial import CellCode, TrialOptions, collect_cells, describe_gpu_memory, find_number, fix_cells, try_cells
from .fix_button import FixButton
from .magic_arguments import (
    SUFFIXES,
    complete_arguments,
    format_cell_help,
    format_line_help,
    parse_cell_arguments,
    parse_line_arguments,
    unquote,
)


class Recompiled(CompilediagError):
    """A cell under `--fail-on-recompile` recompiled, or recompiles were not collected."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in IPython: our own frames do not help the user."""
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class _WatchedCell:
    """A running `%%compilewatch` cell: its session, and what the session held when the cell began."""

    session: Session
    last_recompile: int
    totals: TotalsDict
    report: str | None
    is_quiet: bool
    must_not_recompile: bool


@magics_class
class CompileWatch(Magics):
    """The two magics, and what they remember between cells."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell):
        super().__init__(shell)
        self._session: Session | None = None
        self._cells: list[_WatchedCell] = []
        #: The last cell that ended under `%%compilewatch`, and its session.
        self._last: tuple[CellCode, Session] | None = None
        #: File of a session -> the last cell that it watched.
        self._watched: dict[Path, CellCode] = {}
        self.fix_button = FixButton(shell, self._watched.get)

    @line_magic("compilewatch")  # type: ignore[arg-type]  # IPython's decorator has no type for a method
    def line(self, line: str) -> Session | None:
        args = parse_line_arguments(line)
        action = args.action or "on"
        with _raise_usage_errors():
            if action == "on":
                self._session = self._start(args)
                # The dashboard is enough: a result that nobody assigns would be printed below it.
                return None if is_statement(self.shell) else self._session
            if action == "off":
                print(_describe_stop(stop_all()))
            elif action in SUFFIXES:
                self._write(action, args.path)
            elif action in TRIALS:
                last, session = self._last or (None, current() or self._session)
                self._run_trial(args, last, session)
            else:
                self._show(action)
        return None

    line.__doc__ = format_line_help()  # type: ignore[assignment]  # IPython's decorator has no type for a method

    def _start(self, args: Namespace) -> Session:
        session = _find_running(args) or start(
            detail=args.detail or "full", calls=args.calls, my_code=args.my_code or ()
        )
        self._show_dashboard(session)
        return session

    def _show_dashboard(self, session: Session) -> None:
        if self._has_widgets():
            display(session.dashboard())
        else:
            print("compilediag: the watch is running (the live dashboard needs Jupyter and anywidget)")

    def _has_widgets(self) -> bool:
        return getattr(self.shell, "kernel", None) is not None and importlib.util.find_spec("anywidget") is not None

    def _find_session(self) -> Session:
        session = current() or self._session
        if session is None:
            raise UsageError("no session yet; start one with: %compilewatch on")
        return session

    def _write(self, action: str, path: str) -> None:
        session = self._find_session()
        write = session.report if action == "report" else session.save
        _print_written(action, write(_expand_path(path)))

    def _run_trial(self, args: Namespace, last: CellCode | None, session: Session | None) -> None:
        options = TrialOptions(frozenset(args.skip), args.fast, args.cpu)
        program = collect_cells(self.shell, last, options)
        if not options.on_cpu and (held := describe_gpu_memory()):
            print(f"compilediag: {held} `--fast --cpu` needs none.")
        print((fix_cells if args.action == FIX else try_cells)(program, session))

    def _show(self, action: str) -> None:
        session = self._find_session()
        if action == "status":
            print(format_status(session.status()))
        elif action == "plan":
            display(session.plan())
        elif action == "findings":
            print(session.summary())
        elif self._has_widgets():
            display(session.explore())
        else:
            print(format_explorer(session.data))

    @cell_magic("compilewatch")  # type: ignore[arg-type]  # IPython's decorator has no type for a method
    def cell(self, line: str, cell: str) -> None:
        if is_trial(line):
            args = parse_line_arguments(line)
            with _raise_usage_errors():
                own = CellCode(f"%%compilewatch {line}\n{cell}", find_number(self.shell))
                self._run_trial(args, own, None)
            return
        # Only `run_cell_magic` gets here: a cell that was typed has been transformed.
        self.shell.run_cell(f"%%compilewatch {line}\n{cell}")

    cell.__doc__ = format_cell_help()  # type: ignore[assignment]  # IPython's decorator has no type for a method

    def begin_cell(self, line: str) -> None:
        """Start the watch of a cell; `line` has the arguments. The transformed cell calls this first."""
        show_magic_in_tracebacks(sys._getframe(1).f_code.co_filename, f"%%compilewatch {line}".rstrip())
        args = parse_cell_arguments(line)
        with _raise_usage_errors():
            report = _expand_path(args.report) if args.report else None
            if report:
                check_output(report, HTML_PAGE)
            is_nested = _find_running(args) is not None
            session = self._session = start(detail=args.detail or "full", calls=args.calls, my_code=args.my_code or ())
        last = max((row.event_id or 0 for row in session.data.rows(Recompile)), default=0)
        totals = compute_totals(session.data)
        self._cells.append(_WatchedCell(session, last, totals, report, args.quiet, args.fail_on_recompile))
        if not (is_nested or args.quiet):
            self._show_dashboard(session)

    def end_cell(self, result: ExecutionResult) -> None:
        """End the watch of a cell and print its summary line. IPython calls this after every cell."""
        if result.error_in_exec is not None:
            notice(result.error_in_exec)
        # A cell that our cell runs (with %%capture, for example) ends before ours.
        raw_cell = getattr(result.info, "raw_cell", None) or ""
        if not self._cells or "%%compilewatch" not in raw_cell:
            return
        cell = self._cells.pop()
        stop()
        # IPython drops empty lines before the first one.
        if raw_cell.lstrip().startswith("%%compilewatch"):
            number = result.execution_count or self.shell.execution_count
            watched = CellCode(raw_cell, number)
            self._last = watched, cell.session
            self._watched[cell.session.data.path] = watched
        if not cell.is_quiet:
            print(_summarize_cell(cell))
        if cell.report:
            with self._fail_cell_on_error(result):
                written = cell.session.report(cell.report)
                if not cell.is_quiet:
                    _print_written("report", written)
        if cell.must_not_recompile and result.success:
            with self._fail_cell_on_error(result):
                _check_recompiles(cell)

    @contextlib.contextmanager
    def _fail_cell_on_error(self, result: ExecutionResult) -> Iterator[None]:
        """Turn our error into the cell's, as if its last line had raised it, so that "run all" stops here."""
        try:
            yield
        except CompilediagError as error:
            result.error_in_exec = error
            self.shell.showtraceback((type(error), error, None))


def load(shell: InteractiveShell) -> None:
    """Add the magics to this IPython. Loading them again does nothing."""
    if CompileWatch.__name__ in shell.magics_manager.registry:
        return
    magics = CompileWatch(shell)
    shell.register_magics(magics)
    magics.fix_button.install()
    shell.input_transformers_cleanup.append(transform)
    shell.events.register("post_run_cell", magics.end_cell)
    if shell.Completer is not None:
        shell.Completer.custom_matchers.append(complete_arguments)


def unload(shell: InteractiveShell) -> None:
    """Remove the magics and end the watch."""
    magics = shell.magics_manager.registry.pop(CompileWatch.__name__, None)
    if magics is None:
        return
    stop_all()
    magics.fix_button.remove()
    shell.events.unregister("post_run_cell", magics.end_cell)
    if shell.Completer is not None:
        shell.Completer.custom_matchers.remove(complete_arguments)
    shell.input_transformers_cleanup.remove(transform)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("compilewatch")


def transform(lines: list[str]) -> list[str]:
    """Replace `%%compilewatch ARGS` in a cell with the call that starts the watch; the number of lines stays."""
    match = FIRST_LINE.match(lines[0]) if lines else None
    if match is None or is_trial(match[1]):
        return lines
    begin = f"get_ipython().magics_manager.registry[{CompileWatch.__name__!r}].begin_cell({match[1].strip()!r})\n"
    return [begin, *transform_cell_magic(lines[1:])]


@contextlib.contextmanager
def _raise_usage_errors() -> Iterator[None]:
    """Turn our errors into IPython's UsageError, which is shown in one line."""
    try:
        yield
    except CompilediagError as error:
        raise UsageError(str(error)) from None


def _find_running(args: Namespace) -> Session | None:
    """The session that records now. CompilediagError if it does not record what the arguments ask for."""
    session = current()
    if session is None:
        return None
    if args.calls and "calls" not in session.meta.get("asked_for", ()):
        raise CompilediagError("a watch that does not count calls is already running; stop it with: %compilewatch off")
    detail = session.meta["detail"]
    if args.detail not in (None, detail):
        raise CompilediagError(
            f"a watch with detail {detail!r} is already running, so detail {args.detail!r} is not possible; "
            "stop it with: %compilewatch off"
        )
    return session


def _expand_path(text: str) -> str:
    """The typed path (IPython leaves the quotes around it) as an absolute one: the cell may change the folder."""
    return os.path.abspath(os.path.expanduser(unquote(text)))


def _print_written(action: str, path: Path) -> None:
    """Say which file was written, where, and how large it is."""
    what = "report" if action == "report" else "session"
    print(f"compilediag: wrote the {what} ({format_bytes(path.stat().st_size)}) to {path}")


def _describe_stop(session: Session | None) -> str:
    """What `off` prints: also the numbers, because a notebook that was reloaded meanwhile has no record of them."""
    if session is None:
        return "compilediag: no watch is running"
    totals = compute_totals(session.data)
    counts = (totals["compiles"], totals["compile_s"], totals["recompiles"], totals["lost_s"])
    return f"compilediag: watch stopped\n{format_headline(*counts, find_gaps(session.data))}"


def _summarize_cell(cell: _WatchedCell) -> str:
    """The summary line of what the cell itself compiled."""
    before, after = cell.totals, compute_totals(cell.session.data)
    return format_headline(
        after["compiles"] - before["compiles"],
        after["compile_s"] - before["compile_s"],
        after["recompiles"] - before["recompiles"],
        after["lost_s"] - before["lost_s"],
        find_gaps(cell.session.data),
    )


def _check_recompiles(cell: _WatchedCell) -> None:
    """Raise Recompiled if the cell recompiled, or if recompiles were not collected."""
    data = cell.session.data
    causes = [row.title for row in data.rows(Recompile) if (row.event_id or 0) > cell.last_recompile]
    if causes:
        listed = "; ".join(f"{cause} ({count}x)" if count > 1 else cause for cause, count in Counter(causes).items())
        raise Recompiled(f"{len(causes)} in this cell: {listed}")
    if reason := explain_gaps(data).get("recompiles"):
        raise Recompiled(f"recompiles were not collected: {reason}")
