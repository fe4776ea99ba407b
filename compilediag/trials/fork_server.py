"""A process that has imported torch and a program's libraries, and forks for each run: seconds less for each.

Not where the program depends on a fresh interpreter (it sets environment variables before it imports something), and
not with a GPU: CUDA does not survive a fork. `serve` is the process itself, `ForkServer` what starts and asks it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..system.files import write_file
from . import torch_api

#: Seconds until the server has imported everything, and between two looks at what has ended.
_START_S, _LOOK_S = 300.0, 0.05


class ForkServer:
    """Starts a server and runs jobs with it. `is_alive` is false once it cannot be used."""

    def __init__(self, command: Sequence[str], modules: Sequence[str], folder: Path, env: Mapping[str, str]):
        names = folder / "modules.json"
        write_file(names, json.dumps([*modules]))
        self._process = subprocess.Popen(
            [*command, "--serve", str(names)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # `select` does not see what Python has read already.
            env={**env},
            start_new_session=True,
        )
        self._lock = threading.Lock()
        #: process id -> exit code, of those that have ended.
        self._exits: dict[int, int] = {}
        self.is_alive = self._read(_START_S) == "ready"

    def start(self, job: Path, streams: Sequence[str], env: Mapping[str, str], cwd: str | None) -> ForkedProcess | None:
        """Fork a process that runs a job; None if the server has ended."""
        order = {"job": str(job), "streams": streams, "env": {**env}, "cwd": cwd or os.getcwd()}
        assert self._process.stdin is not None
        with self._lock:
            try:
                self._process.stdin.write(json.dumps(order).encode() + b"\n")
                self._process.stdin.flush()
                while (answer := self._read(_START_S)) is not None:
                    if (pid := self._take(answer)) is not None:
                        return ForkedProcess(pid, self)
            except (OSError, ValueError):
                pass
            self.is_alive = False
            return None

    def read_exit(self, pid: int, timeout: float | None) -> int | None:
        """The exit code of a process; None if it still runs. Negative after a signal."""
        end = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            with self._lock:
                if pid not in self._exits and (answer := self._read(_LOOK_S)) is not None:
                    self._take(answer)
                if pid in self._exits:
                    return self._exits.pop(pid)
                if self._process.poll() is not None:
                    self.is_alive = False
                    return -9
            if time.monotonic() >= end:
                return None

    def _take(self, answer: str) -> int | None:
        """Keep an exit code; or the id of the process that was started."""
        pid, _, code = answer.partition(" ")
        if code:
            self._exits[int(pid)] = int(code)
        return None if code else int(pid)

    def _read(self, timeout: float | None) -> str | None:
        """The next line of the server; None if there is none in time, or any more."""
        stream: BinaryIO = self._process.stdout  # type: ignore[assignment]
        if not select.select([stream], [], [], timeout)[0]:
            return None
        return stream.readline().decode().strip() or None

    def stop(self) -> None:
        """End the server."""
        self.is_alive = False
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class ForkedProcess:
    """A process of the server, as `subprocess.Popen` has it."""

    stdin = None

    def __init__(self, pid: int, server: ForkServer):
        self.pid = pid
        self._server = server
        self._exit_code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. subprocess.TimeoutExpired if it runs longer."""
        if self._exit_code is None:
            self._exit_code = self._server.read_exit(self.pid, timeout)
        if self._exit_code is None:
            raise subprocess.TimeoutExpired("a forked run", timeout or 0.0)
        return self._exit_code


def serve(names: str) -> str:
    """Import the modules, then fork for each job; returns in the child, with its job."""
    for name in json.loads(Path(names).read_text()):
        if not name.startswith(torch_api.NOT_BEFORE_FORK):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    orders, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # What a module prints when it is imported is no answer.
    answers.write(b"ready\n")
    running = 0
    while True:
        has_order = bool(select.select([orders], [], [], _LOOK_S if running else None)[0])
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            running -= 1
            answers.write(b"%d %d\n" % (ended[0], os.waitstatus_to_exitcode(ended[1])))
        if not has_order:
            continue
        order = orders.readline()
        if not order or threading.active_count() > 1:
            os._exit(0)  # A thread that holds a lock would hold it for ever in the child.
        job: dict[str, Any] = json.loads(order)
        pid = os.fork()
        if not pid:
            answers.close()
            orders.close()
            _become(job)
            return str(job["job"])
        running += 1
        answers.write(b"%d\n" % pid)


def _become(job: dict[str, Any]) -> None:
    """The standard streams, environment and folder of a job; a session of its own, so that it can be ended with what it
    starts.
    """
    os.setsid()
    for number, path in enumerate(job["streams"]):
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the server's has read ahead
    os.environ.clear()
    os.environ.update(job["env"])
    os.chdir(job["cwd"])
