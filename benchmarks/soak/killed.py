"""SIGKILL at any time of a watch, 100 times: what was written is readable, and the next watch takes the file."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import compilediag as cd
from benchmarks.soak.workload import expect_eager, is_quick, is_time_left, report, run_eager
from compilediag.errors import CompilediagError

KILLS = 10 if is_quick() else 100
#: A process is killed this long after it has begun to start its watch, at most. Starting takes about 20 ms.
MOST_S = 1.2


def compile_until_killed(path: Path, ready: int) -> None:
    """Run as the child: report the begin of the watch, and then each compile that was flushed to the file."""
    os.write(ready, b"b")
    session = cd.start(path)
    while True:
        run_eager()
        session.flush()
        os.write(ready, b"c" * 4)


def kill_once(path: Path, seconds: float) -> int:
    """Fork a child that watches, kill it; how many compiles are in the file at least."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            compile_until_killed(path, write)
        finally:
            os._exit(1)
    os.close(write)
    os.read(read, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    with os.fdopen(read, "rb") as said:
        flushed = len(said.read())
    if not os.WIFSIGNALED(status):
        raise AssertionError(f"the child ended with {status}")
    return flushed


def find_problems(path: Path, flushed: int) -> tuple[list[str], bool]:
    """What is wrong with a file of a killed process; whether it was readable."""
    try:
        session = cd.load(path)
    except (CompilediagError, FileNotFoundError) as why:  # It had not begun to write.
        return ([f"{flushed} compiles, but {why}"] if flushed else []), False
    problems = []
    count = len(session.compiles)
    if count < flushed:
        problems.append(f"{flushed} compiles were flushed, the session has {count}")
    if "compiles" not in session.summary():
        problems.append("no summary")
    copy = session.save(path.with_name(f"copy-{path.name}"))
    if len(cd.load(copy).compiles) != count:
        problems.append("its copy has other rows")
    with closing(sqlite3.connect(path)) as connection:
        if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            problems.append("the file is damaged")
    return problems, True


def find_next_problems(path: Path) -> list[str]:
    """What is wrong with a watch that is given the file of a killed process."""
    with cd.watch(path) as session:
        results = run_eager()
    if results != expect_eager() or len(session.compiles) != 4:
        return [f"the next watch has {len(session.compiles)} compiles and {results}"]
    return []


def main() -> None:
    with cd.watch():
        run_eager()  # Imports everything, so that the children do not.
    chance, problems, readable, times = random.Random(0), [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for times in range(1, KILLS + 1):
            path = Path(folder, f"killed-{times}.cdiag")
            seconds = chance.uniform(0, 0.05) if times % 4 == 0 else chance.uniform(0, MOST_S)
            try:
                found, is_readable = find_problems(path, kill_once(path, seconds))
                readable += is_readable
                found += find_next_problems(path)
            except Exception as error:
                found = [f"{type(error).__name__}: {error}"]
            problems += [f"killed after {seconds:.3f} s: {what}" for what in found]
            if not is_time_left():
                break
    note = f"{readable} had a session, {times - readable} were killed before they had one"
    report("SIGKILL during a watch: session not readable", times, problems, note)


if __name__ == "__main__":
    sys.exit(main())
