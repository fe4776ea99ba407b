"""Writes tests/golden/torch-VERSION*.log.gz: what TORCH_TRACE logs of small programs, without this machine's paths.

python -m tests.golden.make_log
"""

import contextlib
import gzip
import hashlib
import json
import os
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch

from compilediag.decode.records.record_kinds import KEPT, find_name
from compilediag.decode.records.shape_records import KINDS
from compilediag.decode.records.trace_log import Record, read_records
from tests.live import programs

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = (programs.sizes, programs.numbers, programs.graph_breaks, programs.backward, programs.limit)
#: Configurations are in every record of metrics; so many of their items will do.
CONFIGS, ITEMS = ("dynamo_config", "inductor_config", "functorch_config"), 40
#: What the smaller logs hold.
RARE = KINDS | KEPT | {"str", "dynamo_start", "compilation_metrics", "bwd_compilation_metrics", "before_pre_grad_graph"}


def cleaned(text: str, folder: str, packages: str = str(Path(torch.__file__).parents[1])) -> str:
    places = {
        folder: "/home/user",
        str(ROOT): "/home/user/project",
        packages: PACKAGES,
        sysconfig.get_path("stdlib"): "/usr/lib/python3",
    }
    for here, there in places.items():
        text = text.replace(here, there).replace(here.strip("/").split("/", 2)[-1], there.strip("/"))
    return text


PACKAGES = "/usr/lib/python3/site-packages"


def lines(record: Record, prefix: str, *places: str):
    metadata = json.loads(cleaned(json.dumps(record.metadata), *places))
    for metrics in (metadata.get("compilation_metrics"), metadata.get("bwd_compilation_metrics")):
        for name in CONFIGS if metrics else ():
            items = list(json.loads(metrics[name]).items())[:ITEMS]
            metrics[name] = json.dumps(dict(items))
    payload = None if record.payload is None else cleaned(record.text, *places)
    if payload is not None:
        metadata["has_payload"] = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    yield prefix + json.dumps(metadata)
    yield from (f"\t{line}" for line in ([] if payload is None else payload.split("\n")))


def main() -> None:
    write("", ["-m", __spec__.name, "run"])
    for program in ("shapes", "failures", "export", "provenance"):
        write(f"-{program}", ["-m", "tests.live.recorded", program], kept=RARE)
    port = str(free_port())
    write("-rank", *(["-m", "tests.live.recorded", "collectives", rank, port] for rank in "01"), kept=RARE)


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def write(suffix: str, *programs: list[str], kept: frozenset[str] | None = None) -> None:
    """Runs programs at once and writes a log of each, of the records that are `kept`; several are numbered from 0."""
    version = torch.__version__.split("+")[0].rpartition(".")[0]
    running = []
    with contextlib.ExitStack() as folders:
        for program in programs:
            folder = folders.enter_context(tempfile.TemporaryDirectory())
            logs = dict.fromkeys(("TORCH_TRACE", "TORCH_DTRACE"), f"{folder}/logs")
            environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache", **logs, "PYTHONPATH": str(ROOT)}
            running.append((folder, subprocess.Popen([sys.executable, *program], env=environment, cwd=ROOT)))
        for number, (folder, process) in enumerate(running):
            if process.wait(timeout=300):
                raise SystemExit(f"{programs[number]} failed")
            text = "".join(log_of(path, folder, kept) for path in sorted(Path(folder, "logs").iterdir()))
            name = f"torch-{version}{suffix}{number if len(programs) > 1 else ''}.log.gz"
            (Path(__file__).parent / name).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def read(path: Path, is_kept: Callable[[Record, str], bool]) -> list[Record]:
    """The records of a log that are kept, each judged with the name of its kind."""
    with path.open("rb") as stream:
        return [record for record in read_records(stream) if is_kept(record, find_name(record.metadata) or "")]


def log_of(path: Path, folder: str, kept: frozenset[str] | None) -> str:
    records = read(path, lambda record, name: kept is None or name in kept)
    prefixes = (f"V{record.stamp} 4242 torch/_dynamo/utils.py:1] " for record in records)
    pairs = zip(records, prefixes, strict=True)
    return "".join(f"{line}\n" for record, prefix in pairs for line in lines(record, prefix, folder))


def run() -> None:
    from tests.live import traced

    for program in PROGRAMS:
        program()
    traced.inductor()


if __name__ == "__main__":
    run() if sys.argv[1:] == ["run"] else main()
