"""A process that has imported torch and forks for each program of a test: an import of torch takes seconds.

A program runs as `python ARGUMENTS` runs it, from an empty `__main__` to the end of the interpreter. A test of how a
process begins (what it imports, or which variables torch reads then) needs a process of its own.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

#: Variables that torch reads when it is imported.
READ_AT_IMPORT = ("TORCH_TRACE", "TORCH_LOGS", "TORCH_COMPILE_DEBUG")


class ProgramServer:
    """Runs one program at a time, and starts others beside it; the process is started for the first one."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self,
        *args: object,
        cwd: str | Path | None = None,
        env: dict[str, str] | None = None,
        input: str = "",
        stdout: int | None = None,
        stderr: int | None = None,
        timeout: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """Run `python ARGS` in a fork; `env` adds to the environment. TimeoutExpired ends the server as well.

        What is written to the file descriptors `stdout` and `stderr`, where they are given, is not in the result.
        """
        command = list(map(str, args))
        with (
            tempfile.TemporaryFile("w+") as given,
            tempfile.TemporaryFile("w+") as out,
            tempfile.TemporaryFile("w+") as err,
        ):
            given.write(input)
            given.flush()
            given.seek(0)
            streams = out.fileno() if stdout is None else stdout, err.fileno() if stderr is None else stderr
            try:
                code = self._ask(b"run", command, cwd, env, (given.fileno(), *streams), timeout)
            except TimeoutError:
                self.stop()
                raise subprocess.TimeoutExpired(command, timeout, _read(out), _read(err)) from None
            assert code is not None, f"the server has ended; {_read(err)}"
            return subprocess.CompletedProcess(command, code, _read(out), _read(err))

    def start(self, *args: object, stdout: int, env: dict[str, str] | None = None) -> int:
        """Start `python ARGS` in a fork that writes to a file descriptor; its process id. Nobody waits for its end."""
        with open(os.devnull, "r+") as nothing:
            streams = nothing.fileno(), stdout, nothing.fileno()
            pid = self._ask(b"start", list(map(str, args)), None, env, streams, timeout=600)
        assert pid is not None, "the server has ended"
        return pid

    def _ask(
        self,
        what: bytes,
        command: list[str],
        cwd: str | Path | None,
        env: dict[str, str] | None,
        streams: tuple[int, int, int],
        timeout: float,
    ) -> int | None:
        environment = {**os.environ, **(env or {})}
        assert not any(environment.get(name) != os.environ.get(name) for name in READ_AT_IMPORT)
        with tempfile.TemporaryFile("w+") as request:
            json.dump({"args": command, "cwd": str(cwd or os.getcwd()), "env": environment}, request)
            request.flush()
            request.seek(0)
            connection = self._connect()
            socket.send_fds(connection, [what], [*streams, request.fileno()])
            connection.settimeout(timeout)
            answer = connection.recv(100)
        return int(answer) if answer else None

    def _connect(self) -> socket.socket:
        if self._process is None:
            self._connection, other = socket.socketpair()
            with other:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.program_server", str(other.fileno())],
                    pass_fds=[other.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd=Path(__file__).resolve().parents[1],
                    env={**os.environ, "PYTHONUNBUFFERED": ""},  # A fork keeps the streams of the server.
                )
        return self._connection

    def stop(self) -> None:
        """End the process and whatever it runs."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._connection.close()
            self._process = None


def _read(file: Any) -> str:
    file.seek(0)
    return file.read()


def serve(connection: socket.socket) -> tuple[list[int], Any]:
    """Fork for each request. Returns in each of the children, with its files and what it shall run."""
    while True:
        what, files, *_ = socket.recv_fds(connection, 10, 4)
        if not what:
            os._exit(0)
        child = os.fork()
        if not child:
            connection.close()
            with os.fdopen(files[3]) as request:
                return files[:3], json.load(request)
        for file in files:
            os.close(file)
        answer = child if what == b"start" else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(answer).encode())
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass  # One that was started has ended.


def become(files: list[int], environment: dict[str, str], folder: str) -> None:
    """Take over the files, environment and folder of a program."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # The folder of temporary files is that of the environment.
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def make_main() -> dict[str, Any]:
    """The names of a new `__main__`."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __loader__=None, __annotations__={})
    return main.__dict__


if __name__ == "__main__":
    import functorch.compile  # noqa: F401
    import pandas  # noqa: F401
    import torch._dynamo.convert_frame
    import torch._inductor.config  # noqa: F401

    gc.collect()
    gc.freeze()
    own = sys.modules["__main__"]  # kept: the function that runs below needs its names
    opened, asked = serve(socket.socket(fileno=int(sys.argv[1])))
    become(opened, asked["env"], asked["cwd"])
    names, (first, *rest) = make_main(), asked["args"]
    if first == "-m":
        sys.argv, sys.path[0] = [first, *rest[1:]], os.getcwd()
        runpy._run_module_as_main(rest[0])
    elif first == "-c":
        sys.argv, sys.path[0] = [first, *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), names)
    else:
        script = names["__file__"] = os.path.abspath(first)
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(script)
        exec(compile(Path(script).read_text(), script, "exec"), names)
