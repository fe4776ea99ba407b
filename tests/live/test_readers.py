"""Everything can be read while four threads compile: no error, and no row that one view has and another has not."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long("six seconds of compiling in four threads")
def test_readers_of_everything_beside_four_compiling_threads_meet_no_error(python):
    """`python -m benchmarks.readers` does the same for ten minutes."""
    done = python("-m", "benchmarks.readers", "--minutes", "0.1", cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["errors"] == []
    assert found["rows"]["compiles"] == found["counts"]["compiles"] > 0
    assert "Traceback" not in done.stderr
