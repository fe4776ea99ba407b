"""No method of the user's containers runs because of a watch: see users_containers.py.

torch runs some of them itself when it checks guards. So each count is compared with that of a process without a watch.
"""

import functools
import json

import pytest

from tests.tiers import quick

DETAILS = quick(["lean", "full"], ["full"], why="all programs once more")


@pytest.fixture(scope="module")
def counts(program_server):
    """Mode -> what each program computed, and how often its methods ran."""

    def run(mode):
        done = program_server.run("-m", "tests.live.users_containers", mode)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return functools.cache(run)


@pytest.mark.parametrize("detail", DETAILS)
def test_methods_run_as_often_as_without_a_watch(counts, detail):
    plain, watched = counts("none"), counts(detail)
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


@pytest.mark.parametrize("detail", DETAILS)
def test_what_the_programs_compute_is_the_same(counts, detail):
    plain = {name: program["results"] for name, program in counts("none").items()}
    assert {name: program["results"] for name, program in counts(detail).items()} == plain
