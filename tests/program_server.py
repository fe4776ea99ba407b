"""A process that has imported torch and forks for each program of a test: an import of torch takes seconds.

A program runs as `python ARGUMENTS` runs it, from an empty `__main__` to the end of the interpreter; torch reads the
variables of its logs again. A test of how a process begins (what it imports, or which other variables torch reads then)
needs a process of its own.

`FORKED` are modules that compilediag or Jupyter starts in fresh interpreters. While a server runs, such an interpreter
asks it for a fork when it starts, and stands for the fork from then on: it passes signals on, and ends as the fork
does. Where it has other variables than torch read in the server, it stays what it is. With `COMMANDS` in its
environment, that holds for every script and module.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

#: The variable that names the socket of the server.
SOCKET = "COMPILEDIAG_TEST_SERVER"
#: The variable with which scripts and modules are forks, whoever starts them.
COMMANDS = "COMPILEDIAG_TEST_COMMANDS"
FORKED = ("compilediag.cli.try_process", "compilediag.frontends.cell_process", "ipykernel_launcher")
#: Variables that torch reads when it is imported.
READ_AT_IMPORT = ("TORCH_COMPILE_DEBUG",)
#: Those of torch's logs, which a fork reads.
_OF_LOGS = ("TORCH_TRACE", "TORCH_LOGS")
#: How variables begin that Python, torch and its libraries read when they start; and those that they read at each use.
_READ_AT_START = ("TORCH", "PYTORCH", "PYTHON", "TRITON", "OMP", "MKL", "KMP", "CUDA", "LD_")
_READ_LATER = (
    *_OF_LOGS,
    *("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHELASTIC_", "TORCH_NCCL_"),
    *("PYTHONHASHSEED", "PYTHONUNBUFFERED"),
)
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)


class ProgramServer:
    """Runs programs; the process is started for the first one."""

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
                code = self._ask("run", command, cwd, env, (given.fileno(), *streams), timeout)
            except TimeoutError:
                self.stop()
                raise subprocess.TimeoutExpired(command, timeout, _read(out), _read(err)) from None
            assert code is not None, f"the server has ended; {_read(err)}"
            return subprocess.CompletedProcess(command, code, _read(out), _read(err))

    def start(self, *args: object, stdout: int, env: dict[str, str] | None = None) -> int:
        """Start `python ARGS` in a fork that writes to a file descriptor; its process id. Nobody waits for its end."""
        with open(os.devnull, "r+") as nothing:
            streams = nothing.fileno(), stdout, nothing.fileno()
            pid = self._ask("start", list(map(str, args)), None, env, streams, timeout=600)
        assert pid is not None, "the server has ended"
        return pid

    def _ask(
        self,
        what: str,
        command: list[str],
        cwd: str | Path | None,
        env: dict[str, str] | None,
        streams: tuple[int, int, int],
        timeout: float,
    ) -> int | None:
        self.begin()
        environment = {**os.environ, **(env or {})}
        assert not any(environment.get(name) != os.environ.get(name) for name in READ_AT_IMPORT)
        with _connect(os.environ[SOCKET]) as connection:
            _send(connection, what, command, str(cwd or os.getcwd()), environment, streams)
            connection.settimeout(timeout)
            answer = connection.recv(100)
        return int(answer) if answer else None

    def begin(self) -> None:
        """Start the process, unless it runs."""
        if self._process is not None:
            return
        path = os.path.join(tempfile.mkdtemp(prefix="compilediag-server-"), "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.program_server", str(listener.fileno())],
                pass_fds=[listener.fileno()],
                stdin=subprocess.PIPE,  # its end is that of this process
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                cwd=Path(__file__).resolve().parents[1],
                env={**os.environ, "PYTHONUNBUFFERED": ""},  # A fork keeps the streams of the server.
            )
        os.environ[SOCKET] = path

    def stop(self) -> None:
        """End the process and whatever it runs."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.communicate()
            self._process = None
            path = Path(os.environ.pop(SOCKET))
            path.unlink()
            path.parent.rmdir()


def _read(file: Any) -> str:
    file.seek(0)
    return file.read()


