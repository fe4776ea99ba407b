"""Runs a program in a process of its own, with empty compile caches, and keeps its output and its recording."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..diagnosis.change import Settings
from ..system.files import HISTORY, open_private, write_file
from .fork_server import ForkedProcess, ForkServer

#: Seconds between two looks at a running process.
_POLL_S = 0.5
_STDIN_PART = 1 << 16
#: Seconds that a launcher has to end the processes of its ranks.
_LAUNCHER_S = 30.0
#: What the outer calls into compiled code returned, in the folder of a run; see `trial_process.py`.
CALLS_FILE = "calls.json"
#: The name of the function that observes what is not compiled any more, for the changed copy of a program.
OBSERVE = "__compilediag_observe__"
#: The folder, in that of a run, of the first process that the program spawned. It is the run's if only it compiled.
FIRST_CHILD = "child-0"
#: Each process compiles from scratch, and the order of sets is the same in all.
_ENVIRONMENT = {
    HISTORY: "off",
    "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0",
    "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE": "0",
    "TORCHINDUCTOR_AUTOTUNE_REMOTE_CACHE": "0",
    "TORCHINDUCTOR_BUNDLED_AUTOTUNE_REMOTE_CACHE": "0",
    "TORCH_DYNAMO_AUTOMATIC_DYNAMIC_REMOTE_PGO": "0",
}


@dataclass(frozen=True)
class CellJob:
    """A notebook cell as typed, its number, and its text as Python. `may_raise`: the next cells run if it raises."""

    number: int
    text: str
    source: str
    may_raise: bool = False

    @property
    def typed(self) -> str:
        """The text with the lines of `source`: IPython drops empty lines at the beginning, and ends the last line."""
        lines = self.text.splitlines(keepends=True)
        first = next((number for number, line in enumerate(lines) if line.strip()), 0)
        return "".join(lines[first:]).rstrip("\n") + "\n"


@dataclass(frozen=True)
class ProgramJob:
    """What a process runs: a script, or a module if `is_module`, with its arguments; and the changes that apply to it.
    Or the cells of a notebook. `is_launched`: the command starts a process for each rank, which all make the changes;
    that of rank 0 is recorded. `python` is another interpreter than ours.

    `files` maps a file to its edited text and, for each line of that, the line of the file. `backend` replaces the
    program's own. `observes`: keep what the outer calls into compiled code return, and end the program after
    `stop_after` of them, at the first one after `stop_after_s` seconds, before the first one where the expression
    `stop_until` is true in the function that calls, or when nothing was compiled for long.
    `requests` names the sources that record on request only.
    """

    script: str
    args: tuple[str, ...] = ()
    is_module: bool = False
    is_launched: bool = False
    detail: str = "full"
    backend: str | None = None
    observes: bool = False
    stop_after: int | None = None
    stop_after_s: float | None = None
    stop_until: str | None = None
    stops_when_quiet: bool = False
    requests: tuple[str, ...] = ()
    settings: Settings = field(default_factory=dict)
    files: dict[str, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    cells: tuple[CellJob, ...] = ()
    python: str | None = None

    def write(self, file: Path, folder: Path) -> None:
        """Write it for the process, which records into `folder`."""
        write_file(file, json.dumps({**dataclasses.asdict(self), "folder": str(folder)}))


@dataclass(frozen=True)
class ProcessRun:
    """How a process ended. `exit_code` is None after a timeout, and negative after a signal. `wall` is in s.

    `raised` is the exception that ended the program, in one line. `is_torchs` is true if torch defines it, and `cell`
    is the number of the notebook cell that raised it. `problem` says why the program could not be started.
    `has_own_caches` is false if the program set other caches. `is_stopped`: it was ended after enough calls. `files`
    are the program's own that it imported, and `modules` all others. `sets_environment`: the program changed it.
    `has_gpu`: torch found one. `starts_processes`: the program started Python processes; known if calls are observed.
    `uncached` counts the graphs that Inductor's caches would not keep; known if its backend was replaced.
    """

    session: Path
    stdout: Path
    exit_code: int | None
    wall: float
    raised: str | None = None
    is_torchs: bool = False
    cell: int | None = None
    problem: str | None = None
    has_own_caches: bool = True
    last_error: str = ""
    is_stopped: bool = False
    files: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    sets_environment: bool = False
    starts_processes: bool = False
    has_gpu: bool = False
    uncached: int = 0


class ProcessRunner:
    """Runs jobs one after the other in `folder`. `command` is what the interpreter runs; the job's file is added to
    it.

    A process is ended after `timeout` seconds, with the processes that it started. All processes read the same standard
    input: what the first one is sent is kept for the others. A terminal is not read, and nothing is without
    `reads_input`. They start in the folder `cwd`, or in that of this process, with its environment and `variables`.
    Once `cancelled` is set, a run is ended as by an interrupt: KeyboardInterrupt.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        timeout: float | None,
        progress: TrialProgress,
        cwd: str | None = None,
        reads_input: bool = True,
        variables: Mapping[str, str] | None = None,
        cancelled: threading.Event | None = None,
    ):
        self._cwd = cwd
        self._reads_input = reads_input
        self._command = command
        self._folder = folder
        self.timeout = timeout
        self._progress = progress
        self._variables = variables or {}
        self._cancelled = cancelled or threading.Event()
        self._numbers = itertools.count(1)
        self._server: ForkServer | None = None

    def fork_from_now_on(self, modules: Sequence[str]) -> None:
        """Let a server import these modules, and fork for each run, until `fork_no_more`."""
        self._server = ForkServer(
            [sys.executable, *self._command], modules, self._folder, self._make_environment(self._folder)
        )

    def fork_no_more(self) -> None:
        """Start a fresh interpreter for each run again."""
        if self._server is not None:
            self._server.stop()
        self._server = None

    def cancel(self) -> None:
        """End the runs of other threads, as by an interrupt."""
        self._cancelled.set()

    def run(self, job: ProgramJob, what: str) -> ProcessRun:
        """Run one job to its end, beside those of other threads. `what` describes it for the progress display."""
        folder = self._folder / f"run-{next(self._numbers)}"
        folder.mkdir(mode=0o700)
        job.write(folder / "job.json", folder)
        self._progress.begin_run(what)
        begin = time.monotonic()
        input_file = self._folder / "stdin"
        # A terminal is not read. The first process reads a pipe, the others the file in which what it read is kept.
        first = subprocess.PIPE if self._reads_input and not os.isatty(0) else subprocess.DEVNULL
        with (
            open(folder / "stdout", "wb", opener=open_private) as stdout,
            open(folder / "stderr", "wb", opener=open_private) as stderr,
            open(input_file, "rb") if input_file.exists() else contextlib.nullcontext(first) as stdin,
        ):
            environment = self._make_environment(folder)
            process: subprocess.Popen[bytes] | ForkedProcess | None = None
            if self._server is not None and self._server.is_alive:
                files = (input_file if input_file.exists() else os.devnull, folder / "stdout", folder / "stderr")
                process = self._server.start(folder / "job.json", [*map(str, files)], environment, self._cwd)
            process = process or subprocess.Popen(
                [job.python or sys.executable, *self._command, str(folder / "job.json")],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=environment,
                cwd=self._cwd,
                start_new_session=True,
            )
            if process.stdin is not None:
                # Standard input is kept for the next processes. A thread reads it: it may never end.
                kept = open(input_file, "wb", buffering=0, opener=open_private)  # noqa: SIM115
                threading.Thread(target=_copy_stdin, args=(process.stdin, kept), daemon=True).start()
            exit_code = self._wait(process, what, begin, job.is_launched)
        wall = time.monotonic() - begin
        return _read_run(folder, exit_code, wall)

    def _make_environment(self, folder: Path) -> dict[str, str]:
        """The environment of a process: as ours, with caches of its own."""
        caches = folder / "caches"
        own = {"TORCHINDUCTOR_CACHE_DIR": str(caches), "TRITON_CACHE_DIR": str(caches / "triton")}
        # pytest imports files that it rewrites with a loader of its own, which would not load edited ones.
        pytest = {"PYTEST_ADDOPTS": f"{os.environ.get('PYTEST_ADDOPTS', '')} --assert=plain".strip()}
        return {"PYTHONHASHSEED": "0", **os.environ, **_ENVIRONMENT, **own, **pytest, **self._variables}

    def _wait(
        self, process: subprocess.Popen[bytes] | ForkedProcess, what: str, begin: float, is_launcher: bool
    ) -> int | None:
        """Wait for the end of a process; None if it took too long. An interrupt ends it too."""
        try:
            while True:
                elapsed = time.monotonic() - begin
                if self.timeout is not None and elapsed >= self.timeout:
                    _kill(process, is_launcher)
                    return None
                with contextlib.suppress(subprocess.TimeoutExpired):
                    rest = _POLL_S if self.timeout is None else min(_POLL_S, self.timeout - elapsed)
                    return process.wait(rest)
                if self._cancelled.is_set():
                    raise KeyboardInterrupt
                self._progress.describe(f"{what}, {round(elapsed)} s")
        except BaseException:
            _kill(process, is_launcher)
            raise


