"""Writes tests/golden/vllm-VERSION.log.gz: what vLLM and torch log of `vllm_program.py`, without this machine's paths.

python -m tests.golden.make_vllm_log PYTHON [SITE]

PYTHON is an interpreter with vLLM's needs, SITE a folder with vLLM if it is not installed there: its Python files and
its `*.dist-info` will do, the program needs no GPU and none of vLLM's kernels. The log keeps vLLM's records, and those
that say of which function they are.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from . import make_log

PROGRAM = Path(__file__).with_name("vllm_program.py")
KINDS = {"str", "dynamo_start", "compilation_metrics", "dynamo_output_graph", "torch_version"}
VERSIONS = """
import importlib.metadata, os, torch
print(importlib.metadata.version("vllm"), os.path.dirname(os.path.dirname(torch.__file__)))
"""


def is_kept(record: make_log.Record, name: str) -> bool:
    if "chromium_event" in record.metadata:
        phase = json.loads(record.payload)["name"]
        return phase in ("dynamo", "entire_frame_compile") or phase.startswith("vllm")
    return name in KINDS or name.startswith("vllm_")


def main(python: str, site: str = "") -> None:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": site,
            "TORCH_TRACE": f"{folder}/logs",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/cache",
            "VLLM_CACHE_ROOT": f"{folder}/vllm",
            "VLLM_DISABLE_COMPILE_CACHE": "1",
        }
        subprocess.run([python, PROGRAM], env=environment, check=True)
        versions = subprocess.run([python, "-c", VERSIONS], env=environment, check=True, capture_output=True, text=True)
        version, packages = versions.stdout.split()
        text = []
        for path in sorted(Path(folder, "logs").iterdir()):
            for record in make_log.read(path, is_kept):
                prefix = f"V{record.stamp} 4242 torch/_dynamo/utils.py:1] "
                text += [
                    line.replace(site, packages) if site else line
                    for line in make_log.lines(record, prefix, folder, packages)
                ]
    target = PROGRAM.with_name(f"vllm-{version}.log.gz")
    target.write_bytes(gzip.compress("".join(f"{line}\n" for line in text).encode(), 9, mtime=0))


if __name__ == "__main__":
    main(*sys.argv[1:])
