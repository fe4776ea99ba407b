"""Measures how long it takes to find where 10,000 ranks first diverge, given their logs.

    python benchmarks/many_ranks.py [--ranks 10000] [--processes 2]

Five small training programs that differ in one thing run under TORCH_TRACE. Their logs are copied, one per rank, with
what differs between the ranks of a real job: rank, pid, times, durations, addresses and device numbers. The bounds are
60 s and 2 GB of memory, on two cores, from the folder of logs to the first divergence.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SECONDS, GIGABYTES = 60.0, 2.0
#: What a rank can do differently; all others of a job do what the first does.
BEHAVIORS = ("usual", "size", "number", "graph_break", "left_out")
#: Share of the ranks, in percent, that behave as each of them.
SHARES = (90, 5, 3, 1, 1)


# The program


def train(behavior: str) -> None:
    """Train a small network for five steps, on CPU, as the rank 0 of a job of one rank."""
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
    layers = torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(2))

    def forward(x: torch.Tensor, scale: float) -> torch.Tensor:
        for layer in layers:
            x = layer(x).relu()
        if behavior == "graph_break":
            torch._dynamo.graph_break()
        return x.mean() * scale

    def clip(norms: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(norms).sum().clamp(max=1.0)

    compiled, clipped = (torch.compile(f, backend="aot_eager", dynamic=False) for f in (forward, clip))
    for step, size in enumerate((8, 8, 12, 8, 20 if behavior == "size" else 16)):
        compiled(torch.ones(size, 16), 0.5 if behavior == "number" and step == 3 else 1.0).backward()
        if behavior != "left_out":
            clipped([p.grad.norm() for p in layers.parameters() if p.grad is not None])


# The folder


_TIME = re.compile(rb'"(\w*(?:_us|_ns|_ms|_s|_time|ts))": (\d+(?:\.\d+)?)')
_ADDRESS = re.compile(rb"0x[0-9a-f]{6,16}")
_HEAD = re.compile(rb"V(\d{4}) (\d\d):(\d\d):(\d\d\.\d{6}) (\d+) ")


class LogTemplate:
    """A real log whose copies are the logs of other ranks."""

    def __init__(self, path: Path):
        text = path.read_bytes()
        self._records = list(_split(text))
        #: When the program began, in s.
        self._began = int(re.findall(rb'"ts": (\d{10})', text)[0])
        #: The same in s of the day, as the records' prefixes have it.
        self._first_s = _read_second(_HEAD.match(text))

    def write(self, rank: int, folder: Path) -> None:
        """Write the log of a rank."""
        change = _make_change(rank, self._began, self._first_s)
        lines = []
        for head, payload in self._records:
            own, own_head = change(payload), head.replace(b'"rank": 0', b'"rank": %d' % rank)
            if own is not payload:
                digest = hashlib.md5(own, usedforsecurity=False).hexdigest().encode()
                own_head = re.sub(rb'"has_payload": "[0-9a-f]+"', b'"has_payload": "%s"' % digest, own_head)
            lines.append(change(own_head))
            lines += [b"\t" + line for line in own.split(b"\n")] if payload else []
        name = f"dedicated_log_torch_trace_rank_{rank}_{random.randrange(1 << 32):08x}.log"
        (folder / name).write_bytes(b"\n".join(lines) + b"\n")


def _make_change(rank: int, began: int, first_s: float) -> Callable[[bytes], bytes]:
    """Return a function that changes what differs between ranks."""
    chance = random.Random(rank)
    late, slower, base = chance.randrange(30), chance.uniform(0.9, 1.3), chance.randrange(1 << 20) << 24

    def change_time(found: re.Match[bytes]) -> bytes:
        name, number, digits = found[1], json.loads(found[2]), len(found[2].partition(b".")[0])
        zero, delay = (0, 0) if digits < 10 else (began * 10 ** (digits - 10), late * 10 ** (digits - 10))
        own = zero + (number - zero) * slower + delay
        return b'"%s": %s' % (name, str(type(number)(own)).encode())

    def change_head(found: re.Match[bytes]) -> bytes:
        second = first_s + (_read_second(found) - first_s) * slower + late
        clock = b"%02d:%02d:%s" % (second // 3600, second // 60 % 60, f"{second % 60:09.6f}".encode())
        return b"V%s %s %d " % (found[1], clock, 10_000 + rank)

    def change_address(found: re.Match[bytes]) -> bytes:
        return b"0x%x" % (int(found[0], 16) + base)

    def change(text: bytes) -> bytes:
        if text[:1] == b"V":
            text = _HEAD.sub(change_head, text, count=1)
        if b"_us" in text or b"_s" in text or b"_ns" in text or b'"ts"' in text:
            text = _TIME.sub(change_time, text)
        if b"0x" in text:
            text = _ADDRESS.sub(change_address, text)
        return text.replace(b"cuda:0", b"cuda:%d" % (rank % 8)) if b"cuda:0" in text else text

    return change


def _read_second(found: re.Match[bytes] | None) -> float:
    """Return the time of a record's prefix, in s of the day."""
    assert found is not None, "torch has changed its prefix"
    return int(found[2]) * 3600 + int(found[3]) * 60 + float(found[4])