def _copy_stdin(target: Any, kept: Any) -> None:
    """Copy standard input until it ends. Not with `sys.stdin`: its lock would be held while this thread waits."""
    with contextlib.suppress(OSError, ValueError), kept, target:
        while part := os.read(0, _STDIN_PART):
            kept.write(part)
            target.write(part)
            target.flush()


def _kill(process: subprocess.Popen[bytes] | ForkedProcess, is_launcher: bool) -> None:
    """End a process and those that it started. A launcher ends its own, which are in sessions of their own."""
    if is_launcher:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            os.kill(process.pid, signal.SIGTERM)
            process.wait(_LAUNCHER_S)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read_run(folder: Path, exit_code: int | None, wall: float) -> ProcessRun:
    found, streams = _read_values(folder), folder
    child = folder / FIRST_CHILD
    if (child / "run.cdiag").exists() and not found.get("has_compiled"):
        ended = _read_values(child)
        found |= {"is_stopped": ended.get("is_stopped", False), "has_gpu": ended.get("has_gpu", False)}
        folder, streams = child, folder
    known = {field.name for field in dataclasses.fields(ProcessRun)}
    result: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in found.items() if name in known
    }
    with (streams / "stderr").open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - 4096))
        last_error = next(reversed(stream.read().decode(errors="replace").strip().splitlines()), "")
    return ProcessRun(folder / "run.cdiag", streams / "stdout", exit_code, wall, last_error=last_error, **result)


