"""A few cases of `python -m tests.fuzz` of each kind: what every command does with files that a stranger has spoilt."""

import pytest

from ..fuzz.cases import Originals, run_case
from ..fuzz.commands import find_problems, list_commands
from .session_builder import saved

CASES, COMMANDS = 4, 3


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    return Originals(tmp_path_factory.mktemp("originals"))


@pytest.mark.long("every command; the other tests have spoilt sessions")
def test_every_command_ends_well_with_an_honest_session(originals, tmp_path):
    commands = list_commands(originals.base, originals.base, tmp_path)
    assert {command[0]: problems for command in commands if (problems := find_problems(command))} == {}


@pytest.mark.parametrize("way", ["cells", "bytes", "log"])
def test_every_command_ends_with_a_result_or_one_line(originals, tmp_path, way):
    found = [run_case(seed, originals, tmp_path / "case", way, COMMANDS) for seed in range(CASES)]
    assert [problem for problems in found for problem in problems] == []


def test_an_outcome_of_another_type_is_ignored(tmp_path):
    session = saved(tmp_path)

    def read(outcome):
        session.data.set_meta(tried=outcome)
        return session.plan().tried

    odd = {
        "holds": "x",
        "recompiles_before": [1],
        "exit_codes": 7,
        "note": 5,
        "runs": None,
        "wall_seconds_before": True,
    }
    nothing = read({})
    assert read(odd) == nothing and nothing["holds"] is False and nothing["exit_codes"] == [None, None]
    assert read({"exit_codes": [0, None], "runs": 3}) == {**nothing, "exit_codes": [0, None], "runs": 3}
