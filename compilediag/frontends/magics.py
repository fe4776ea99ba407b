"""The IPython magics `%compilewatch` and `%%compilewatch`.

`%%compilewatch` does not run its cell. An input transformation replaces the first line of the cell with a call that
starts the watch, and IPython's event `post_run_cell` ends it. So the cell runs like any other: its line numbers,
result, traceback, history and top-level `await` are unchanged.

Their arguments are parsed, explained and completed here too.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import os
import re
import sys
import textwrap
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.error import UsageError
from IPython.core.inputtransformer2 import cell_magic as transform_cell_magic
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display
from IPython.utils.process import arg_split

from ..diagnosis import explain_gaps, find_gaps
from ..errors import CompilediagError
from ..events import Recompile
from ..formatting import format_bytes
from ..session import Session
from ..system.arguments import SuggestingParser, suggest
from ..system.files import HTML_PAGE, check_output
from ..system.interrupts import ignore
from ..views.explorer import format_explorer
from ..views.summary import IN_NOTEBOOK, format_headline, format_status, format_summary
from ..views.totals import TotalsDict, compute_totals
from ..watch import DETAILS, current, notice, start, stop, stop_all
from .cell_source import FIRST_LINE, FIX, TRIALS, TRY, is_statement, is_trial, show_magic_in_tracebacks
from .cell_trial import (
    CellCode,
    FixButton,
    TrialOptions,
    collect_cells,
    describe_gpu_memory,
    find_number,
    fix_cells,
    try_cells,
)

#: Subcommand of the line magic -> what it does.
ACTIONS = {
    "on": "start recording and show it live (the default); `session = %compilewatch on` returns the session",
    "off": "stop recording",
    TRY: "run the executed cells in fresh processes, without and with their plan",
    FIX: "search for the smallest change of the executed cells that fresh processes prove",
    "status": "show what each source collects",
    "plan": "show the smallest set of changes that saves the most compile seconds",
    "findings": "show the plan, the totals and all findings as text",
    "explore": "show the guards that failed",
    "report": "write the session to PATH, one HTML file that needs no network",
    "save": "write a copy of the session to PATH; compilediag.load(PATH) opens it",
}
#: Subcommand -> how the files that it writes can end. `save` accepts any name.
SUFFIXES = {"report": (".html", ".htm"), "save": (".cdiag",)}
_WIDTH = 100
#: Options that can be given several times.
_REPEATED = ("--my-code", "--skip")
_ARGUMENTS = re.compile(r"\s*(?:\w+\s*=\s*)?(%{1,2})compilewatch\s+(.*)")


class _MagicParser(SuggestingParser):
    """A parser that raises UsageError, which IPython shows in one line."""

    def __init__(self, prog: str):
        wide = functools.partial(argparse.HelpFormatter, max_help_position=32, width=_WIDTH)
        super().__init__(prog=prog, add_help=False, formatter_class=wide)
        self.add_argument("-h", "--help", action="store_true", help="show this help")

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of ending the process."""
        raise UsageError(f"{self.prog}: {message}")


def _add_watch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--detail", choices=DETAILS, help="how much to record (default: full)")
    parser.add_argument("--calls", action="store_true", help="also count calls of compiled code (Python 3.12 or later)")
    parser.add_argument(
        "--my-code",
        metavar="PATH",
        action="append",
        help="folder, file or module that is your own code; can be repeated",
    )


LINE_PARSER = _MagicParser("%compilewatch")
LINE_PARSER.add_argument("action", nargs="?", help=argparse.SUPPRESS)
LINE_PARSER.add_argument("path", nargs="?", help=argparse.SUPPRESS)
_add_watch_options(LINE_PARSER)

CELL_PARSER = _MagicParser("%%compilewatch")
CELL_PARSER.add_argument("--report", metavar="PATH", help="write an HTML report when the cell ends")
CELL_PARSER.add_argument("--quiet", action="store_true", help="show neither the dashboard nor the summary line")
CELL_PARSER.add_argument("--fail-on-recompile", action="store_true", help="fail the cell if anything in it recompiles")
_add_watch_options(CELL_PARSER)

TRIAL_PARSER = _MagicParser("compilewatch try | fix")
TRIAL_PARSER.add_argument("action", choices=TRIALS, help=argparse.SUPPRESS)
TRIAL_PARSER.add_argument("path", nargs="?", help=argparse.SUPPRESS)
TRIAL_PARSER.add_argument(
    "--skip",
    metavar="N",
    type=int,
    action="append",
    default=[],
    help="leave the cell In[N] out; can be repeated. A cell with the comment `# compilediag: skip` is left out too",
)
TRIAL_PARSER.add_argument("--fast", action="store_true", help="do not use the cells' own backend: no proof, no times")
TRIAL_PARSER.add_argument("--cpu", action="store_true", help="hide the GPUs from the processes")


