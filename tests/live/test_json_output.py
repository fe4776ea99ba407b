"""With --json, a command that runs a script prints one document to the standard output, and nothing of the script."""

import json

import jsonschema
import pytest

from tests.loading import read_schema
from tests.tiers import quick

SCRIPT = """import subprocess, sys
import torch
@torch.compile(backend="eager")
def f(x, n):
    return x * n
for n in 2.5, 3.5, 4.5:
    f(torch.ones(3), n)
print("printed", flush=True)
subprocess.run([sys.executable, "-c", "print('printed')"])
"""
#: Schema, arguments, exit code.
COMMANDS = [
    ("findings/1", ["run", "--quiet", "--json", "train.py"], 0),
    ("check/1", ["check", "--max-recompiles", "9", "--json", "train.py"], 0),
    ("trial/1", ["try", "--fast", "--runs", "1", "--json", "train.py"], 0),
    ("fix/1", ["fix", "--fast", "--json", "train.py"], 0),
]


@pytest.mark.parametrize(
    ("schema", "arguments", "code"),
    quick(COMMANDS, ["findings/1", "check/1"], why="several runs"),
    ids=[schema for schema, *_ in COMMANDS],
)
def test_the_output_is_one_document(program_server, schema, arguments, code, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = program_server.run("-m", "compilediag", *arguments, cwd=tmp_path)
    values = json.loads(done.stdout)
    assert (values["schema"], done.returncode) == (f"compilediag.{schema}", code), done.stderr
    jsonschema.validate(values, read_schema(values["schema"]))
    captured = 2 if schema in ("findings/1", "check/1") else 0
    assert done.stderr.splitlines().count("printed") == captured
