"""`python -m tests.fuzz [--minutes M] [--seed N] [--cases K] [--way cells|bytes|old|log]`"""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

#: Seconds until a process that does not report a case is killed, and cases until it is replaced.
PATIENCE_S, CASES = 900, 200


def main():
    parser = argparse.ArgumentParser(description="Run every command on spoilt sessions and logs.")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--cases", type=int, help="how many, instead of --minutes")
    parser.add_argument("--way", choices=("cells", "bytes", "log"))
    parser.add_argument("--amount", type=int, default=6, help="commands of each case, of about 20")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        _work(args)
        return 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        return _supervise(args, folder)


def _work(args):
    from .cases import Originals, run_case
    from .commands import ENDINGS

    folder = Path(args.worker)
    originals = Originals(folder)
    for seed in range(args.seed, args.seed + args.cases):
        began = time.monotonic(), time.process_time()
        problems = run_case(seed, originals, folder / "case", args.way, args.amount)
        took = time.monotonic() - began[0], time.process_time() - began[1]
        report = {"seed": seed, "wall_s": took[0], "cpu_s": took[1], "mb": _measure_memory(), "problems": problems}
        print(json.dumps({**report, "endings": ENDINGS}), flush=True)
        ENDINGS.clear()


def _measure_memory():
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _supervise(args, folder):
    end = time.monotonic() + args.minutes * 60
    seed, done = args.seed, []
    while (time.monotonic() < end) if args.cases is None else (len(done) < args.cases):
        amount = CASES if args.cases is None else args.cases - len(done)
        for report in _run_worker(args, folder, seed, amount, end if args.cases is None else None):
            done.append(report)
            for arguments, problem in report["problems"]:
                print(f"seed {report['seed']}: compilediag {' '.join(arguments)}\n{problem}", flush=True)
        seed = done[-1]["seed"] + 1 if done else seed + 1
    return _summarize(done)


def _run_worker(args, folder, seed, amount, end):
    """The reports of one process. A process that dies or hangs is a problem of the case that it ran."""
    command = [sys.executable, "-m", "tests.fuzz", "--worker", folder, "--seed", str(seed), "--cases", str(amount)]
    command += ["--amount", str(args.amount), *(["--way", args.way] if args.way else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "100"})
    watch = subprocess.Popen(["sleep", str(PATIENCE_S)])
    reported = seed
    try:
        for line in process.stdout:
            report = json.loads(line)
            reported = report["seed"] + 1
            yield report
            if end is not None and time.monotonic() > end:
                return
        if process.wait() and reported < seed + amount:
            problem = f"the process ended with {process.returncode}"
            yield {"seed": reported, "wall_s": 0, "cpu_s": 0, "mb": 0, "problems": [(["?"], problem)]}
    finally:
        watch.kill()
        watch.wait()
        process.kill()
        process.wait()


def _summarize(done):
    found = sum(len(report["problems"]) for report in done)
    kinds = collections.Counter(problem.strip().splitlines()[-1][:150] for r in done for _, problem in r["problems"])
    for kind, times in kinds.most_common():
        print(f"{times:5}  {kind}")
    cpu = sum(report["cpu_s"] for report in done)
    slowest, largest = max(done, key=lambda r: r["cpu_s"]), max(done, key=lambda r: r["mb"])
    seeds = f"seeds {done[0]['seed']} to {done[-1]['seed']}"
    print(f"{len(done)} cases ({seeds}), {found} problems, {cpu:.0f} s of CPU time")
    endings = sum((collections.Counter(report.get("endings")) for report in done), collections.Counter())
    print("exit codes of commands: " + ", ".join(f"{code}: {times}" for code, times in sorted(endings.items())))
    print(f"slowest case: {slowest['cpu_s']:.1f} s (seed {slowest['seed']}); peak of memory: {largest['mb']} MB")
    return 1 if found else 0


sys.exit(main())
