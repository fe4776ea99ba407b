"""`compilediag check`: exit code 1, with the causes, if a session breaks a limit."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from compilediag.errors import CompilediagError
from compilediag.output_paths import check_output

if TYPE_CHECKING:
    from compilediag.session import Session
    from compilediag.storage.data import SessionData


class Check:
    """Fail if there was more compiling than allowed, and say why.

    PATH is a session file (.cdiag), or logs of TORCH_TRACE. Behind `--` it is a script, SCRIPT.py with its arguments,
    which is run under watch; if it fails, so does this, with its exit code. Exit code 1 if a limit is broken, or
    nothing was observed.
    """

    name = "check"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("paths", metavar="PATH", nargs="+", help="a session, logs, or -- SCRIPT.py [ARGS...]")
        parser.add_argument("--max-recompiles", type=int, metavar="N", help="recompiles that are allowed")
        parser.add_argument("--max-compile-s", type=float, metavar="S", help="seconds of compiling that are allowed")
        parser.add_argument("--max-graph-breaks", type=int, metavar="N", help="graph breaks that are allowed")
        parser.add_argument("--no-silent-eager", action="store_true", help="no compile may be given up")
        parser.add_argument(
            "--baseline", metavar="FILE", help="a session or logs: causes that it lacks are not allowed"
        )
        parser.add_argument("--report", metavar="OUT.html", help="write the session's report, whatever the outcome")

    def run(self, args: argparse.Namespace) -> int:
        if args.report:
            check_output(args.report)

        from compilediag.diagnosis.gate import Limits, check
        from compilediag.views.totals import compute_totals, describe_totals

        names = ("max_recompiles", "max_compile_s", "max_graph_breaks", "no_silent_eager")
        limits = Limits(**{name: getattr(args, name) for name in names}, baseline=_baseline(args.baseline))
        if not limits.are_any:
            raise CompilediagError("nothing to check: give --max-recompiles, --no-silent-eager, --baseline, ...")
        with tempfile.TemporaryDirectory(prefix="compilediag-") as folder:
            session, code = _session(args.paths, Path(folder, "run.cdiag"), args.no_silent_eager)
            if args.report:
                session.report(args.report)
            broken = check(session.data, limits)
            totals = describe_totals(compute_totals(session.data))
            print(f"compilediag check: {'FAILED' if broken else 'passed'}: {totals}")
            for limit in broken:
                print(limit)
        return code or int(bool(broken))


def _baseline(path: str | None) -> SessionData | None:
    from compilediag.logs import opened

    return None if path is None else opened(path).data


def _session(paths: list[str], file: Path, calls: bool) -> tuple[Session, int]:
    """What is to be checked, and the exit code of the script if there is one. `calls`: a script's are counted."""
    from compilediag.logs import ingest, opened
    from compilediag.session import load

    if not paths[0].endswith(".py"):
        return (opened(paths[0]) if len(paths) == 1 else ingest(paths)), 0
    options = ["--quiet", *(["--calls"] if calls else []), "--save", os.fspath(file)]
    command = [sys.executable, "-m", "compilediag", "run", *options, *paths]
    code = subprocess.run(command).returncode
    if not file.exists():
        raise CompilediagError(f"{paths[0]} was not run")
    return load(file), code if code >= 0 else 128 - code