def _begins_differently(environment: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether an interpreter, or torch, would start in another way. "0" is what torch does without a variable."""
    names = {name for name in {*environment, *other} if name.startswith(_READ_AT_START)}
    return any(
        (environment.get(name) or "0") != (other.get(name) or "0") for name in names if not name.startswith(_READ_LATER)
    )


def _connect(path: str) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    return connection


def _send(
    connection: socket.socket,
    what: str,
    command: list[str],
    folder: str,
    environment: Mapping[str, str],
    streams: tuple[int, int, int],
) -> None:
    with tempfile.TemporaryFile("w+") as request:
        asked = {"what": what, "args": command, "cwd": folder, "env": {**environment}, "python": sys.executable}
        asked["umask"] = re.findall(r"^Umask:\s*(\d+)$", Path("/proc/self/status").read_text(), re.M)[0]
        json.dump(asked, request)
        request.flush()
        request.seek(0)
        socket.send_fds(connection, [b"!"], [*streams, request.fileno()])


def stand_for_fork() -> None:
    """If a fork shall run what this interpreter is started for: let the server run it, and end as that ends."""
    command = sys.orig_argv[1:]
    first, *rest = [*(command[1:] if command[:1] == ["-u"] else command), "-"]
    is_forked = first == "-m" and rest[0] in FORKED
    if COMMANDS in os.environ:
        is_forked = first == "-m" or not first.startswith("-")
    if not is_forked:
        return
    try:
        connection = _connect(os.environ[SOCKET])
    except OSError:
        return
    what = "lead" if os.getsid(0) == os.getpid() else "fork"
    _send(connection, what, command, os.getcwd(), os.environ, (0, 1, 2))
    if connection.recv(1) == b"n":
        return
    for number in _PASSED_ON:
        signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
    code = int(connection.recv(100) or -signal.SIGKILL)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL) if code != -signal.SIGKILL else None
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(listener: socket.socket) -> tuple[list[int], Any]:
    """Fork twice for each request: for who waits for the program, and for the program.

    Returns in each of the programs, with its files and what it shall run.
    """
    while True:
        if 0 in select.select([listener, 0], [], [])[0]:
            os._exit(0)
        connection, _ = listener.accept()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if os.fork():
            connection.close()
            continue
        listener.close()
        _, files, *_ = socket.recv_fds(connection, 1, 4)
        if len(files) < 4:
            os._exit(0)
        with os.fdopen(files.pop()) as request:
            asked = json.load(request)
        if asked["what"] in ("fork", "lead"):
            differs = asked["python"] != sys.executable or _begins_differently(asked["env"], os.environ)
            connection.sendall(b"n" if differs else b"y")
            if differs:
                os._exit(0)
        program = os.fork()
        if not program:
            connection.close()
            if asked["what"] == "lead":
                os.setsid()
            return files, asked
        for file in files:
            os.close(file)
        if asked["what"] == "start":
            connection.sendall(str(program).encode())
            os._exit(0)
        _wait(connection, program)


def _wait(connection: socket.socket, program: int) -> NoReturn:
    """Pass signals on to a program, and its exit code back. It is ended when nobody asks for it any more."""
    ended = os.pidfd_open(program)
    while ended not in select.select([ended, connection], [], [])[0]:
        number = connection.recv(1)
        with contextlib.suppress(ProcessLookupError):
            (os.kill if number else _kill)(program, number[0] if number else signal.SIGKILL)
        if not number:
            break
    code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
    with contextlib.suppress(OSError):
        connection.sendall(str(code).encode())
    os._exit(0)


def _kill(program: int, number: int) -> None:
    """End a program, with its group if it leads one."""
    (os.killpg if os.getpgid(program) == program else os.kill)(program, number)


def become(files: list[int], environment: dict[str, str], folder: str, umask: str) -> None:
    """Take over the files, environment, folder and umask of a program."""
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None  # The folder of temporary files is that of the environment.
    os.chdir(folder)
    os.umask(int(umask, 8))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def begin_logs() -> None:
    """Let torch read the variables of its logs, as when it is imported."""
    from torch._logging import _internal

    _internal.LOG_TRACE_HANDLER = None
    _internal._init_logs()


def make_main() -> dict[str, Any]:
    """The names of a new `__main__`."""
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__dict__.update(__builtins__=__builtins__, __loader__=None, __annotations__={})
    return main.__dict__


if __name__ == "__main__":
    import functorch.compile  # noqa: F401
    import pandas
    import torch._dynamo.convert_frame
    import torch._inductor.compile_fx  # noqa: F401

    gc.collect()
    gc.freeze()
    own = sys.modules["__main__"]  # kept: the function that runs below needs its names
    opened, asked = serve(socket.socket(fileno=int(sys.argv[1])))
    become(opened, asked["env"], asked["cwd"], asked["umask"])
    if any(name in os.environ for name in _OF_LOGS):
        begin_logs()
    names, (first, *rest) = make_main(), asked["args"]
    if first == "-u":
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        first, *rest = rest
    if first == "-m":
        sys.argv, sys.path[0] = [first, *rest[1:]], os.getcwd()
        if rest[0] == "ipykernel_launcher":
            pandas.options.display.max_columns = 20  # as where pandas is imported in a kernel: no terminal has a width
        runpy._run_module_as_main(rest[0])
    elif first == "-c":
        sys.argv, sys.path[0] = [first, *rest[1:]], ""
        exec(compile(rest[0], "<string>", "exec"), names)
    else:
        script = names["__file__"] = os.path.abspath(first)
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(script)
        exec(compile(Path(script).read_text(), script, "exec"), names)
