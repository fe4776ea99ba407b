"""Logs read by several processes: each writes the logs that it is given as parts, which are added in their order.

So the session is the same, event by event, whatever the number of processes. The processes are programs of their own
(`worker`), neither forked nor spawned from the user's: no lock, no thread and no `__main__` of theirs is in the way.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from .log_decoder import ReadTally
from .log_files import LogFile

PROGRAM = "from compilediag.logs.worker import main; main()"
#: Processes that are begun unless more are asked for: the parts are added by one.
MOST = 8
#: Less than so much a process is read sooner than one is started.
WORTH_BYTES = 4 << 20


def processes_for(logs: Sequence[LogFile], asked: int | None) -> int:
    """How many processes read `logs`: as many as were asked for or there are cores, none without work."""
    if asked is not None and asked < 1:
        raise CompilediagError(f"{asked} processes can't read logs: 1 or more can")
    if asked is None:
        asked = min(_cores(), MOST, 1 + sum(log.size for log in logs) // WORTH_BYTES)
    return min(asked, max(1, len(logs)))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_parts(
    logs: Sequence[LogFile], processes: int, max_texts: int, beside: Path
) -> Iterator[tuple[LogFile, Path, ReadTally, int]]:
    """(log, its part, what was read, texts that were dropped) of each log, in order.

    A part is gone when the next one is asked for; it lies in a folder beside the file `beside`. `max_texts`: bytes of
    texts that are kept, all processes together. CompilediagError for a log that can't be read.
    """
    with tempfile.TemporaryDirectory(dir=beside.parent, prefix=".compilediag-") as folder:
        crew = _Crew(logs, Path(folder), processes, max_texts // processes)
        try:
            for number, log in enumerate(logs):
                answer = crew.answer(number)
                if "error" in answer:
                    raise CompilediagError(answer["error"])
                part = crew.part(number)
                yield log, part, ReadTally.from_json(answer["tally"]), answer["dropped"]
                part.unlink()
        finally:
            crew.end()


class _Crew:
    """The processes, and a thread for each that hands it one log after the other."""

    def __init__(self, logs: Sequence[LogFile], folder: Path, processes: int, max_texts: int):
        self._logs = logs
        self._folder = folder
        self._answers: dict[int, dict[str, Any]] = {}
        self._news = threading.Condition()
        self._next = 0
        self._processes = [_begin(max_texts) for _ in range(processes)]
        for process in self._processes:
            threading.Thread(target=self._drive, args=(process,), daemon=True).start()

    def part(self, number: int) -> Path:
        return self._folder / f"{number}.cdiag"

    def answer(self, number: int) -> dict[str, Any]:
        """What became of a log, when it is known."""
        with self._news:
            # The wait has an end, so that on every system an interrupt is heard.
            while number not in self._answers:
                self._news.wait(1.0)
            return self._answers.pop(number)

    def end(self) -> None:
        """End the processes, whatever they are doing."""
        with self._news:
            self._next = len(self._logs)
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()

    def _drive(self, process: subprocess.Popen[str]) -> None:
        while (number := self._take()) is not None:
            answer = self._asked(process, number)
            with self._news:
                self._answers[number] = answer
                self._news.notify_all()

    def _take(self) -> int | None:
        with self._news:
            number, self._next = self._next, self._next + 1
            return number if number < len(self._logs) else None

    def _asked(self, process: subprocess.Popen[str], number: int) -> dict[str, Any]:
        log = self._logs[number]
        question = [str(log.path.absolute()), log.size, log.changed_ns, str(self.part(number))]
        try:
            print(json.dumps(question), file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())
        except (OSError, ValueError):
            ended = process.wait()
            return {"error": f"{log.path} was not read: the process that read it ended with exit code {ended}"}


def _begin(max_texts: int) -> subprocess.Popen[str]:
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(max_texts)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": path},
    )
