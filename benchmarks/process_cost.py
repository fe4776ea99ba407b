"""What a command costs: its seconds, the CPU seconds and the memory of all its processes.

    python benchmarks/process_cost.py CORES COMMAND ...

Runs the command on the first CORES cores (0: on all) and prints JSON. Memory is the most that all its processes had at
once, sampled; pages that several of them share count once. On systems without /proc it is that of the largest process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

INTERVAL_S = 0.02
#: `ru_maxrss` is in kB, on macOS in bytes.
_UNIT = 1 if sys.platform == "darwin" else 1024


def measure_command(command: list[str], cores: int = 0, environment: dict[str, str] | None = None) -> dict[str, float]:
    """Return wall `s`, `cpu` and `mb` of a command; a process of its own measures them."""
    measuring = [sys.executable, "-S", __file__, str(cores), *command]
    done = subprocess.run(measuring, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    cores, command = int(sys.argv[1]), sys.argv[2:]
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    sampler = _MemorySampler(process.pid)
    sampler.start()
    code = process.wait()
    seconds = time.perf_counter() - begin
    sampler.end()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if code:
        sys.exit(f"{command} failed with exit code {code}")
    most = max(sampler.most, used.ru_maxrss * _UNIT)
    print(json.dumps({"s": seconds, "cpu": used.ru_utime + used.ru_stime, "mb": most / 2**20}))


class _MemorySampler(threading.Thread):
    """Samples the memory of a process and all its descendants; `most` is in bytes."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.most = 0
        self._pid = pid
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(INTERVAL_S):
            self.most = max(self.most, sum(map(_read_bytes, _list_processes(self._pid))))

    def end(self) -> None:
        self._over.set()
        self.join()


def _list_processes(pid: int) -> list[int]:
    found = [pid]
    for each in found:
        for listed in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                found += map(int, listed.read_text().split())
            except OSError:
                continue
    return found


def _read_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    main()
