"""Logs read by several processes: each writes its logs as parts, session files that are added in the logs' order.

So the session is the same, event by event, for any number of processes. The processes run `main` of this module as
programs of their own, neither forked nor spawned from the user's: they share no lock, thread or `__main__` with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from ..errors import CompilediagError
from ..storage.store import Store
from .log_decoder import ReadTally
from .log_files import LogFile
from .log_session import LogWriter, read_log
from .progress_bar import ProgressBar

PROGRAM = "from compilediag.logs.log_workers import main; main()"
#: Most processes that are started by default: one process adds all parts.
MOST = 8
#: Bytes of logs per process; reading less takes less time than starting another one.
WORTH_BYTES = 4 << 20


class Answer(TypedDict, total=False):
    """What a worker reports of a log: either `error`, one line, or the other two."""

    tally: dict[str, Any]
    dropped: int
    error: str


class Part(NamedTuple):
    """One log that was read. `file` is its session file, `dropped` the number of texts that were dropped."""

    log: LogFile
    file: Path
    tally: ReadTally
    dropped: int


def choose_processes(logs: Sequence[LogFile], asked: int | None) -> int:
    """Return how many processes read `logs`: at most one per log; by default as many as there are cores and work."""
    if asked is not None and asked < 1:
        raise CompilediagError(f"{asked} is not a number of processes; give 1 or more")
    if asked is None:
        asked = min(_count_cores(), MOST, 1 + sum(log.size for log in logs) // WORTH_BYTES)
    return min(asked, max(1, len(logs)))


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_parts(logs: Sequence[LogFile], processes: int, max_texts: int, beside: Path) -> Iterator[Part]:
    """Yield the part of each log, in order. A part's file is deleted when the next part is asked for.

    The parts are in a temporary folder beside the file `beside`. `max_texts`: bytes of text that all processes keep
    together. CompilediagError for a log that can't be read.
    """
    with tempfile.TemporaryDirectory(dir=beside.parent, prefix=".compilediag-") as folder:
        crew = _Crew(logs, Path(folder), processes, max_texts // processes)
        try:
            for number, log in enumerate(logs):
                answer = crew.wait_for(number)
                if "error" in answer:
                    raise CompilediagError(answer["error"])
                file = crew.find_part(number)
                yield Part(log, file, ReadTally.from_json(answer["tally"]), answer["dropped"])
                file.unlink()
        finally:
            crew.end()


class _Crew:
    """The worker processes, and one thread for each that gives it one log after the other."""

    def __init__(self, logs: Sequence[LogFile], folder: Path, processes: int, max_texts: int):
        self._logs = logs
        self._folder = folder
        self._answers: dict[int, Answer] = {}
        self._news = threading.Condition()
        self._next = 0
        self._processes = [_start_worker(max_texts) for _ in range(processes)]
        for process in self._processes:
            threading.Thread(target=self._drive, args=(process,), daemon=True).start()

    def find_part(self, number: int) -> Path:
        """Return the session file of a log."""
        return self._folder / f"{number}.cdiag"

    def wait_for(self, number: int) -> Answer:
        """Return the answer for a log as soon as there is one."""
        with self._news:
            # With a time-out an interrupt is noticed on every system.
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
            for pipe in filter(None, (process.stdin, process.stdout)):
                with contextlib.suppress(OSError):
                    pipe.close()

    def _drive(self, process: subprocess.Popen[str]) -> None:
        while (number := self._take_number()) is not None:
            answer = self._ask(process, number)
            with self._news:
                self._answers[number] = answer
                self._news.notify_all()

    def _take_number(self) -> int | None:
        with self._news:
            number, self._next = self._next, self._next + 1
            return number if number < len(self._logs) else None

    def _ask(self, process: subprocess.Popen[str], number: int) -> Answer:
        log = self._logs[number]
        question = [str(log.path.absolute()), log.size, log.changed_ns, str(self.find_part(number))]
        assert process.stdin is not None and process.stdout is not None
        try:
            print(json.dumps(question), file=process.stdin, flush=True)
            answer: Answer = json.loads(process.stdout.readline())
        except (OSError, ValueError):
            return {"error": f"{log.path} was not read: its process ended with exit code {process.wait()}"}
        return answer


def _start_worker(max_texts: int) -> subprocess.Popen[str]:
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


# In the worker


def main() -> None:
    """Read the logs that stdin names, one line of JSON each, and answer each with a line of JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # An interrupt goes to the parent, which then ends this process.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    worker = LogWorker(int(sys.argv[1]))
    for line in sys.stdin:
        path, size, changed_ns, part = json.loads(line)
        answer = worker.read(LogFile(Path(path), size, changed_ns), Path(part))
        print(json.dumps(answer), file=answers, flush=True)


class LogWorker:
    """Writes each log to a session file of its own, a part. A text that an earlier part has is not written again."""

    def __init__(self, max_texts: int):
        self._writer = LogWriter(None, max_texts=max_texts)

    def read(self, log: LogFile, part: Path) -> Answer:
        """Read one log into the file `part`."""
        before = self._writer.dropped
        try:
            store = Store.create(part, {}, passing=True)
        except (OSError, sqlite3.Error) as error:
            return {"error": f"{part} can't be written: {error}"}
        try:
            self._writer.store = store
            tally = read_log(log, store, self._writer, ProgressBar(0), 0)
        except CompilediagError as error:
            return {"error": str(error)}
        finally:
            store.connection.close()
        return {"tally": tally.as_json(), "dropped": self._writer.dropped - before}
