"""Compare ingesting logs with tlparse: time, memory, files and bytes written.

    python benchmarks/ingest.py [--tlparse PATH] [LOG ...]
    python benchmarks/ingest.py --ranks

Without LOG, reads the golden log of the tests, unchanged and repeated with new ids up to 256 MB. Both tools read each
log three times; the best time counts. The library reads a small log in this process, which is warm; the command reads
the large log in a new process. Last, or alone with `--ranks`: reads 64 logs of 4 MB, one per rank, alternating between
one process and two.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import alternate

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden" / "torch-2.13.log.gz"
LARGE = 256 << 20
RANKS, EACH = 64, 4_000_000
ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tlparse", default=shutil.which("tlparse"), help="path of tlparse; default: the one on PATH")
    parser.add_argument("--ranks", action="store_true", help="measure only the logs of many ranks")
    parser.add_argument("logs", nargs="*", type=Path)
    args = parser.parse_args()
    if not args.ranks:
        _compare_tools(args)
    if not args.logs:
        _measure_ranks()


def _compare_tools(args: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = args.logs or [_write_golden_log(Path(folder))]
        rows = [
            (log, _find_best(_ingest_in_process, log), args.tlparse and _find_best(_run_tlparse, log, args.tlparse))
            for log in small
        ]
        if not args.logs:
            large = write_repeated_log(Path(folder), small[0].read_bytes())
            rows.append((large, _run_ingest(large), args.tlparse and _run_tlparse(large, args.tlparse)))
        for log, own, other in rows:
            _print_comparison(log, own, other)
        print(f"startup of the command: {_measure_start():.2f} s")


def _measure_ranks() -> None:
    with tempfile.TemporaryDirectory() as folder:
        logs = Path(folder, "logs")
        logs.mkdir()
        size = _write_rank_logs(logs)
        times: dict[int, list[float]] = {1: [], 2: []}
        for number in alternate(list(times), ROUNDS):
            times[number].append(_run_ingest(logs, "-j", str(number))["s"])
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


def _find_best(measure, *args) -> dict[str, float]:
    return min((measure(*args) for _ in range(ROUNDS)), key=lambda found: found["s"])


def _ingest_in_process(log: Path) -> dict[str, float]:
    import compilediag as cd

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run.cdiag")
        begin = time.perf_counter()
        cd.ingest(log, out)
        return {"s": time.perf_counter() - begin, "files": 1, "bytes": out.stat().st_size}


def _run_ingest(log: Path, *options: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "run.cdiag")
        command = [sys.executable, "-m", "compilediag", "ingest", str(log), "-o", str(out), "--quiet", *options]
        found = _run_process(command, {**os.environ, "PYTHONPATH": str(ROOT)})
        return {**found, "files": 1, "bytes": out.stat().st_size}


def _run_tlparse(log: Path, command: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "out")
        found = _run_process([command, str(log), "-o", str(out), "--no-browser"], dict(os.environ))
        files = [file for file in out.rglob("*") if file.is_file()]
        return {**found, "files": len(files), "bytes": sum(file.stat().st_size for file in files)}


def _run_process(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Return the seconds and peak memory of a process. A parent process without other children measures the memory."""
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=2, check=True); "
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *command], env=environment, capture_output=True, text=True, check=True
    )
    return {"s": time.perf_counter() - begin, "mb": int(done.stdout) * _UNIT / 2**20}


#: ru_maxrss is in kB, on macOS in bytes.
_UNIT = 1 if sys.platform == "darwin" else 1024


def _measure_start() -> float:
    command = [sys.executable, "-m", "compilediag", "--version"]
    return min(_run_process(command, {**os.environ, "PYTHONPATH": str(ROOT)})["s"] for _ in range(ROUNDS))


def _print_comparison(log: Path, own: dict[str, float], other: dict[str, float] | None) -> None:
    size = log.stat().st_size
    print(f"{log.name}, {size / 2**20:.1f} MB")
    print(f"  compilediag {_format_run(own, size)}")
    if other:
        print(f"  tlparse     {_format_run(other, size)}")
        memory = f", memory {own['mb'] / other['mb']:.2f}x" if "mb" in own else ""
        print(f"  ratio       time {own['s'] / other['s']:.2f}x{memory}")


def _format_run(found: dict[str, float], size: int) -> str:
    memory = f"{found['mb']:.0f} MB, " if "mb" in found else ""
    return f"{found['s']:.2f} s, {memory}{found['files']:.0f} files, {found['bytes'] / size:.2f}x the log's bytes"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
