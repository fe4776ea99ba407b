"""Keep cores busy while a command runs, to check that tests pass on a busy machine.

    python benchmarks/busy.py [--cores N] [--times N] -- make test

Runs the command `--times` times and prints the duration and exit status of each run. Exits with the status of the first
run that failed, or 0.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import time


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cores", type=int, default=os.cpu_count(), help="number of busy loops; default: one per core")
    parser.add_argument("--times", type=int, default=1, help="number of runs")
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    loops = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(args.cores)]
    for loop in loops:
        loop.start()
    try:
        statuses = [_run_command(args.command, number) for number in range(1, args.times + 1)]
    finally:
        for loop in loops:
            loop.kill()
    return next((status for status in statuses if status), 0)


def _spin() -> None:
    while True:
        sum(range(1_000_000))


def _run_command(command: list[str], number: int) -> int:
    began = time.monotonic()
    status = subprocess.call(command)
    print(f"run {number}: {time.monotonic() - began:.0f} s, exit status {status}", file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
