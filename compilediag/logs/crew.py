"""Processes that answer questions, each one question at a time; the answers come in the order of the questions.

The processes run a program of their own, neither forked nor spawned from the user's: they share no lock, thread or
`__main__` with it. A question is a line of JSON, an answer the bytes of what `marshal` makes of it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import marshal
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, BinaryIO, Self

from ..errors import CompilediagError

try:
    import fcntl
except ImportError:  # Windows.
    fcntl = None  # type: ignore[assignment]

#: Bytes that a process can write before they are read: most that Linux allows every user.
PIPE_BYTES = 1 << 20
PROGRAM = "from compilediag.logs.log_workers import main; main()"
#: What is asked of a process, about which log, and details.
Question = list[Any]
_SIZE = struct.Struct("<Q")


class Crew:
    """The processes, and one thread for each that hands it one question after the other. Leaving the block ends them.

    The second part of a question is the path of the log it is about. `ahead`: most answers that wait to be taken.
    `arguments` are those of the program: the bytes of text that it may keep.
    """

    def __init__(self, questions: Iterable[Question], processes: int, ahead: int, arguments: Sequence[str] = ("0",)):
        self._questions = iter(questions)
        self._ahead = ahead
        self._answers: dict[int, bytes | CompilediagError] = {}
        self._news = threading.Condition()
        self._asked = self._taken = 0
        self._is_over = False
        self._processes = [_start_process(arguments) for _ in range(processes)]
        for process in self._processes:
            threading.Thread(target=self._drive, args=(process,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.end()

    def take_answers(self) -> Iterator[Any]:
        """Yield the answers. CompilediagError for the first question that has none."""
        for number in itertools.count():
            with self._news:
                # With a time-out an interrupt is noticed on every system.
                while number not in self._answers and not (self._is_over and number >= self._asked):
                    self._news.wait(1.0)
                if number not in self._answers:
                    return
                answer = self._answers.pop(number)
                self._taken = number + 1
                self._news.notify_all()
            if isinstance(answer, CompilediagError):
                raise answer
            found = marshal.loads(answer)
            if isinstance(found, dict) and "error" in found:
                raise CompilediagError(found["error"])
            yield found

    def end(self) -> None:
        """End the processes immediately."""
        with self._news:
            self._is_over = True
            self._news.notify_all()
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()
            for pipe in filter(None, (process.stdin, process.stdout)):
                with contextlib.suppress(OSError):
                    pipe.close()

    def _drive(self, process: subprocess.Popen[bytes]) -> None:
        while (asked := self._take_question()) is not None:
            number, question = asked
            answer = _ask(process, question)
            with self._news:
                self._answers[number] = answer
                self._news.notify_all()

    def _take_question(self) -> tuple[int, Question] | None:
        with self._news:
            while not self._is_over and self._asked - self._taken >= self._ahead:
                self._news.wait(1.0)
            if self._is_over:
                return None
            try:
                question = next(self._questions, None)
            except OSError as error:
                question = None
                self._answers[self._asked] = CompilediagError(f"a log can't be read to its end: {error}")
                self._asked += 1
            if question is None:
                self._is_over = True
                self._news.notify_all()
                return None
            self._asked += 1
            return self._asked - 1, question


def _ask(process: subprocess.Popen[bytes], question: Question) -> bytes | CompilediagError:
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(question).encode() + b"\n")
        process.stdin.flush()
        size = _SIZE.unpack(process.stdout.read(_SIZE.size))[0]
        answer = process.stdout.read(size)
    except (OSError, ValueError, struct.error):
        answer = b""
    if not answer:
        return CompilediagError(f"{question[1]} was not read: its process ended with exit code {process.wait()}")
    return answer


def _start_process(arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    package = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )
    _widen(process.stdout)
    return process


def _widen(pipe: IO[bytes] | None) -> None:
    """Give a pipe a larger buffer, if the system can: each read waits for the interpreter lock."""
    if pipe is not None and fcntl is not None and hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


# In the process


def answer_questions(answer: Callable[[Question], bytes]) -> None:
    """Answer the questions on stdin until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # An interrupt goes to the parent, which then ends this process.
    answers: BinaryIO = os.fdopen(os.dup(1), "wb")
    with contextlib.suppress(OSError):
        os.dup2(2, 1)  # What else is printed here is no answer.
    for line in sys.stdin.buffer:
        data = answer(json.loads(line))
        answers.write(_SIZE.pack(len(data)) + data)
        answers.flush()
