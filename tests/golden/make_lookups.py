"""Writes tests/golden/lookups-VERSION.log.gz: what torch logs of `cache_programs.py`, without this machine's paths.

python -m tests.golden.make_lookups PYTHON...

Each PYTHON is an interpreter with another version of torch. The logs keep the records of lookups, and those that say
of which function they are.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import make_log

PROGRAM = Path(__file__).with_name("cache_programs.py")
KEPT = ("cache_hit", "cache_miss", "cache_bypass", "cache_disabled", "cache_hash", "code_state", "pickle_failure")
KINDS = {"str", "dynamo_start", "inductor_post_grad_graph"}
#: Components of a key that are kept: the others are configuration.
COMPONENTS = 8
VERSION = "import torch, os; print(torch.__version__.split('+')[0], os.path.dirname(os.path.dirname(torch.__file__)))"


def is_kept(record: make_log.Record, name: str) -> bool:
    if "chromium_event" in record.metadata:
        name = json.loads(record.payload)["name"]
        return name in ("dynamo", "entire_frame_compile") or any(part in name for part in KEPT)
    name = (record.metadata.get("artifact") or {}).get("name", "")
    return bool(KINDS & record.metadata.keys()) or any(part in name for part in KEPT)


def shortened(record: make_log.Record) -> make_log.Record:
    """The record with a few components of its key."""
    if record.payload is not None and b'"components"' in record.payload:
        fields = json.loads(record.payload)
        place = fields.get("args", fields)
        place["components"] = (place["components"] or [])[:COMPONENTS]
        record.payload = json.dumps(fields).encode()
    return record


def read_log(path: Path) -> list[make_log.Record]:
    return [shortened(record) for record in make_log.read(path, is_kept)]


def write(logs: list[Path], folder: str, version: str, packages: str) -> None:
    text = []
    for record in (record for path in logs for record in read_log(path)):
        prefix = f"V{record.stamp} 4242 torch/_dynamo/utils.py:1] "
        text += make_log.lines(record, prefix, folder, packages)
    target = PROGRAM.with_name(f"lookups-{version}.log.gz")
    target.write_bytes(gzip.compress("".join(f"{line}\n" for line in text).encode(), 9, mtime=0))


def main() -> None:
    for python in sys.argv[1:]:
        version, packages = subprocess.check_output([python, "-c", VERSION], text=True).split()
        with tempfile.TemporaryDirectory() as folder:
            variables = {"TORCH_TRACE": f"{folder}/logs", "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache"}
            subprocess.run([python, str(PROGRAM)], env={**os.environ, **variables}, check=True)
            write(sorted(Path(folder, "logs").iterdir()), folder, version, packages)


if __name__ == "__main__":
    main()
