"""Another process that locks the session file delays the end of a watch by seconds, and costs nothing that it shows."""

import json
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("locked_files.py")
MOMENTS = ("recording", "fork", "start", "unlocked")
LOCKS = ("write", "exclusive", "read")


@pytest.fixture(scope="module")
def outcomes(program_server, tmp_path_factory):
    """What became of the session, by moment and lock. The locks are held until the process has ended."""
    done = program_server.run(PROGRAM, tmp_path_factory.mktemp("files"))
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("how", LOCKS)
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_locked_file_costs_nothing_that_the_session_shows(outcomes, moment, how):
    outcome = outcomes[f"{moment}, {how}"]
    assert (outcome["compiles"], outcome["saved"], outcome["dropped"]) == (4, True, 0)
    assert outcome["is_active"] and outcome["threads"] == []
    if moment in ("recording", "fork") and how != "read":
        # The lock outlives the watch: the session says that its file is incomplete.
        assert (outcome["state"], outcome["writer"]) == ("lost", ["failed", "lost"])
        assert outcome["names_reason"]
    else:
        assert (outcome["state"], outcome["writer"]) == ("stopped", ["active", None])
