"""The arguments of `%compilewatch` and `%%compilewatch`: how they are parsed, explained and completed."""

from __future__ import annotations

import argparse
import difflib
import os
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult, context_matcher
from IPython.core.error import UsageError
from IPython.utils.process import arg_split

from ..system.interrupts import ignore
from ..watch import DETAILS
from .cell_source import FIX, TRIALS, TRY, is_trial

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


class _MagicParser(argparse.ArgumentParser):
    """A parser that raises UsageError, which IPython shows in one line, and that suggests names."""

    def __init__(self, prog: str):
        super().__init__(prog=prog, add_help=False, formatter_class=_format_wide)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of ending the process."""
        raise UsageError(f"{self.prog}: {message}")

    def parse(self, line: str) -> argparse.Namespace:
        """The arguments of a line. UsageError, in one line, if they are wrong."""
        args, unknown = self.parse_known_args(arg_split(line))
        if unknown:
            kind = "option" if unknown[0].startswith("-") else "argument"
            self.error(f"unknown {kind} {unknown[0]!r}; {_suggest(unknown[0], self.list_options())}")
        return args

    def list_options(self) -> list[str]:
        """All options, in order."""
        return [action.option_strings[0] for action in self._actions if action.option_strings]


def _format_wide(prog: str) -> argparse.HelpFormatter:
    return argparse.HelpFormatter(prog, max_help_position=32, width=_WIDTH)


def _suggest(name: str, names: Iterable[str]) -> str:
    """What to do about a wrong name: the closest one, or the list."""
    closest = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {closest[0]!r}?" if closest else f"choose one of: {', '.join(names)}"


def _add_watch_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--detail", choices=DETAILS, help="how much to record (default: full)")
    parser.add_argument("--calls", action="store_true", help="also count calls of compiled code (Python 3.12 or later)")
    parser.add_argument(
        "--my-code",
        metavar="PATH",
        action="append",
        help="folder, file or module that is your own code; can be repeated",
    )


def _make_line_parser() -> _MagicParser:
    parser = _MagicParser("%compilewatch")
    parser.add_argument("action", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("path", nargs="?", help=argparse.SUPPRESS)
    _add_watch_options(parser)
    return parser


def _make_cell_parser() -> _MagicParser:
    parser = _MagicParser("%%compilewatch")
    parser.add_argument("--report", metavar="PATH", help="write an HTML report when the cell ends")
    parser.add_argument("--quiet", action="store_true", help="show neither the dashboard nor the summary line")
    parser.add_argument("--fail-on-recompile", action="store_true", help="fail the cell if anything in it recompiles")
    _add_watch_options(parser)
    return parser


def _make_trial_parser() -> _MagicParser:
    parser = _MagicParser("compilewatch try | fix")
    parser.add_argument("action", choices=TRIALS, help=argparse.SUPPRESS)
    parser.add_argument("path", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument(
        "--skip",
        metavar="N",
        type=int,
        action="append",
        default=[],
        help="leave the cell In[N] out; can be repeated. A cell with the comment `# compilediag: skip` is left out too",
    )
    parser.add_argument("--fast", action="store_true", help="do not use the cells' own backend: no proof, no times")
    parser.add_argument("--cpu", action="store_true", help="hide the GPUs from the processes")
    return parser


LINE_PARSER = _make_line_parser()
CELL_PARSER = _make_cell_parser()
TRIAL_PARSER = _make_trial_parser()


def parse_line_arguments(line: str) -> argparse.Namespace:
    """The arguments of the line magic: `action` is a subcommand or None. UsageError, in one line, if they are wrong."""
    args = (TRIAL_PARSER if is_trial(line) else LINE_PARSER).parse(line)
    if args.action is not None and args.action not in ACTIONS:
        raise UsageError(f"%compilewatch has no subcommand {args.action!r}; {_suggest(args.action, ACTIONS)}")
    action = args.action or "on"
    if action in SUFFIXES and args.path is None:
        raise UsageError(f"%compilewatch {action} needs a path")
    if action not in SUFFIXES and args.path is not None:
        raise UsageError(f"%compilewatch {action} takes no path, but got {args.path!r}")
    if action == "report":
        check_report_name(args.path)
    return args


def parse_cell_arguments(line: str) -> argparse.Namespace:
    """The arguments of the cell magic. UsageError, in one line, if they are wrong."""
    args = CELL_PARSER.parse(line)
    if args.report is not None:
        check_report_name(args.report)
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


# Completion


@context_matcher()
def complete_arguments(context: CompletionContext) -> SimpleMatcherResult:
    """Complete a subcommand, an option, or the path behind `report` or `save`; nothing else is suggested there."""
    found = _ARGUMENTS.fullmatch(context.text_until_cursor)
    if found is None or (found[1] == "%%" and context.cursor_line > 0):
        return {"completions": [], "suppress": False}
    before, word = _split_last_word(found[2])
    options = list(_list_candidates(found[1] == "%%", before, word))
    return {
        "completions": [SimpleCompletion(text=option, type="param") for option in options],
        "suppress": bool(options),
        "matched_fragment": word,
    }


def _split_last_word(text: str) -> tuple[list[str], str]:
    """The complete words of a line, and the one that the cursor is in."""
    words = text.split()
    return (words, "") if not words or text[-1].isspace() else (words[:-1], words[-1])


def _list_candidates(is_cell: bool, before: list[str], word: str) -> Iterator[str]:
    parser = TRIAL_PARSER if is_trial(" ".join(before)) else CELL_PARSER if is_cell else LINE_PARSER
    previous = before[-1] if before else ""
    if previous == "--detail":
        names: list[str] = list(DETAILS)
    elif previous in ("report", "--report", "save") or previous == "--my-code":
        return (yield from _list_paths(word, SUFFIXES.get(previous.lstrip("-"), (".py",))))
    else:
        names = [option for option in parser.list_options() if option not in before or option in _REPEATED]
        if not before and not word.startswith("-"):
            names = [*TRIALS, *names] if is_cell else list(ACTIONS)
    yield from (name for name in names if name.startswith(word))


def _list_paths(word: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Folders and files that begin as the typed path does. A name with spaces would need quotes and is left out."""
    folder, start = os.path.split(word)
    with ignore(OSError):
        for path in sorted(Path(os.path.expanduser(folder) or ".").iterdir()):
            if not path.name.startswith(start) or (path.name.startswith(".") and not start) or " " in path.name:
                continue
            if path.is_dir() or path.suffix in suffixes:
                yield os.path.join(folder, path.name) + (os.sep if path.is_dir() else "")
