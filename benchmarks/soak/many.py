"""5,000 compiles in one watch, and 2,000 watches while another thread compiles."""

from __future__ import annotations

import gc
import os
import tempfile
import threading
from pathlib import Path

import torch

import compilediag as cd
from benchmarks.soak.workload import add_length, expect_eager, is_quick, is_time_left, report, run_eager
from compilediag import sources
from tests.live.interruptions import World

COMPILES = 500 if is_quick() else 5_000
WATCHES = 100 if is_quick() else 2_000
#: Compiles of one function, of which all but the first are recompiles.
ENTRIES = 5
#: Between two rounds of the thread that compiles.
PAUSE_S = 0.1


def resident_mb() -> float:
    """Memory of this process in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def compile_many(count: int) -> list[str]:
    """Compile new functions, each for several constants; which results are wrong."""
    wrong = []
    for number in range(count // ENTRIES):
        code = add_length.__code__.replace(co_name=f"add_length_{number}")
        function = type(add_length)(code, add_length.__globals__, code.co_name)
        compiled = torch.compile(function, backend="eager")
        results = [compiled(torch.ones(2), "n" * n).tolist() for n in range(ENTRIES)]
        if results != expect_eager(ENTRIES):
            wrong.append(f"{code.co_name} gives {results}")
        if number % 20 == 0:
            torch._dynamo.reset()  # What torch itself keeps does not count.
    torch._dynamo.reset()
    return wrong


def measure_growth(count: int) -> tuple[list[str], float]:
    """Which results are wrong, and by how many MB this process grows."""
    gc.collect()
    before = resident_mb()
    wrong = compile_many(count)
    gc.collect()
    return wrong, resident_mb() - before


def watch_many_compiles() -> None:
    compile_many(200)
    unwatched = measure_growth(COMPILES // 5)[1] * 5
    with cd.watch(detail="lean") as session:
        wrong, grown = measure_growth(COMPILES)
    problems = [f"wrong result: {what}" for what in wrong]
    rows = {"compiles": len(session.compiles), "recompiles": len(session.recompiles)}
    expected = {"compiles": COMPILES, "recompiles": COMPILES - COMPILES // ENTRIES}
    if rows != expected:
        problems.append(f"the session has {rows}, not {expected}")
    problems += [f"{row['name']}: {row['reason']}" for row in session.status() if row["reason_code"] == "errors"]
    problems += [f"{row['name']} dropped {row['dropped']}" for row in session.status() if row["dropped"]]
    size = Path(session.path).stat().st_size
    kb = (grown - unwatched) * 1e3 / COMPILES
    note = f"{size / COMPILES / 1e3:.1f} KB of file and {kb:.1f} KB of memory per compile"
    report("compiles in one watch: wrong result, row missing", COMPILES, problems, note)


def watch_often() -> None:
    """Begin and end watches while another thread compiles; nothing is left, and no result changes."""
    wrong: list[str] = []
    done, rounds = threading.Event(), 0

    def compile_on() -> None:
        nonlocal rounds
        while not done.is_set():
            try:
                results = run_eager()
                if results != expect_eager():
                    wrong.append(f"round {rounds} gives {results}")
            except BaseException as error:
                wrong.append(f"round {rounds}: {type(error).__name__}: {error}")
            rounds += 1
            done.wait(PAUSE_S)

    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        with cd.watch():
            run_eager()
        world = World(Path(folder))
        thread = threading.Thread(target=compile_on)
        thread.start()
        watches = 0
        for watches in range(1, WATCHES + 1):
            cd.start(detail="full" if watches % 2 else "lean")
            if cd.stop() is None or sources.list_hooks():
                wrong.append(f"watch {watches} left {sources.list_hooks()}")
            if not is_time_left():
                break
        done.set()
        thread.join()
        left = world.list_leftovers()
        with cd.watch() as session:
            run_eager()
        if len(session.compiles) != 4:
            wrong.append(f"the next watch has {len(session.compiles)} compiles")
        tempfile.tempdir = None
    problems = [*wrong, *left]
    report("watches begun and ended: wrong result, anything left", watches, problems, f"{rounds} rounds meanwhile")


def main() -> None:
    watch_many_compiles()
    watch_often()


if __name__ == "__main__":
    main()
