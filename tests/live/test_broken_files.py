"""A session file that is removed, replaced, damaged or full costs the session, and never the program."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("broken_files.py")
MOMENTS = ("start", "recording", "stop", "__exit__", "exception")
#: What happens to the file, and what the reason says.
CAUSES = {
    "removed": "run.cdiag was removed",
    "replaced": "run.cdiag was replaced",
    "overwritten": "run.cdiag was overwritten",
    "emptied": "run.cdiag was overwritten",
    "moved": "run.cdiag was removed",
    "-wal emptied": "run.cdiag-wal was cut off",
    "-wal cut": "run.cdiag-wal was cut off",
    "folder removed": "run.cdiag was removed",
    "file size limit": "run.cdiag can't be written: disk I/O error",
    "removed, then fork": "run.cdiag was removed",
    "disk full": "run.cdiag can't be written: database or disk is full",
}
#: Causes that destroy what was written.
DESTROYING = ("overwritten", "emptied", "-wal emptied", "-wal cut")
#: Causes after which the file has what was written.
KEEPING = ("moved", "file size limit", "disk full")
#: Causes after which what can't be written waits in memory, and is shown.
WAITING = ("file size limit", "disk full")
#: A disk of one megabyte, in a namespace of its own.
ON_SMALL_DISK = 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"'


def can_mount(folder):
    """True if this user can have a small disk."""
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--mount", "sh", "-c", ON_SMALL_DISK, folder, "true"]
    return subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of the session, by cause and moment; all of it in one process."""
    folder, disk = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("disk")
    prefix = ["unshare", "--mount", "sh", "-c", ON_SMALL_DISK, disk] if can_mount(disk) else []
    command = [*prefix, sys.executable, PROGRAM, folder, *([disk] if prefix else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "Exception ignored" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture
def outcome(request, outcomes):
    cause, moment = request.param
    if cause == "disk full" and f"{cause}, {moment}" not in outcomes:
        pytest.skip("a small disk can't be mounted here")
    return outcomes[f"{cause}, {moment}"]


@pytest.mark.parametrize(
    ("cause", "moment", "outcome"),
    [(cause, moment, (cause, moment)) for cause in CAUSES for moment in MOMENTS],
    indirect=["outcome"],
)
def test_a_broken_file_costs_the_session_and_never_the_program(cause, moment, outcome):
    assert outcome["raised"] is None, outcome["raised"]
    assert outcome["left"] == []
    assert outcome["summary"] and outcome["html"]
    if cause.startswith("-wal") and moment == "start":
        # It had nothing yet.
        assert (outcome["state"], outcome["compiles"], outcome["later"]) == ("stopped", 1, 1)
        return
    assert outcome["state"] == "lost"
    status, code, reason = outcome["writer"]
    assert (status, code) == ("failed", "lost") and reason.endswith(CAUSES[cause])
    if outcome["active"]:
        assert cause in KEEPING and outcome["compiles"] == outcome["made"], "what any source saw is lost"
    else:
        assert moment not in ("stop", "__exit__") or cause not in WAITING, "what waited for the file is shown"
    assert len(outcome["warnings"]) == 1
    if cause not in DESTROYING:
        assert outcome["compiles"] >= outcome["least"]
    if cause in KEEPING and moment != "start":
        assert outcome["later"] >= outcome["least"]
    if cause in ("replaced", "overwritten"):
        assert outcome["later"] == 0, "nothing is written to another session's file"
