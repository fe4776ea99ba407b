"""Logs read by several processes: each writes its logs as parts, session files that are added in the logs' order.

So the session is the same, event by event, for any number of processes.
"""

from __future__ import annotations

import contextlib
import gc
import marshal
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from ..errors import CompilediagError
from ..storage.store import Store
from .crew import Crew, Question, answer_questions
from .log_decoder import ReadTally
from .log_files import LogFile
from .log_parts import READ_PART, PartReader
from .log_session import LogWriter, read_log
from .progress_bar import ProgressBar
from .rank_scan import SCAN_LOGS, answer_scan

#: Most processes that are started by default: one process adds all parts.
MOST = 8
#: Bytes of logs per process; reading less takes less time than starting another one.
WORTH_BYTES = 4 << 20
#: The same of one log, whose records come together in one process.
WORTH_SPLITTING = 24 << 20
READ_LOG = "log"
#: New objects until Python looks for cycles.
RARELY = 50_000


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
    """Return how many processes read `logs`: by default as many as there are cores and work."""
    if asked is not None and asked < 1:
        raise CompilediagError(f"{asked} is not a number of processes; give 1 or more")
    if asked is not None:
        return asked
    size, largest = sum(log.size for log in logs), max((log.size for log in logs), default=0)
    worth = max(min(len(logs), 1 + size // WORTH_BYTES), 1 + largest // WORTH_SPLITTING)
    return min(_count_cores(), MOST, worth)


def _count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_parts(logs: Sequence[LogFile], processes: int, max_texts: int, beside: Path) -> Iterator[Part]:
    """Yield the part of each log, in order. A part's file is deleted when the next part is asked for.

    The parts are in a temporary folder beside the file `beside`. `max_texts`: bytes of text that all processes keep
    together. CompilediagError for a log that can't be read.
    """
    workers = min(processes, len(logs))
    with tempfile.TemporaryDirectory(dir=beside.parent, prefix=".compilediag-") as folder:
        files = [Path(folder, f"{number}.cdiag") for number in range(len(logs))]
        questions = (_ask_for_log(log, file, processes // workers) for log, file in zip(logs, files, strict=True))
        with Crew(questions, workers, len(logs), [str(max_texts // workers)]) as crew:
            for log, file, answer in zip(logs, files, crew.take_answers(), strict=True):
                yield Part(log, file, ReadTally.from_json(answer["tally"]), answer["dropped"])
                file.unlink()


def _ask_for_log(log: LogFile, part: Path, processes: int) -> Question:
    return [READ_LOG, *log.as_json(), str(part), processes]


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


# In the worker


def main() -> None:
    """Read or scan the logs, or read the parts of logs, that stdin names."""
    worker, reader = LogWorker(int(sys.argv[1])), PartReader()

    def answer(question: Question) -> bytes:
        if question[0] == READ_PART:
            return reader.read(question)
        if question[0] == SCAN_LOGS:
            return answer_scan(question)
        _, *log, part, processes = question
        return marshal.dumps({**worker.read(LogFile.from_json(log), Path(part), processes)})

    with collect_rarely():
        answer_questions(answer)


class LogWorker:
    """Writes each log to a session file of its own, a part. A text that an earlier part has is not written again."""

    def __init__(self, max_texts: int):
        self._writer = LogWriter(None, max_texts=max_texts)

    def read(self, log: LogFile, part: Path, processes: int = 1) -> Answer:
        """Read one log into the file `part`."""
        before = self._writer.dropped
        try:
            store = Store.create(part, {}, passing=True)
        except (OSError, sqlite3.Error) as error:
            return {"error": f"{part} can't be written: {error}"}
        try:
            store.begin_bulk()
            self._writer.store = store
            tally = read_log(log, store, self._writer, ProgressBar(0), 0, processes)
        except CompilediagError as error:
            return {"error": str(error)}
        finally:
            store.connection.close()
        return {"tally": tally.as_json(), "dropped": self._writer.dropped - before}