def _read_values(folder: Path) -> dict[str, Any]:
    """What a process wrote of its end; nothing if it ended without its exit functions: by os._exit, or by a signal."""
    try:
        return {**json.loads((folder / "result.json").read_text())}
    except (OSError, ValueError):
        return {}


# Progress: a bar in a notebook, a line on stderr in a terminal, and nothing elsewhere


class ProgressDisplay(Protocol):
    """Where progress is shown: the number of the current run, of how many, and what it does."""

    def show(self, number: int, total: int, what: str) -> None: ...
    def end(self) -> None: ...


class TrialProgress:
    """Counts the runs of a trial and shows which one is running."""

    def __init__(self, total: int, display: ProgressDisplay | None = None):
        self.total = total
        self._done = 0
        self._display = display or _find_display()

    def begin_run(self, what: str) -> None:
        """Show that the next run begins. More runs than planned extend the total."""
        self._done += 1
        self.total = max(self.total, self._done)
        self.describe(what)

    def describe(self, what: str) -> None:
        """Show what the current run does."""
        if self._display is not None:
            self._display.show(self._done, self.total, what)

    def end(self) -> None:
        """Remove what is shown."""
        if self._display is not None:
            self._display.end()


def _describe_run(number: int, total: int, what: str) -> str:
    return f"compilediag: run {number} of {total}: {what}"


class _TerminalLine:
    """One line on stderr, which is overwritten."""

    def show(self, number: int, total: int, what: str) -> None:
        print(f"\r\x1b[K{_describe_run(number, total, what)[:200]}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _NotebookBar:
    """A bar in the output of the cell that runs."""

    def __init__(self) -> None:
        self._handle: Any = None

    def show(self, number: int, total: int, what: str) -> None:
        from IPython.display import HTML, display

        text = html.escape(_describe_run(number, total, what))
        bar = HTML(f'<progress value="{number - 1}" max="{total}" aria-label="progress"></progress> {text}')
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
