"""Writes tests/golden/torch-VERSION.log.gz: what TORCH_TRACE logs of small programs, without this machine's paths.

python -m tests.golden.make_log
"""

import gzip
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

from compilediag.decode.tracelog import Record, read_records
from tests.live import programs

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = (programs.sizes, programs.numbers, programs.graph_breaks, programs.backward, programs.limit)
#: Configurations are in every record of metrics; so many of their items will do.
CONFIGS, ITEMS = ("dynamo_config", "inductor_config", "functorch_config"), 40


def cleaned(text: str, folder: str) -> str:
    places = {folder: "/home/user", str(ROOT): "/home/user/project", str(Path(torch.__file__).parents[1]): PACKAGES}
    for here, there in places.items():
        text = text.replace(here, there).replace(here.strip("/").split("/", 2)[-1], there.strip("/"))
    return text


PACKAGES = "/usr/lib/python3/site-packages"


def lines(record: Record, prefix: str, folder: str):
    metadata = json.loads(cleaned(json.dumps(record.metadata), folder))
    for metrics in (metadata.get("compilation_metrics"), metadata.get("bwd_compilation_metrics")):
        for name in CONFIGS if metrics else ():
            items = list(json.loads(metrics[name]).items())[:ITEMS]
            metrics[name] = json.dumps(dict(items))
    payload = None if record.payload is None else cleaned(record.text, folder)
    if payload is not None:
        metadata["has_payload"] = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    yield prefix + json.dumps(metadata)
    yield from (f"\t{line}" for line in ([] if payload is None else payload.split("\n")))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        caches = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache", "TORCH_TRACE": f"{folder}/logs"}
        program = [sys.executable, "-m", __spec__.name, "run"]
        subprocess.run(program, env={**os.environ, **caches, "PYTHONPATH": str(ROOT)}, cwd=ROOT, check=True)
        (log,) = Path(folder, "logs").iterdir()
        with log.open("rb") as stream:
            records = list(read_records(stream))
        text = "".join(
            f"{line}\n"
            for record in records
            for line in lines(record, f"V{record.stamp} 4242 torch/_dynamo/utils.py:1] ", folder)
        )
    version = torch.__version__.split("+")[0].rpartition(".")[0]
    target = Path(__file__).parent / f"torch-{version}.log.gz"
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def run() -> None:
    from tests.live import traced

    for program in PROGRAMS:
        program()
    traced.inductor()


if __name__ == "__main__":
    run() if sys.argv[1:] == ["run"] else main()
