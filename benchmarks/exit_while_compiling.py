"""How often a program dies by a signal at its end while daemon threads compile, with and without a watch.

    python -m benchmarks.exit_while_compiling [--runs=30] [--seconds=1.5]

CPython ends daemon threads while the interpreter is finalized, and torch's C++ frames do not survive that: whether a
process dies depends on what its threads do at that moment. What a watch does at exit comes before, so the threads get
further. Each run is compared with plain Python that has an exit handler of the same length, which only sleeps.
"""

from __future__ import annotations

import argparse
import collections
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import sys, threading, time, torch

def compile_on(number):
    while True:
        torch.compile(lambda x: (x.sin() * number).relu() + torch.rand(3), backend="eager")(torch.ones(3))
        torch._dynamo.reset_code(compile_on.__code__)

torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
for number in range(2):
    threading.Thread(target=compile_on, args=(number,), daemon=True).start()
time.sleep(float(sys.argv[1]))
"""
#: Runs the program, then notes how long the exit functions took that were registered after the first one here.
START = """
import atexit, runpy, sys, time
mode, took, pause, script, seconds = sys.argv[1:]
begun = []
def note():
    with open(took, "w") as file:
        file.write(str(time.monotonic() - begun[0]))
atexit.register(note)
if mode == "sleeping":
    atexit.register(time.sleep, float(pause))
sys.argv = [script, seconds]
if mode == "watched":
    import compilediag
    compilediag.start()
try:
    if mode == "run":
        from compilediag.__main__ import main
        sys.argv = ["compilediag", "run", "--quiet", script, seconds]
        sys.exit(main())
    runpy.run_path(script, run_name="__main__")
finally:
    begun.append(time.monotonic())
"""


def measure(mode: str, runs: int, seconds: float, pause: float) -> tuple[collections.Counter[int], float]:
    """The exit codes, and the median of the seconds that the exit functions took."""
    codes: collections.Counter[int] = collections.Counter()
    lengths = []
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "COMPILEDIAG_HISTORY": "off"}
    with tempfile.TemporaryDirectory() as folder:
        script, took = Path(folder, "program.py"), Path(folder, "took")
        script.write_text(PROGRAM)
        for _ in range(runs):
            command = [sys.executable, "-c", START, mode, str(took), str(pause), str(script), str(seconds)]
            done = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
            codes[done.returncode] += 1
            if took.exists():
                lengths.append(float(took.read_text()))
                took.unlink()
    return codes, statistics.median(lengths) if lengths else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=1.5, help="how long the threads compile before the end")
    parser.add_argument("--modes", default="plain,watched,run")
    args = parser.parse_args()
    for mode in args.modes.split(","):
        codes, length = measure(mode, args.runs, args.seconds, 0.0)
        print(f"{mode:10} exit functions {length:6.3f} s  exit codes {dict(codes)}", flush=True)
        if mode != "plain":
            codes, slept = measure("sleeping", args.runs, args.seconds, length)
            print(f"{'sleeping':10} exit functions {slept:6.3f} s  exit codes {dict(codes)}", flush=True)


if __name__ == "__main__":
    main()