def parse_line_arguments(line: str) -> argparse.Namespace:
    """The arguments of the line magic: `action` is a subcommand or None. UsageError, in one line, if they are wrong."""
    args = (TRIAL_PARSER if is_trial(line) else LINE_PARSER).parse_args(arg_split(line))
    if args.action is not None and args.action not in ACTIONS:
        raise UsageError(f"%compilewatch has no subcommand {args.action!r}; {suggest(args.action, ACTIONS)}")
    action = args.action or "on"
    if action in SUFFIXES and args.path is None:
        raise UsageError(f"%compilewatch {action} needs a path")
    if action not in SUFFIXES and args.path is not None:
        raise UsageError(f"%compilewatch {action} takes no path, but got {args.path!r}")
    if action == "report":
        check_report_name(args.path)
    return args


def check_report_name(path: str) -> None:
    """UsageError unless a browser would open a file of this name as HTML."""
    name = unquote(path)
    if not name.lower().endswith(SUFFIXES["report"]):
        better = f"{os.path.splitext(name)[0]}.html"
        raise UsageError(f"a report is an HTML file, but the path is {name!r}; use a path such as {better!r}")


def unquote(text: str) -> str:
    """A typed path without the quotes around it, which IPython leaves there."""
    return text.strip("\"'")


# Help


def format_line_help() -> str:
    """The text that `%compilewatch?` shows."""
    rows = [(f"{name} PATH" if name in SUFFIXES else name, text) for name, text in ACTIONS.items()]
    width = max(len(name) for name, _ in rows) + 4
    listed = [
        textwrap.fill(text, _WIDTH, initial_indent=f"  {name}".ljust(width), subsequent_indent=" " * width)
        for name, text in rows
    ]
    return "\n".join(
        [
            "%compilewatch [SUBCOMMAND] [PATH] [options]",
            "",
            "Record every torch.compile of this and all following cells.",
            "",
            "subcommands:",
            *listed,
            "",
            _format_options(LINE_PARSER),
            _format_options(TRIAL_PARSER).replace("options:", "options of try and fix:"),
            "%%compilewatch as the first line of a cell records that cell only: see %%compilewatch?",
        ]
    )


def format_cell_help() -> str:
    """The text that `%%compilewatch?` shows."""
    return "\n".join(
        [
            "%%compilewatch [options]",
            "%%compilewatch try | fix",
            "",
            "Record every torch.compile while this cell runs, and show it live. The line is the first of the cell.",
            "",
            "`try` runs the executed cells and this one in fresh processes instead, without and with their plan. `fix` "
            "searches there for the smallest change that is proven.",
            "",
            _format_options(CELL_PARSER),
            _format_options(TRIAL_PARSER).replace("options:", "options of try and fix:"),
            "%compilewatch records all following cells, and has more subcommands: see %compilewatch?",
        ]
    )


def _format_options(parser: _MagicParser) -> str:
    text = parser.format_help()
    return text[text.index("options:") :]


def _asks_for_help(arguments: str) -> bool:
    return not {"-h", "--help"}.isdisjoint(arguments.split())


# Completion


@context_matcher()
def complete_arguments(context: CompletionContext) -> SimpleMatcherResult:
    """Complete a subcommand, an option, or the path behind `report` or `save`; nothing else is suggested there."""
    found = _ARGUMENTS.fullmatch(context.text_until_cursor)
    if found is None or (found[1] == "%%" and context.cursor_line > 0):
        return {"completions": [], "suppress": False}
    before = found[2].split()
    word = before.pop() if before and not found[2][-1].isspace() else ""
    is_cell, previous = found[1] == "%%", before[-1] if before else ""
    if previous in ("report", "--report", "save", "--my-code"):
        options = [*_list_paths(word, SUFFIXES.get(previous.lstrip("-"), (".py",)))]
    else:
        parser = TRIAL_PARSER if is_trial(" ".join(before)) else CELL_PARSER if is_cell else LINE_PARSER
        names = [option for option in parser.list_options() if option not in before or option in _REPEATED]
        if previous == "--detail":
            names = [*DETAILS]
        elif not before and not word.startswith("-"):
            names = [*TRIALS, *names] if is_cell else [*ACTIONS]
        options = [name for name in names if name.startswith(word)]
    return {
        "completions": [SimpleCompletion(text=option, type="param") for option in options],
        "suppress": bool(options),
        "matched_fragment": word,
    }


