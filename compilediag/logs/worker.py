"""A process that reads logs for another one: a line of JSON names a log and where its events go, a line answers.

It is started by `parallel`, as a program of its own: what the user's program has imported, opened or locked is not
in it. An answer is what was read (a tally), or why the log could not be.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from ..errors import CompilediagError
from ..storage.store import Store
from .log_files import LogFile
from .progress import Progress
from .reading import read_log
from .writing import LogWriter


def main() -> None:
    """Read what stdin asks for, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # A Ctrl-C is the parent's, which then ends this one.
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

    def read(self, log: LogFile, part: Path) -> dict[str, Any]:
        """{"tally", "dropped"} of the log, or {"error"}."""
        before = self._writer.dropped
        try:
            store = Store.create(part, {}, passing=True)
        except (OSError, sqlite3.Error) as error:
            return {"error": f"{part} can't be written: {error}"}
        try:
            self._writer.store = store
            tally = read_log(log, store, self._writer, Progress(0), 0)
        except CompilediagError as error:
            return {"error": str(error)}
        finally:
            store.connection.close()
        return {"tally": tally.as_json(), "dropped": self._writer.dropped - before}
