"""`%compilewatch` and `%%compilewatch`: parse, then call what `import compilediag` offers.

A cell under `%%compilewatch` is not run by the magic: an input transformation puts the beginning of the watch
in the place of its first line, and the end hangs on IPython's `post_run_cell`. So the cell runs as any other, with its
own line numbers, result, traceback, history and top-level `await`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import cell_magic as transform_cell_magic
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from ..diagnosis import explain_gaps, find_gaps
from ..errors import CompilediagError
from ..output_paths import check_output
from ..session import Session
from ..views.explorer.explorer_text import explorer_text
from ..views.model import totals
from ..views.summary import headline
from ..watch import DETAILS, current, notice, start, stop, stop_all

ACTIONS = ("on", "off", "status", "report", "explore", "findings", "save")
WITH_PATH = ("report", "save")

_FIRST_LINE = re.compile(r"%%compilewatch(?![\w?])(.*)")


class Recompiled(CompilediagError):
    """A cell under `--fail-on-recompile` recompiled, or nobody could see whether it did."""

    def _render_traceback_(self) -> list[str]:
        """One line in IPython: where our own frames are is no news to the user."""
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class _Cell:
    """A running `%%compilewatch` cell: its session, and what that held when the cell began."""

    session: Session
    last_event: int
    totals: dict[str, Any]
    report: str | None
    quiet: bool
    fail_on_recompile: bool


@magics_class
class CompileWatch(Magics):
    """The two magics, and what they remember between cells."""

    def __init__(self, shell: InteractiveShell):
        super().__init__(shell)
        self._session: Session | None = None
        self._cells: list[_Cell] = []

    @magic_arguments("%compilewatch")
    @argument("action", nargs="?", choices=ACTIONS, help="what to do; on if nothing is said")
    @argument("path", nargs="?", help="where to: an .html file for report, a .cdiag file for save")
    @argument("--detail", choices=DETAILS, help="how much to record; full if nothing is said")
    @argument("--calls", action="store_true", help="count the calls of compiled code too (Python 3.12)")
    @line_magic("compilewatch")
    def line(self, line: str) -> Session | None:
        """Watch torch.compile from here on, live; `off` ends it. `session = %compilewatch on` gives the session."""
        args = parse_argstring(self.line, line)
        if (args.path is not None) != (args.action in WITH_PATH):
            raise UsageError(
                f"%compilewatch {args.action or 'on'} takes {'a' if args.action in WITH_PATH else 'no'} path"
            )
        with _one_line_errors():
            if args.action in ("on", None):
                self._on(args.detail, args.calls)
                # Alone it shows the dashboard; a value would be shown below it, as text.
                return self._session if args.action else None
            if args.action == "off":
                print(f"compilediag: {'stopped' if stop_all() else 'no watch was on'}")
            else:
                self._show(args.action, args.path)
        return None

    def _on(self, detail: str | None, calls: bool) -> None:
        if current() is None:
            start(detail=detail or "full", calls=calls)
        self._session = _current(detail, calls)
        self._show_dashboard(self._session)

    def _show_dashboard(self, session: Session) -> None:
        if self._has_widgets():
            display(session.dashboard())
        else:
            print("compilediag: watching (the live dashboard needs Jupyter and anywidget)")

    def _has_widgets(self) -> bool:
        return getattr(self.shell, "kernel", None) is not None and importlib.util.find_spec("anywidget") is not None

    def _show(self, action: str, path: str | None) -> None:
        session = current() or self._session
        if session is None:
            raise UsageError("there is no session yet: %compilewatch on")
        if action == "status":
            for source in session.status():
                why = f": {source['reason']}" if source["reason"] else ""
                print(f"{source['name']:<14}{source['events']:>7} events  {source['status']}{why}")
        elif action == "findings":
            print(session.summary())
        elif action == "explore":
            display(session.explore()) if self._has_widgets() else print(explorer_text(session))
        else:
            write = session.report if action == "report" else session.save
            print(f"compilediag: wrote {write(_path(path))}")

    @magic_arguments("%%compilewatch")
    @argument("--report", metavar="PATH", help="write one offline HTML file when the cell has ended")
    @argument("--quiet", action="store_true", help="neither dashboard nor summary")
    @argument("--fail-on-recompile", action="store_true", help="the cell fails if anything in it was recompiled")
    @argument("--detail", choices=DETAILS, help="how much to record; full if nothing is said")
    @argument("--calls", action="store_true", help="count the calls of compiled code too (Python 3.12)")
    @cell_magic("compilewatch")
    def cell(self, line: str, cell: str) -> None:
        """Watch torch.compile while this cell runs."""
        # Only `run_cell_magic` comes here: a cell that was typed has been transformed.
        self.shell.run_cell(f"%%compilewatch {line}\n{cell}")

    def begin_cell(self, line: str) -> None:
        """What a `%%compilewatch` line became: the first statement of the cell."""
        args = parse_argstring(self.cell, line)
        with _one_line_errors():
            report = args.report and _path(args.report)
            if report:
                check_output(report)
            nested = _current(args.detail, args.calls) is not None
            session = self._session = start(detail=args.detail or "full", calls=args.calls)
        last_event = int(session.events["id"].max()) if len(session.events) else 0
        cell = _Cell(session, last_event, totals(session), report, args.quiet, args.fail_on_recompile)
        self._cells.append(cell)
        if not (nested or args.quiet):
            self._show_dashboard(session)

    def end_cell(self, result: ExecutionResult) -> None:
        """After every cell: if it was ours, end its watch and say what happened."""
        if result.error_in_exec is not None:
            notice(result.error_in_exec)
        # Cells that our cell runs (%%capture in it does) end before it does.
        if not self._cells or "%%compilewatch" not in result.info.raw_cell:
            return
        cell = self._cells.pop()
        stop()
        if not cell.quiet:
            print(_headline(cell))
        if cell.report:
            with self._failing(result):
                cell.session.report(cell.report)
        if cell.fail_on_recompile and result.success:
            with self._failing(result):
                _check_recompiles(cell)

    @contextlib.contextmanager
    def _failing(self, result: ExecutionResult) -> Iterator[None]:
        """An error of ours becomes the cell's, as if its last line had raised it: "run all" stops here."""
        try:
            yield
        except CompilediagError as error:
            result.error_in_exec = error
            self.shell.showtraceback((type(error), error, None))


