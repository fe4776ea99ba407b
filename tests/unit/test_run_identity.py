"""Which process records a session: a later process with the same pid is another one."""

import os
import subprocess
import sys

import pytest

import compilediag as cd
from compilediag.recording.active_recording import is_recorded_by_another
from compilediag.storage.store import Store
from compilediag.system.program import BOOT, HOST, STARTED, identify_process, is_running

from .log_builder import string
from .session_builder import META

#: Creates the session of a run, and runs until it is killed.
RUN = """
import sys
from pathlib import Path
from compilediag.system.program import identify_process
from compilediag.storage.store import Store

Store.create(Path(sys.argv[1]), {"created_ns": 1, "stopped_ns": None, "detail": "full", **identify_process()})
print("begun", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def begin():
    """Starts a process that records to a path; each is killed at the end."""
    started = []

    def run(path):
        process = subprocess.Popen(
            [sys.executable, "-c", RUN, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "begun\n"
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def killed(tmp_path, begin):
    """The file of a killed run in a folder, whose pid an unrelated process has now: one that records elsewhere."""
    (tmp_path / "ranks").mkdir()
    path = tmp_path / "ranks" / "run.cdiag"
    process = begin(path)
    assert is_recorded_by_another(path) and cd.load(path).state == "watching"
    process.kill()
    process.wait()
    unrelated = begin(tmp_path / "other.cdiag")
    store = Store.open(path, writable=True)
    store.set_meta(pid=unrelated.pid)
    store.close()
    return path


def test_a_killed_runs_file_is_not_joined_because_its_pid_is_in_use_again(killed):
    assert not is_recorded_by_another(killed)
    assert cd.load(killed).state == "loaded"
    with cd.watch(killed) as session:
        assert session.meta["pid"] == os.getpid() and session.data.is_recorded_here


def test_a_folder_shows_it_as_killed_and_not_as_running(killed):
    session = cd.load(killed.parent)
    (file,) = session.data.files.values()
    assert (session.state, file.is_live, file.was_killed) == ("loaded", False, True)


def test_an_ingestion_goes_on_where_a_killed_one_stopped(killed, tmp_path):
    """The pid of the killed one is in use, and no error says that it still writes."""
    (tmp_path / "torch.log").write_text(string())
    assert cd.ingest(tmp_path / "torch.log", out=killed).path == killed


def test_host_boot_and_start_tell_runs_apart():
    own = identify_process()
    assert is_running(own) and is_running({**META, "pid": os.getpid()}), "older files have the pid alone"
    for other in ({HOST: "elsewhere"}, {BOOT: "an earlier one"}, {STARTED: own[STARTED] - 1}, {"pid": META["pid"]}):
        assert not is_running({**own, **other}), other


def test_what_another_machine_records_is_not_called_killed(tmp_path):
    (tmp_path / "ranks").mkdir()
    store = Store.create(tmp_path / "ranks" / "a.cdiag", {**META, **identify_process(), HOST: "elsewhere", "pid": 1})
    store.close()
    (file,) = cd.load(tmp_path / "ranks").data.files.values()
    assert not file.is_live and not file.was_killed
