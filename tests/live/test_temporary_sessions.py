"""Temporary sessions of processes that were killed are removed by the next watch; those in use are not."""

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

WATCHED = """
import os, sys, time
import compilediag as cd
session = cd.start(detail="lean")
session.flush()
print(session.path.parent, flush=True)
"""
ENDINGS = {
    "SIGTERM": "time.sleep(600)",
    "SIGKILL": "time.sleep(600)",
    "os._exit": "os._exit(0)",
    "exec": "os.execv(sys.executable, [sys.executable, '-c', 'import time; time.sleep(600)'])",
}
FORKED = "\nif os.fork(): os._exit(0)\nprint('forked', flush=True); time.sleep(600)"
READER = """
import sys, time
import compilediag as cd
session = cd.load(sys.argv[1] + "/session.cdiag")
print("open", flush=True)
time.sleep(600)
"""


class Program:
    """A program in a session of its own: a forked child is no child of this process."""

    def __init__(self, server, code, *arguments):
        read, write = os.pipe()
        self.pid = server.start("-c", f"import os; os.setsid()\n{code}", *arguments, stdout=write)
        os.close(write)
        self.stdout = os.fdopen(read)

    def kill(self, number=signal.SIGKILL):
        os.killpg(self.pid, number)

    def wait(self):
        """Wait until all that write to its standard output have ended."""
        self.stdout.read()


@pytest.fixture
def begin(program_server, tmp_path, monkeypatch):
    """Starts a program with a temporary folder of its own; returns the process and the folder of its session."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    programs = []

    def begin(code, *arguments):
        programs.append(Program(program_server, code, *arguments))
        return programs[-1], programs[-1].stdout.readline().strip()

    yield begin
    for program in programs:
        with contextlib.suppress(ProcessLookupError):
            program.kill()
        program.stdout.close()


@pytest.fixture
def list_left(program_server, tmp_path):
    """Lists the sessions that are left when another watch has begun and ended."""

    def list_left():
        code = "import compilediag as cd\nwith cd.watch(detail='lean') as session: pass\ndel session"
        done = program_server.run("-c", code)
        assert done.returncode == 0, done.stderr
        return sorted(str(each) for each in tmp_path.glob("compilediag-" + "[0-9a-f]" * 16))

    return list_left


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_session_of_a_process_that_was_killed_is_removed(begin, list_left, tmp_path, ending):
    process, folder = begin(f"{WATCHED}{ENDINGS[ending]}")
    if ending in ("SIGTERM", "SIGKILL"):
        assert list_left() == [folder], "it is in use"
        process.kill(getattr(signal, ending))
    if ending == "exec":
        wait_for_exec(process.pid)
    else:
        process.wait()
    assert os.path.exists(f"{folder}/session.cdiag")
    assert list_left() == []


def wait_for_exec(pid):
    while b"program_server" in Path(f"/proc/{pid}/cmdline").read_bytes():
        time.sleep(0.05)


def test_the_session_of_a_forked_child_stays(begin, list_left, tmp_path):
    process, folder = begin(WATCHED + FORKED)
    assert process.stdout.readline() == "forked\n"
    assert list_left() == [folder]
    process.kill()
    process.wait()
    assert list_left() == []


def test_a_session_that_another_process_reads_stays(begin, list_left, tmp_path):
    process, folder = begin(f"{WATCHED}time.sleep(600)")
    reader, _ = begin(READER, folder)
    process.kill()
    process.wait()
    assert list_left() == [folder]
    reader.kill()
    reader.wait()
    assert list_left() == []


def test_nothing_else_is_removed(begin, list_left, tmp_path):
    """Links, folders of other users or with other files, and names that are not ours."""
    process, folder = begin(f"{WATCHED}time.sleep(600)")
    process.kill()
    process.wait()
    name = "compilediag-0123456789abcde"
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "in-use").touch()
    (tmp_path / "target" / "session.cdiag").touch()
    os.symlink(tmp_path / "target", tmp_path / f"{name}0")
    for number, mode in ((1, 0o755), (2, 0o700)):
        (tmp_path / f"{name}{number}").mkdir(mode=mode)
        (tmp_path / f"{name}{number}" / "session.cdiag").touch()
    # Mode 0755: not as we make them. Without a marker: nobody knows whose it is. A link as marker is not followed.
    (tmp_path / f"{name}1" / "in-use").touch()
    (tmp_path / f"{name}3").mkdir(mode=0o700)
    os.symlink(tmp_path / "target" / "in-use", tmp_path / f"{name}3" / "in-use")
    (tmp_path / f"{name}4").mkdir(mode=0o700)
    for file in ("in-use", "other"):
        (tmp_path / f"{name}4" / file).touch()
    assert list_left() == [str(tmp_path / f"{name}{number}") for number in range(5)]
    assert sorted(os.listdir(tmp_path / "target")) == ["in-use", "session.cdiag"]
    assert os.listdir(tmp_path / f"{name}4") == ["other"]
    assert os.path.exists(tmp_path / f"{name}1" / "session.cdiag") and not os.path.exists(folder)