def _split(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the head and the payload of each record."""
    for record in re.split(rb"\n(?!\t)", text.rstrip(b"\n")):
        head, _, payload = record.partition(b"\n")
        yield head, payload[1:].replace(b"\n\t", b"\n")


def choose_behavior(rank: int) -> int:
    """Return what a rank does: the rare ones are spread over the job."""
    place, edges = (rank * 37 + 11) % 100, [sum(SHARES[: number + 1]) for number in range(len(SHARES))]
    return next(number for number, edge in enumerate(edges) if place < edge)


def write_job(folder: Path, ranks: int) -> int:
    """Write the logs of a job; return their size in bytes."""
    with tempfile.TemporaryDirectory() as own:
        templates = [LogTemplate(_record(behavior, Path(own, behavior))) for behavior in BEHAVIORS]
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(ranks):
            templates[choose_behavior(rank)].write(rank, folder)
    return sum(path.stat().st_size for path in folder.iterdir())


def _record(behavior: str, folder: Path) -> Path:
    """Run the program and return its log."""
    environment = {**os.environ, "TORCH_TRACE": str(folder), "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache")}
    subprocess.run([sys.executable, __file__, "--train", behavior], env=environment, check=True)
    [log] = folder.glob("*.log")
    return log


# What is measured


def measure(folder: Path, processes: int) -> None:
    """Print how long it takes to find the first divergence, and the memory of all processes."""
    import compilediag

    began = time.perf_counter()
    session = compilediag.ingest(folder, processes=processes, group_ranks=True)
    read_s = time.perf_counter() - began
    ranks = session.ranks()
    first, whole_s = ranks.first, time.perf_counter() - began
    print(f"first divergence: {first.sentence if first else 'none'}\n")
    print(ranks.summary().split("Ranks, the one")[0])
    gigabytes = (_get_peak(resource.RUSAGE_SELF) + processes * _get_peak(resource.RUSAGE_CHILDREN)) / 1e6
    print(f"{whole_s:.1f} s (logs {read_s:.1f} s), {_get_cpu_s():.1f} s of CPU, at most {gigabytes:.2f} GB of memory")
    print("bounds met" if whole_s <= SECONDS and gigabytes <= GIGABYTES else "BOUNDS NOT MET")
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as own:
        report = session.report(Path(own, "report.html"))
        print(f"report: {time.perf_counter() - began:.1f} s, {report.stat().st_size / 1e6:.1f} MB")


def _get_peak(who: int) -> int:
    """Return the most kB of memory that this process, or any child of it, has used."""
    return resource.getrusage(who).ru_maxrss


def _get_cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--train", help=argparse.SUPPRESS)
    parser.add_argument("--measure", type=Path, help="a folder with logs to measure, such as this program writes")
    parser.add_argument("--write", type=Path, help="only write the logs, into this folder")
    args = parser.parse_args()
    if args.train:
        train(args.train)
    elif args.measure:
        sys.path.insert(0, str(ROOT))
        measure(args.measure, args.processes)
    elif args.write:
        write_job(args.write, args.ranks)
    else:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{args.ranks} logs, {write_job(Path(folder), args.ranks) / 1e6:.0f} MB")
            # In a process of its own, so that its memory is known.
            command = [sys.executable, __file__, "--measure", folder, "--processes", str(args.processes)]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
