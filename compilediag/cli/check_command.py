"""`compilediag check`: exit code 1, with the causes, if a session exceeds a limit."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compilediag.errors import CompilediagError

from .output import print_text, print_written

if TYPE_CHECKING:
    from compilediag.session import Session


class CheckCommand:
    """Fail if torch.compile compiled more than allowed, and show why.

    PATH is a session file (.cdiag), a folder of them, or TORCH_TRACE logs. After `--` it is a script with its
    arguments, SCRIPT.py [ARGS...], which is run and recorded; if the script fails, its exit code is returned. Exit code
    1 if a limit is exceeded, or if nothing was compiled, so that the limits can't be checked; 2 if PATH is no session
    or script and has no record of TORCH_TRACE.
    """

    name = "check"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="a session, logs, or -- SCRIPT.py [ARGS...]")
        parser.add_argument("--max-recompiles", type=int, metavar="N", help="most recompiles allowed")
        parser.add_argument("--max-compile-s", type=float, metavar="S", help="most seconds of compile time allowed")
        parser.add_argument("--max-graph-breaks", type=int, metavar="N", help="most graph breaks allowed")
        parser.add_argument("--no-silent-eager", action="store_true", help="fail if a function falls back to eager")
        parser.add_argument(
            "--baseline",
            metavar="FILE",
            help="fail on causes of recompiles that are not in this session, or in these logs",
        )
        parser.add_argument("--report", metavar="OUT.html", help="write the report, whether or not the check fails")

    def run(self, args: argparse.Namespace) -> int:
        from compilediag.diagnosis.gate import Limits, check
        from compilediag.session import load_any
        from compilediag.views.totals import compute_totals, describe_totals

        names = ("max_recompiles", "max_compile_s", "max_graph_breaks", "no_silent_eager")
        baseline = None if args.baseline is None else load_any(args.baseline).data
        limits = Limits(**{name: getattr(args, name) for name in names}, baseline=baseline)
        if not limits.are_any:
            raise CompilediagError("no limit given; pass --max-recompiles, --no-silent-eager, --baseline, ...")
        with tempfile.TemporaryDirectory(prefix="compilediag-") as folder:
            session, code = _load_or_run(args.paths, Path(folder, "run.cdiag"), args.no_silent_eager)
            if args.report:
                print_written(session.report(args.report))
            broken = check(session.data, limits)
            totals = describe_totals(compute_totals(session.data))
            print(f"compilediag check: {'FAILED' if broken else 'passed'}: {totals}")
            for limit in broken:
                print_text(str(limit))
        return code or int(bool(broken))


def _load_or_run(paths: list[str], file: Path, calls: bool) -> tuple[Session, int]:
    """Return the session to check, and the exit code of the script, if PATH is one. `calls`: count its calls."""
    from compilediag.logs.inputs import InputKind, check_input
    from compilediag.session import ingest, load, load_any

    found = check_input(paths[0], InputKind.SESSION, InputKind.LOGS, InputKind.SCRIPT)
    if found.kind is not InputKind.SCRIPT:
        return (load_any(paths[0]) if len(paths) == 1 else ingest(paths)), 0
    options = ["--quiet", *(["--calls"] if calls else []), "--save", os.fspath(file)]
    command = [sys.executable, "-m", "compilediag", "run", *options, *paths]
    code = subprocess.run(command).returncode
    if not file.exists():
        raise CompilediagError(f"{paths[0]} was not run; see the messages above")
    return load(file), code if code >= 0 else 128 - code