def load(shell: InteractiveShell) -> None:
    """Add the magics to this IPython; once, however often it is asked for."""
    if CompileWatch.__name__ in shell.magics_manager.registry:
        return
    magics = CompileWatch(shell)
    shell.register_magics(magics)
    shell.input_transformers_cleanup.append(transform)
    shell.events.register("post_run_cell", magics.end_cell)


def unload(shell: InteractiveShell) -> None:
    """Take the magics out again and end the watch."""
    magics = shell.magics_manager.registry.pop(CompileWatch.__name__, None)
    if magics is None:
        return
    stop_all()
    shell.events.unregister("post_run_cell", magics.end_cell)
    shell.input_transformers_cleanup.remove(transform)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("compilewatch")


def transform(lines: list[str]) -> list[str]:
    """The lines of a cell, with `%%compilewatch ARGS` replaced by the call that begins the watch: line for line."""
    match = _FIRST_LINE.match(lines[0]) if lines else None
    if match is None:
        return lines
    begin = f"get_ipython().magics_manager.registry[{CompileWatch.__name__!r}].begin_cell({match[1].strip()!r})\n"
    return [begin, *transform_cell_magic(lines[1:])]


@contextlib.contextmanager
def _one_line_errors() -> Iterator[None]:
    try:
        yield
    except CompilediagError as error:
        raise UsageError(str(error)) from None


def _current(detail: str | None, calls: bool) -> Session | None:
    """The session that records now. CompilediagError if another detail was asked for than it has, or calls."""
    session = current()
    if session is not None and calls and "calls" not in session.meta.get("asked_for", ()):
        raise CompilediagError("a watch that counts no calls is on: %compilewatch off first")
    if session is not None and detail not in (None, session.meta["detail"]):
        raise CompilediagError(f"a watch with detail {session.meta['detail']} is on: %compilewatch off first")
    return session


def _path(text: str) -> str:
    """The path that was typed (IPython leaves the quotes around it), wherever the cell may change to."""
    return os.path.abspath(os.path.expanduser(text.strip("\"'")))


def _headline(cell: _Cell) -> str:
    after = totals(cell.session)
    own = {name: after[name] - cell.totals[name] for name in ("compiles", "compile_s", "recompiles", "lost_s")}
    return headline(own, find_gaps(cell.session))


def _check_recompiles(cell: _Cell) -> None:
    """Recompiled if there was a recompile in the cell, or nobody was looking."""
    events = cell.session.events
    causes = events[(events["kind"] == "recompile") & (events["id"] > cell.last_event)]["title"]
    if len(causes):
        counts = causes.value_counts(sort=False)
        listed = "; ".join(f"{cause} ({n}x)" if n > 1 else cause for cause, n in counts.items())
        raise Recompiled(f"{len(causes)} in this cell: {listed}")
    if why := explain_gaps(cell.session).get("recompiles"):
        raise Recompiled(f"recompiles were not observed: {why}")
