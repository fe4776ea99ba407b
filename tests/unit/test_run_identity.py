"""Which process records a session: a later process with the same pid is another one."""

import os
import shutil
import signal
import time

import pytest

import compilediag as cd
from tests.inside import Store

from .log_builder import string
from .session_builder import META, stored

#: Records a session until it is killed.
RUN = "import sys, time, compilediag; compilediag.start(sys.argv[1]); print('begun', flush=True); time.sleep(600)"
#: What tells a run from others, beside its pid.
IDENTITY = ("host", "boot_id", "process_start")


@pytest.fixture(scope="module")
def runs(program_server, tmp_path_factory):
    """(the file of a killed run, whose pid a living one seems to have; the file of that living one)."""
    folder, started = tmp_path_factory.mktemp("runs"), []
    for name in ("killed", "alive"):
        read, write = os.pipe()
        started.append(program_server.start("-c", RUN, folder / name, stdout=write))
        os.close(write)
        with open(read) as output:
            assert output.readline() == "begun\n"
        time.sleep(0.05)  # Two processes that start in the same clock tick have the same start.
    killed, alive = started
    assert [cd.load(folder / name).state for name in ("killed", "alive")] == ["watching"] * 2
    os.kill(killed, signal.SIGKILL)
    store = Store.open(folder / "killed", writable=True)
    store.set_meta(pid=alive)
    store.close()
    yield folder / "killed", folder / "alive"
    os.kill(alive, signal.SIGKILL)


@pytest.fixture
def killed(tmp_path, runs):
    """The file of a killed run in a folder, whose pid an unrelated process has now: one that records elsewhere."""
    file = tmp_path / "ranks" / "run.cdiag"
    file.parent.mkdir()
    shutil.copy(runs[0], file)
    return file


def test_a_killed_runs_file_is_not_joined_because_its_pid_is_in_use_again(killed):
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


def test_host_boot_and_start_tell_runs_apart(tmp_path_factory, runs):
    meta = cd.load(runs[1]).meta
    own = {"pid": meta["pid"], **{name: meta[name] for name in IDENTITY}}

    def read_state(**facts):
        return stored(tmp_path_factory.mktemp("session"), **facts).state

    assert read_state(**own) == "watching"
    assert read_state(pid=own["pid"]) == "watching", "older files have the pid alone"
    others = {"host": "elsewhere", "boot_id": "an earlier one", "process_start": own["process_start"] - 1}
    for name, other in {**others, "pid": META["pid"]}.items():
        assert read_state(**{**own, name: other}) == "loaded", name


def test_what_another_machine_records_is_not_called_killed(tmp_path):
    stored(tmp_path, pid=1, host="elsewhere", boot_id="another", process_start=1)
    (file,) = cd.load(tmp_path).data.files.values()
    assert not file.is_live and not file.was_killed
