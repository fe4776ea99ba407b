"""What an assistant sees of a program: one run of it, through one of three sources. `./diagnose` starts this.

diagnose                     run program.py, print its result, and what the source says
diagnose show NAME           print one more file of the last run (tlparse)
diagnose more FINGERPRINT    print the findings after this one, of the last run (findings)
diagnose fix                 print what `compilediag fix` finds in runs of its own (findings, which name that command)

What is printed is counted, and the files of each run are kept: the benchmark measures them afterwards.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SOURCES = ("logs", "tlparse", "findings")
#: Longest text that one call prints, as the shells of assistants cut theirs.
MOST = 30_000
#: Seconds that one run may take.
TIMEOUT = 300
NOT_COPIED = shutil.ignore_patterns("__pycache__", "diagnose", "TASK.md", ".*")


@dataclass(frozen=True)
class Desk:
    """The folder that an assistant works in, and, out of its sight, what is counted: `versions/N` are the files of run
    N, `runs` is the number of runs, `read` that of characters that were printed, `last` is what the last run wrote.
    """

    work: Path
    state: Path

    @property
    def versions(self) -> list[Path]:
        """Copies of the program's files, one for each run, in order."""
        return sorted((self.state / "versions").glob("*"), key=lambda path: int(path.name))

    def count(self, name: str, more: int = 0) -> int:
        """Add to a number, and return it."""
        path = self.state / name
        path.write_text(str(more + (int(path.read_text()) if path.exists() else 0)))
        return int(path.read_text())

    @property
    def last(self) -> Path:
        """Where the source writes."""
        return self.state / "last"

    def keep_run(self) -> None:
        """Copy the program's files as they are now, and empty `last`."""
        shutil.copytree(self.work, self.state / "versions" / str(len(self.versions)), ignore=NOT_COPIED)
        self.count("runs", 1)
        shutil.rmtree(self.last, ignore_errors=True)
        self.last.mkdir()

    def print(self, text: str) -> None:
        """Print a text, cut like in a shell, and count it."""
        if len(text) > MOST:
            text = f"{text[: MOST // 2]}\n... {len(text) - MOST} characters are left out ...\n{text[-MOST // 2 :]}"
        self.count("read", len(text))
        print(text)


def run_with_logs(desk: Desk) -> str:
    """The program's output and torch's logs, as a terminal shows them."""
    return run_program(desk, [sys.executable, "program.py"], {"TORCH_LOGS": "recompiles,graph_breaks"})


def run_with_tlparse(desk: Desk) -> str:
    """The program's output, the first page of tlparse's report as text, and the names of its other files."""
    traces, report = desk.last / "traces", desk.last / "report"
    said = run_program(desk, [sys.executable, "program.py"], {"TORCH_TRACE": str(traces)})
    logs = sorted(traces.glob("*.log"))
    if not logs:
        return f"{said}\nNothing was compiled."
    subprocess.run([find_tlparse(), str(logs[0]), "-o", str(report), "--no-browser"], capture_output=True, check=True)
    names = [
        f"{path.relative_to(report)} ({path.stat().st_size} bytes)"
        for path in sorted(report.rglob("*"))
        if path.is_file() and path.suffix not in (".log", ".jsonl")
    ]
    pages = [to_text(report / name) for name in ("index.html", "failures_and_restarts.html")]
    return "\n".join([said, *pages, "Files (diagnose show NAME):", *names])


def run_with_findings(desk: Desk) -> str:
    """The program's output, and the findings as JSON."""
    session = desk.last / "run.cdiag"
    run = [sys.executable, "-m", "compilediag", "run", "--quiet", "--save", str(session), "program.py"]
    said = run_program(desk, run, {})
    return f"{said}\n{print_findings(session)}"


def print_findings(session: Path, *options: str) -> str:
    """The findings of a session as JSON."""
    if not session.exists():
        return "Nothing was recorded."
    command = [sys.executable, "-m", "compilediag", "findings", "--json", *options, str(session)]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout or done.stderr


def search_fix(desk: Desk) -> str:
    """What `compilediag fix` has proven in runs of its own, as JSON; the runs are counted."""
    command = [sys.executable, "-m", "compilediag", "fix", "--fast", "--json", "program.py"]
    done = subprocess.run(command, cwd=desk.work, capture_output=True, text=True)
    if done.stdout:
        desk.count("runs", json.loads(done.stdout)["runs"])
    return done.stdout or done.stderr


def run_program(desk: Desk, command: list[str], environment: dict[str, str]) -> str:
    """Run a command in the folder of the program; what it prints, and how it ended."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            command,
            cwd=desk.work,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return f"[stopped after {TIMEOUT} s]"
    return f"{done.stdout}[exit code {done.returncode}, {time.monotonic() - start:.1f} s]"


def find_tlparse() -> str:
    """The tlparse program: TLPARSE names it, or it is on PATH."""
    program = os.environ.get("TLPARSE") or shutil.which("tlparse")
    if program is None:
        sys.exit("tlparse is not installed: pip install tlparse, or set TLPARSE to its path.")
    return program


def to_text(page: Path) -> str:
    """The text of an HTML page, without its scripts, styles and tags."""
    text = re.sub(r"(?s)<(script|style)\b.*?</\1>", "", page.read_text())
    text = html.unescape(re.sub(r"<[^>]+>", "", text))
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


RUN = {"logs": run_with_logs, "tlparse": run_with_tlparse, "findings": run_with_findings}


def main() -> None:
    """Answer one call of `./diagnose`; the harness passes the folders and the source first."""
    work, state, source, *arguments = sys.argv[1:]
    desk = Desk(Path(work), Path(state))
    match arguments:
        case []:
            desk.keep_run()
            desk.print(RUN[source](desk))
        case ["show", name] if source == "tlparse":
            path = (desk.last / "report" / name).resolve()
            if not path.is_relative_to(desk.last.resolve()) or not path.is_file():
                sys.exit(f"{name} is not a file of the last run.")
            desk.print(to_text(path) if path.suffix == ".html" else path.read_text())
        case ["more", fingerprint] if source == "findings":
            desk.print(print_findings(desk.last / "run.cdiag", "--after", fingerprint))
        case ["fix"] if source == "findings":
            desk.print(search_fix(desk))
        case _:
            sys.exit(f"Unknown arguments: {' '.join(arguments)}. TASK.md explains them.")


if __name__ == "__main__":
    main()