def _list_paths(word: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Folders and files that begin as the typed path does. A name with spaces would need quotes and is left out."""
    folder, start = os.path.split(word)
    with ignore(OSError):
        for path in sorted(Path(os.path.expanduser(folder) or ".").iterdir()):
            if not path.name.startswith(start) or (path.name.startswith(".") and not start) or " " in path.name:
                continue
            if path.is_dir() or path.suffix in suffixes:
                yield os.path.join(folder, path.name) + (os.sep if path.is_dir() else "")


# The magics


class Recompiled(CompilediagError):
    """A cell under `--fail-on-recompile` recompiled, or recompiles were not collected."""

    def _render_traceback_(self) -> list[str]:
        """Show one line in IPython: our own frames do not help the user."""
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class _WatchedCell:
    """A running `%%compilewatch` cell: its arguments, its session, and what the session held when the cell began."""

    args: Namespace
    session: Session
    last_recompile: int
    totals: TotalsDict


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
        if _asks_for_help(line):
            print(format_line_help())
            return None
        args = parse_line_arguments(line)
        action = args.action or "on"
        with _raise_usage_errors():
            if action == "on":
                self._session = _find_running(args) or _start(args)
                self._show_dashboard(self._session)
                # The dashboard is enough: a result that nobody assigns would be printed below it.
                return None if is_statement(self.shell) else self._session
            if action == "off":
                stopped = stop_all()
                print(f"compilediag: {'watch stopped' if stopped is not None else 'no watch is running'}")
                if stopped is not None:  # A notebook that was reloaded meanwhile has no record of the numbers.
                    print(format_headline(compute_totals(stopped.data), find_gaps(stopped.data)))
            elif action in SUFFIXES:
                session = self._find_session()
                write = session.report if action == "report" else session.save
                _print_written(action, write(_expand_path(args.path)))
            elif action in TRIALS:
                self._run_trial(args, *(self._last or (None, current() or self._session)))
            else:
                self._show(action)
        return None

    line.__doc__ = format_line_help()  # type: ignore[assignment]  # IPython's decorator has no type for a method

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
        elif action == "plan" and self._has_widgets():
            from ..views.widget import make_plan_card

            display(make_plan_card(session.data))
        elif action == "plan":
            display(session.plan())
        elif action == "findings":
            print(format_summary(session.data, IN_NOTEBOOK))
        elif self._has_widgets():
            display(session.explore())
        else:
            print(format_explorer(session.data))

    @cell_magic("compilewatch")  # type: ignore[arg-type]  # IPython's decorator has no type for a method
    def cell(self, line: str, cell: str) -> None:
        if _asks_for_help(line):
            print(format_cell_help())
            return
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
        args = CELL_PARSER.parse_args(arg_split(line))
        if args.report is not None:
            check_report_name(args.report)
        with _raise_usage_errors():
            if args.report:
                args.report = _expand_path(args.report)
                check_output(args.report, HTML_PAGE)
            is_nested = _find_running(args) is not None
            session = self._session = _start(args)
        last = max((row.event_id or 0 for row in session.data.rows(Recompile)), default=0)
        self._cells.append(_WatchedCell(args, session, last, compute_totals(session.data)))
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
            watched = CellCode(raw_cell, result.execution_count or self.shell.execution_count)
            self._last = watched, cell.session
            self._watched[cell.session.data.path] = watched
        if not cell.args.quiet:
            # The summary line is about what the cell itself compiled.
            before: dict[str, Any] = {**cell.totals}
            after: dict[str, Any] = {**compute_totals(cell.session.data)}
            own = {name: after[name] - before[name] for name in ("compiles", "compile_s", "recompiles", "lost_s")}
            print(format_headline(own, find_gaps(cell.session.data)))
        if cell.args.report:
            with self._fail_cell_on_error(result):
                written = cell.session.report(cell.args.report)
                if not cell.args.quiet:
                    _print_written("report", written)
        if cell.args.fail_on_recompile and result.success:
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
    magics = f"get_ipython().magics_manager.registry[{CompileWatch.__name__!r}]"
    if match is not None and _asks_for_help(match[1]):
        return [f"{magics}.cell({match[1].strip()!r}, '')\n"]  # The cell does not run.
    if match is None or is_trial(match[1]):
        return lines
    return [f"{magics}.begin_cell({match[1].strip()!r})\n", *transform_cell_magic(lines[1:])]


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


def _start(args: Namespace) -> Session:
    return start(detail=args.detail or "full", calls=args.calls, my_code=args.my_code or ())


def _expand_path(text: str) -> str:
    """The typed path (IPython leaves the quotes around it) as an absolute one: the cell may change the folder."""
    return os.path.abspath(os.path.expanduser(unquote(text)))


def _print_written(action: str, path: Path) -> None:
    """Say which file was written, where, and how large it is."""
    what = "report" if action == "report" else "session"
    print(f"compilediag: wrote the {what} ({format_bytes(path.stat().st_size)}) to {path}")


def _check_recompiles(cell: _WatchedCell) -> None:
    """Raise Recompiled if the cell recompiled, or if recompiles were not collected."""
    data = cell.session.data
    causes = [row.title for row in data.rows(Recompile) if (row.event_id or 0) > cell.last_recompile]
    if causes:
        listed = "; ".join(f"{cause} ({count}x)" if count > 1 else cause for cause, count in Counter(causes).items())
        raise Recompiled(f"{len(causes)} in this cell: {listed}")
    if reason := explain_gaps(data).get("recompiles"):
        raise Recompiled(f"recompiles were not collected: {reason}")
