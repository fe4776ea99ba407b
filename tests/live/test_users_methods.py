"""No method of the user's containers runs because of a watch: see users_containers.py.

torch runs some of them itself when it checks guards. So each count is compared with that of a process without a watch.
"""

import json
import os
import subprocess
import sys

import pytest


@pytest.fixture(scope="module")
def counts():
    command = [sys.executable, "-m", "tests.live.users_containers"]
    started = {
        mode: subprocess.Popen([*command, mode], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ)
        for mode in ("none", "lean", "full")
    }
    try:
        outputs = {mode: process.communicate(timeout=600) for mode, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
    assert not any(process.returncode for process in started.values()), outputs
    return {mode: json.loads(out) for mode, (out, _) in outputs.items()}


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_methods_run_as_often_as_without_a_watch(counts, detail):
    plain, watched = counts["none"], counts[detail]
    assert len(plain) > 50 and sum(sum(program["calls"].values()) for program in plain.values()) > 500
    more = {
        name: {
            method: (program["calls"].get(method, 0), watched[name]["calls"].get(method, 0))
            for method in {*program["calls"], *watched[name]["calls"]}
            if program["calls"].get(method, 0) != watched[name]["calls"].get(method, 0)
        }
        for name, program in plain.items()
    }
    assert {name: methods for name, methods in more.items() if methods} == {}


@pytest.mark.parametrize("detail", ["lean", "full"])
def test_what_the_programs_compute_is_the_same(counts, detail):
    plain = {name: program["results"] for name, program in counts["none"].items()}
    assert {name: program["results"] for name, program in counts[detail].items()} == plain
