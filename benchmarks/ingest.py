"""Compare ingesting logs with tlparse: time, CPU time, memory, files and bytes written.

    python benchmarks/ingest.py [--tlparse PATH] [--rounds N] [LOG ...]
    python benchmarks/ingest.py --ranks

Without LOG, reads the golden log of the tests, unchanged and repeated with new ids up to 32 and 256 MB. Each log is
read by turns: by tlparse and by the command `ingest` on one core, by `ingest` on two cores, and a small log by the
library in this process, which is warm. The best time counts, and the memory of all processes together. Last, or alone
with `--ranks`: reads 64 logs of 4 MB, one per rank, alternating between one process and two.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import alternate
from process_cost import measure_command

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden" / "torch-2.13.log.gz"
MIDDLE, LARGE = 32 << 20, 256 << 20
#: The library reads logs up to this size in this process too.
SMALL = 8 << 20
RANKS, EACH = 64, 4_000_000
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tlparse", default=shutil.which("tlparse"), help="path of tlparse; default: the one on PATH")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"how often each log is read (default: {ROUNDS})")
    parser.add_argument("--ranks", action="store_true", help="measure only the logs of many ranks")
    parser.add_argument("logs", nargs="*", type=Path)
    args = parser.parse_args()
    if not args.ranks:
        _compare_tools(args)
    if not args.logs:
        _measure_ranks()


def _compare_tools(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = args.logs or [_write_golden_log(Path(folder))]
        for log in logs:
            _compare_with(log, args)
        for size in () if args.logs else (MIDDLE, LARGE):
            _compare_with(write_repeated_log(Path(folder), logs[0].read_bytes(), size), args)
        print(f"startup of the command: {_measure_start():.2f} s")


def _compare_with(log: Path, args: argparse.Namespace) -> None:
    """Read a log in every way by turns, and print the best times."""
    ways: dict[str, Callable[[], dict[str, float]]] = {
        "ingest, one core": lambda: _run_ingest(log, 1),
        "ingest, two cores": lambda: _run_ingest(log, 2),
    }
    if log.stat().st_size <= SMALL:
        ways["library, warm"] = lambda: _ingest_in_process(log)
    if args.tlparse:
        ways["tlparse, one core"] = lambda: _run_tlparse(log, args.tlparse)
    found: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for name in alternate(list(ways), args.rounds):
        found[name].append(ways[name]())
    _print_comparison(log, {name: _find_best(runs) for name, runs in found.items()})


def _measure_ranks() -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        logs.mkdir()
        size = _write_rank_logs(logs)
        times: dict[int, list[float]] = {1: [], 2: []}
        for number in alternate(list(times), ROUNDS):
            times[number].append(_run_ingest(logs, number)["s"])
        one, two = (min(times[number]) for number in (1, 2))
        print(
            f"{RANKS} logs, {size / 2**20:.0f} MB: one process {one:.1f} s, two {two:.1f} s, speed-up {one / two:.2f}x"
        )


def _write_rank_logs(folder: Path) -> int:
    """Write one log per rank, with the same records but another process id. Return the total size in bytes."""
    data = gzip.decompress(GOLDEN.read_bytes())
    data = b"".join(_renumber(data, number * 100) for number in range(round(EACH / len(data))))
    for rank in range(RANKS):
        name = f"dedicated_log_torch_trace_rank_{rank}_x.log"
        (folder / name).write_bytes(re.sub(rb"(?m)^([VIWEC]\d{4} [\d:.]+ )4242 ", rb"\g<1>%d " % (5000 + rank), data))
    return sum(log.stat().st_size for log in folder.iterdir())


def _write_golden_log(folder: Path) -> Path:
    log = folder / "golden.log"
    log.write_bytes(gzip.decompress(GOLDEN.read_bytes()))
    return log


def write_repeated_log(folder: Path, data: bytes, size: int = LARGE) -> Path:
    """Write the log of a long run: the same records repeated in one process, each time with new frame ids."""
    log = folder / "large.log"
    times = size // len(data) + 1
    with log.open("wb") as file:
        for number in range(times):
            file.write(_renumber(data, number * 100))
    return log


def _renumber(data: bytes, by: int) -> bytes:
    """Add `by` to all frame ids, and update the md5 of payloads that contain ids."""

    def renumber(match: re.Match[bytes]) -> bytes:
        return match[1] + str(int(match[2]) + by).encode() + match[3]

    records = []
    for record in re.split(rb"\n(?!\t)", data.rstrip(b"\n")):
        head, newline, body = record.partition(b"\n")
        head = re.sub(rb'("frame_id": )(\d+)(, )', renumber, head)
        head = re.sub(rb'("compile_id": ")(\d+)(/)', renumber, head)
        if newline:
            body = re.sub(rb'("compile_id": ")(\d+)(/)', renumber, body)
            payload = body[1:].replace(b"\n\t", b"\n")
            digest = hashlib.md5(payload, usedforsecurity=False).hexdigest().encode()
            head = re.sub(rb'("has_payload": ")[0-9a-f]{32}', rb"\g<1>" + digest, head)
        records.append(head + newline + body)
    return b"\n".join(records) + b"\n"


def _find_best(runs: list[dict[str, float]]) -> dict[str, float]:
    """Return the least time, CPU time and so on; the most memory."""
    best = {name: min(run[name] for run in runs) for name in runs[0]}
    return {**best, **({"mb": max(run["mb"] for run in runs)} if "mb" in best else {})}


def _ingest_in_process(log: Path) -> dict[str, float]:
    import compilediag as cd

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run.cdiag")
        begin, cpu = time.perf_counter(), time.process_time()
        cd.ingest(log, out)
        used = {"s": time.perf_counter() - begin, "cpu": time.process_time() - cpu}
        return {**used, "files": 1, "bytes": out.stat().st_size}


def _run_ingest(log: Path, cores: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run.cdiag")
        command = [sys.executable, "-m", "compilediag", "ingest", str(log), "-o", str(out), "--quiet", "-j", str(cores)]
        found = measure_command(command, cores, {**os.environ, "PYTHONPATH": str(ROOT)})
        return {**found, "files": 1, "bytes": out.stat().st_size}


def _run_tlparse(log: Path, command: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        found = measure_command([command, str(log), "-o", str(out), "--no-browser"], 1)
        files = [file for file in out.rglob("*") if file.is_file()]
        return {**found, "files": len(files), "bytes": sum(file.stat().st_size for file in files)}


def _measure_start() -> float:
    command = [sys.executable, "-m", "compilediag", "--version"]
    return min(measure_command(command, 1, {**os.environ, "PYTHONPATH": str(ROOT)})["s"] for _ in range(ROUNDS))


def _print_comparison(log: Path, found: dict[str, dict[str, float]]) -> None:
    size = log.stat().st_size
    print(f"{log.name}, {size / 2**20:.1f} MB")
    base = found.get("tlparse, one core")
    for name, run in found.items():
        times = ", ".join(_format_time(label, run[key], base and base[key]) for label, key in TIMES.items())
        memory = f", {run['mb']:.0f} MB of memory" if "mb" in run else ""
        print(f"  {name:18} {times}{memory}, {run['files']:.0f} files, {run['bytes'] / size:.2f}x the log's bytes")


#: What is printed -> what was measured.
TIMES = {"time": "s", "CPU": "cpu"}


def _format_time(label: str, seconds: float, base: float | None) -> str:
    return f"{label} {seconds:.2f} s" + (f" ({seconds / base:.2f}x)" if base else "")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
