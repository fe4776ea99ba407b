"""Other processes that do work: each writes its answers to its standard output, where they wait until they are taken.

The processes run a program of their own, neither forked nor spawned from the user's: they share no lock, thread or
`__main__` with it. (`multiprocessing`, and with it `concurrent.futures`, imports the user's script once more in each
process, so the script would need a guard.) A process whose answers are not taken waits, so few of them are in memory.
"""

from __future__ import annotations

import contextlib
import gc
import json
import marshal
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import CompilediagError

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None  # type: ignore[assignment]

PROGRAM = "from {module} import {name} as work; from compilediag.logs.workers import answer; answer(work)"
#: Bytes that a process can write before they are read: most that Linux allows every user.
PIPE_BYTES = 1 << 20
#: New objects until Python looks for cycles.
RARELY = 50_000
_SIZE = struct.Struct("<Q")
#: What a process does: a function of a module, which yields the answers. Its arguments are JSON, its answers are bytes,
#: texts, numbers, lists and tuples.
Work = Callable[..., Iterator[Any]]


class Worker:
    """One process that does `work`."""

    def __init__(self, work: Work):
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(module=work.__module__, name=work.__name__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        if hasattr(fcntl, "F_SETPIPE_SZ"):
            with contextlib.suppress(OSError):
                fcntl.fcntl(self._stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def begin(self, arguments: Sequence[Any]) -> None:
        """Let the process work. One that has ended is noticed when its answer is taken."""
        with contextlib.suppress(OSError), self._stdin as stdin:
            stdin.write(json.dumps(arguments).encode())

    def take(self, log: Path) -> Any:
        """Return the next answer, which is about `log`. CompilediagError if the work, or the process, has failed."""
        try:
            size = _SIZE.unpack(self._stdout.read(_SIZE.size))[0]
            error, found = marshal.loads(self._stdout.read(size))
        except (OSError, ValueError, EOFError, TypeError, struct.error):
            error = f"{log} was not read: its process ended with exit code {self._process.wait()}"
        if error is not None:
            raise CompilediagError(error)
        return found

    def end(self) -> None:
        """End the process immediately."""
        self._process.kill()
        self._process.wait()
        self._stdout.close()


@contextlib.contextmanager
def start_workers(work: Work, arguments: Sequence[Sequence[Any]]) -> Iterator[list[Worker]]:
    """Start one process for each list of arguments; leaving the block ends them."""
    workers: list[Worker] = []
    try:
        workers += (Worker(work) for _ in arguments)
        for worker, own in zip(workers, arguments, strict=True):
            worker.begin(own)
        yield workers
    finally:
        for worker in workers:
            worker.end()


@contextlib.contextmanager
def collect_rarely() -> Iterator[None]:
    """In the block, Python looks for cycles less often: events have none, and a twentieth of the time is lost."""
    before = gc.get_threshold()
    if 0 < before[0] < RARELY:
        gc.set_threshold(RARELY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


# In the process


def answer(work: Work) -> None:
    """Do the work whose arguments are on stdin. An error that the user can fix is its last answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # An interrupt goes to the parent, which then ends this process.
    answers: BinaryIO = os.fdopen(os.dup(1), "wb")
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # What else is printed here is no answer.
    with collect_rarely():
        try:
            for found in work(*json.load(sys.stdin.buffer)):
                _write(answers, (None, found))
        except CompilediagError as error:
            _write(answers, (str(error), None))


def _write(answers: BinaryIO, found: tuple[str | None, Any]) -> None:
    data = marshal.dumps(found)
    answers.write(_SIZE.pack(len(data)))
    answers.write(data)
    answers.flush()
