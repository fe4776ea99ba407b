"""A program that is out of memory gets no exception of ours: not from a hook, a flush or the end of a watch."""

import json
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("memory_limit.py")


@pytest.mark.parametrize("detail", ["lean", "full"])
@pytest.mark.parametrize("moment", ["start", "hooks", "flush", "stop"])
def test_nothing_is_raised_and_nothing_is_left_without_memory(program_server, moment, detail):
    done = program_server.run(PROGRAM, moment, detail)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    # A watch that can't begin is the caller's to know.
    assert found["raised"] in ((None, "MemoryError") if moment == "start" else (None,))
    assert found["hooks"] == [] and not found["running"]
