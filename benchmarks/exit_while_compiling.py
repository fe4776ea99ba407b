"""How often a program dies by a signal at its end while daemon threads compile, with and without a watch.

    python -m benchmarks.exit_while_compiling [--runs=30] [--seconds=0.3]

While the interpreter is finalized, CPython ends each daemon thread that asks for the GIL with `pthread_exit`. If the
thread asks in the destructor of a `gil_scoped_release` of torch, C++ calls `std::terminate`. What decides is where the
threads are when the finalization begins. Each watched run is compared with a plain one whose exit handler sleeps as
long, and at the same moment: before the finalizers of torch's libraries, which remove operators. After them compiles
raise and the threads end, so a handler that sleeps then would be compared with a program without threads.

All runs take turns. Each is a fork of one process that has imported torch and compiled once.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

#: The program. Each function is compiled once. `at_end` gets the number of threads that compile when the script ends.
PROGRAM = """
import sys, threading, time, torch
from __warm__ import compile_one

def compile_on(thread):
    number = thread
    while True:
        number += 2
        compile_one(number)

threads = [threading.Thread(target=compile_on, args=(number,), daemon=True) for number in range(2)]
for thread in threads:
    thread.start()
time.sleep(float(sys.argv[1]))
with open(sys.argv[2], "w") as file:
    file.write(str(sum(thread.is_alive() for thread in threads)))
"""
#: Reads [mode, pause] from each line of its input, and writes [exit code, seconds of exit functions, live threads].
SERVER = """
import atexit, json, os, runpy, sys, time, types
folder, seconds = sys.argv[1:]
script, took, at_end = (os.path.join(folder, name) for name in ("program.py", "took", "at_end"))
begun = []

@atexit.register
def note():  # The last exit function.
    if begun:
        with open(took, "w") as file:
            file.write(str(time.monotonic() - begun[0]))

import torch, compilediag.watch, compilediag.cli.run_command

warm = sys.modules["__warm__"] = types.ModuleType("__warm__")
def compile_one(number):
    names = {"torch": torch}
    exec(f"def run(x): return (x.sin() * {number}).relu() + torch.rand(3)", names)
    torch.compile(names["run"], backend="eager")(torch.ones(3))
warm.compile_one = compile_one
compile_one(0), compile_one(1)

def read_once(path):
    try:
        with open(path) as file:
            return float(file.read())
    except FileNotFoundError:
        return None
    finally:
        if os.path.exists(path):
            os.unlink(path)

def run(mode, pause):
    os.dup2(os.open(os.devnull, os.O_RDWR), 1), os.dup2(1, 2)
    args = [script, seconds, at_end]
    try:
        if mode in ("run", "run --quiet"):
            from compilediag.__main__ import main
            sys.argv = ["compilediag", *mode.split(), *args]
            sys.exit(main())
        if mode == "start":
            import compilediag
            compilediag.start()
        elif mode == "sleeping":
            atexit.register(time.sleep, pause)
        sys.argv = args
        runpy.run_path(script, run_name="__main__")
    finally:
        begun.append(time.monotonic())

for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if not child:
        run(*json.loads(line))
        break  # Ends as a program that was started by itself.
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([code, read_once(took), read_once(at_end)]), flush=True)
"""
MODES = ("start", "run --quiet", "run")


class Results:
    """The exit codes of one mode, and the seconds that its exit functions took."""

    def __init__(self) -> None:
        self.codes: Counter[int] = Counter()
        self.lengths: list[float] = []

    def add(self, code: int, length: float | None) -> None:
        self.codes[code] += 1
        if length is not None:
            self.lengths.append(length)

    def format(self, name: str) -> str:
        length = statistics.median(self.lengths) if self.lengths else float("nan")
        killed = sum(count for code, count in self.codes.items() if code < 0)
        return f"{name:24} {length:6.3f} s  killed {killed:3} of {self.codes.total():3}  {dict(self.codes)}"


def measure(runs: int, seconds: float, modes: list[str]) -> dict[str, Results]:
    """Run each mode and its counterpart in turn. The counterpart sleeps for what the mode's exit functions took longer
    than those of the plain program just before.
    """
    results = {name: Results() for name in ("plain", *(name for mode in modes for name in (mode, f"sleep as {mode}")))}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COMPILEDIAG_HISTORY": "off"}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "program.py").write_text(PROGRAM)
        command = [sys.executable, "-c", SERVER, folder, str(seconds)]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as server:
            assert server.stdin is not None and server.stdout is not None

            def run(name: str, mode: str, pause: float = 0.0) -> float:
                print(json.dumps([mode, pause]), file=server.stdin, flush=True)
                code, length, threads = json.loads(server.stdout.readline())  # type: ignore[union-attr]
                assert threads == 2, f"{name}: {threads} threads compile at the end"
                results[name].add(code, length)
                return length or 0.0

            for _ in range(runs):
                plain = run("plain", "plain")
                for mode in modes:
                    length = run(mode, mode)
                    run(f"sleep as {mode}", "sleeping", max(0.0, length - plain))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0.3, help="how long the threads compile before the end")
    parser.add_argument("--modes", default=",".join(MODES))
    args = parser.parse_args()
    for name, results in measure(args.runs, args.seconds, args.modes.split(",")).items():
        print(results.format(name))


if __name__ == "__main__":
    main()
