"""The sessions that `compilediag run` keeps: which, where, for whom, and what opens them."""

import os
import shutil
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import compilediag as cd
from compilediag.errors import CompilediagError
from tests.inside import keep, main, read_page
from tests.unit.session_builder import saved
from tests.unit.tables_builder import compiled, sizes

#: A script that recompiles twice, unless a patch makes its size dynamic.
SCRIPT = """
import torch

@torch.compile(backend="eager", dynamic=False)
def double(x):
    return x * 2

for size in (2, 3, 4):
    double(torch.ones(size))
"""


@pytest.fixture
def state(tmp_path, monkeypatch):
    """The folder of the kept sessions, which does not exist yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    monkeypatch.delenv("COMPILEDIAG_HISTORY", raising=False)
    return tmp_path / "home" / "state" / "compilediag" / "sessions"


@pytest.fixture
def run(program_server, tmp_path, state):
    """`compilediag run ...` of a script in a folder of its own."""
    (tmp_path / "cwd").mkdir()
    (tmp_path / "cwd" / "train.py").write_text(SCRIPT)

    def run(*arguments, **environment):
        command = ("-m", "compilediag", "run", *arguments, "train.py", "--epochs", "3")
        return program_server.run(*command, cwd=tmp_path / "cwd", env=environment)

    return run


def list_modes(folder):
    return {path: stat.S_IMODE(os.lstat(path).st_mode) for path in (folder, folder.parent, folder.parent.parent)}


def test_a_run_is_kept_for_last(run, state, tmp_path, capsys, monkeypatch):
    done = run()
    assert done.returncode == 0 and done.stderr.splitlines()[-1].endswith(": compilediag last plan"), done.stderr
    assert "More: compilediag last plan --patch, compilediag last report" in done.stderr
    (file,) = state.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and set(list_modes(state).values()) == {0o700}
    assert len(cd.last().recompiles) == 2 and cd.last().path == file
    assert main(["last"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("compilediag: python train.py --epochs 3, recorded ") and "2 recompiles" in out
    assert main(["last", "plan", "--code"]) == 0
    assert capsys.readouterr().out == f"{cd.last().plan().code()}\n"
    monkeypatch.chdir(tmp_path)
    assert main(["last", "report"]) == 0 and "double" in read_page(tmp_path / "report.html")
    assert main(["last", "report", "-o", "own.html", "--redact"]) == 0 and (tmp_path / "own.html").exists()


KILLED = f"""
import os, sys, time
import compilediag
{SCRIPT}
while len(compilediag.current().recompiles) < 2:
    time.sleep(0.05)
os.kill(os.getpid(), int(sys.argv[1]))
"""


@pytest.mark.skipif(os.name == "nt", reason="without locks nobody knows that a process was killed")
def test_a_run_that_is_killed_is_kept_too_and_said_to_be(program_server, state, tmp_path, capsys):
    (tmp_path / "train.py").write_text(KILLED)
    for number, kill in enumerate((signal.SIGTERM, signal.SIGKILL), 1):
        done = program_server.run("-m", "compilediag", "run", "train.py", int(kill), cwd=tmp_path)
        assert done.returncode == -kill
        assert main(["last"]) == 0
        first, *rest = capsys.readouterr().out.splitlines()
        assert first.endswith("; it did not end by itself") and any("2 recompiles" in line for line in rest)
        assert len(cd.last().recompiles) == 2 and cd.last().meta["stopped_ns"] is None
        assert len(list(state.iterdir())) == number
        assert [stat.S_IMODE(file.stat().st_mode) for file in state.iterdir()] == [0o600] * number
    assert main(["last", "-n", "2", "plan", "--code"]) == 0


def test_a_run_that_is_killed_keeps_nothing_with_history_off(program_server, state, tmp_path, capsys):
    (tmp_path / "train.py").write_text(KILLED)
    command = ("-m", "compilediag", "run", "train.py", int(signal.SIGTERM))
    done = program_server.run(*command, cwd=tmp_path, env={"COMPILEDIAG_HISTORY": "off"})
    assert done.returncode == -signal.SIGTERM
    assert main(["last"]) == 2 and "no session is kept" in capsys.readouterr().err


@pytest.mark.parametrize("action", ["plan", "report", "fix"])
def test_the_help_of_an_action_has_its_options_alone(action, capsys):
    with pytest.raises(SystemExit):
        main(["last", action, "--help"])
    shown = capsys.readouterr().out
    assert "--" in shown and "SESSION" not in shown and "positional" not in shown and "ARGS" not in shown


@pytest.mark.long("a search after a run")
def test_last_fix_runs_the_same_program_in_its_folder(run, tmp_path, program_server):
    assert run("--quiet").returncode == 0
    done = program_server.run("-m", "compilediag", "last", "fix", "--fast", "--patch", "fix.diff", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recompiles 2 -> 0" in done.stdout and (tmp_path / "fix.diff").exists()
    assert "train.py" in (tmp_path / "fix.diff").read_text()


def test_of_a_job_rank_0_is_kept_and_fix_says_how_to_start_all(run, capsys):
    assert run(RANK="0").returncode == 0
    assert main(["last", "plan"]) == 0 and main(["last", "fix"]) == 2
    assert "compilediag fix torchrun" in capsys.readouterr().err.splitlines()[-1]


def test_last_fix_needs_the_folder_of_the_run(run, tmp_path, capsys):
    assert run().returncode == 0
    (tmp_path / "cwd").rename(tmp_path / "elsewhere")
    assert main(["last", "fix"]) == 2 and "does not exist any more" in capsys.readouterr().err


def test_a_run_with_save_and_other_ranks_and_the_variable_keep_nothing(run, state):
    for options, environment in (
        (["--save", "run.cdiag"], {}),
        ([], {"RANK": "1"}),
        ([], {"COMPILEDIAG_HISTORY": "off"}),
    ):
        done = run(*options, **environment)
        assert done.returncode == 0, done.stderr
        last = done.stderr.splitlines()[-1]
        assert "--save run.cdiag keeps it" in last or options
        assert not state.exists()


@pytest.mark.parametrize("obstacle", ["a file", "a full disk", "a folder of others"])
def test_where_nothing_can_be_kept_the_run_is_not_touched(run, state, tmp_path, obstacle):
    environment = {}
    if obstacle == "a file":
        (tmp_path / "home").write_text("")
    elif obstacle == "a full disk":
        environment["XDG_STATE_HOME"] = "/dev/full"
    else:
        state.mkdir(parents=True)
        state.chmod(0o777)
    done = run("--report", "run.html", **environment)
    assert done.returncode == 0, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith("compilediag: 3 compiles, 2 recompiles, ") and "the session was not kept (" in last
    assert (tmp_path / "cwd" / "run.html").exists() and "Traceback" not in done.stderr


def test_a_disk_that_fills_up_costs_the_kept_session_alone(tmp_path, state):
    """The process may write files of 40 kB, which the session has not, and the pipe of its output."""
    script = tmp_path / "train.py"
    script.write_text(SCRIPT + "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))\n")
    command = [sys.executable, "-X", "faulthandler", "-m", "compilediag", "run", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "not kept" in done.stderr.splitlines()[-1]
    assert not state.exists() or list(state.iterdir()) == []


def test_the_last_20_are_kept(state, tmp_path, capsys):
    session = saved(tmp_path, compiled(), *sizes("4", "6"))
    files = [keep(session) for _ in range(23)]
    assert sorted(state.iterdir()) == files[3:]
    assert cd.last().path == files[-1] and cd.last(20).path == files[3]
    for number in (0, 21):
        with pytest.raises(CompilediagError, match="there is no session"):
            cd.last(number)
    assert main(["last", "-n", "21"]) == 2 and capsys.readouterr().err.count("\n") == 1


def test_processes_that_end_at_once_keep_20(state, tmp_path, python):
    file = saved(tmp_path, compiled(), *sizes("4", "6")).path
    code = f"from compilediag.session import keep, load\nfor _ in range(12): keep(load({str(file)!r}))"
    with ThreadPoolExecutor(4) as pool:
        done = [*pool.map(lambda _: python("-c", code), range(4))]
    assert [each.stderr for each in done] == [""] * 4
    kept = [*state.iterdir()]
    assert len(kept) == 20 and all(len(cd.load(each).recompiles) == 1 for each in kept)


def test_what_a_killed_process_left_is_deleted(state, tmp_path):
    session = saved(tmp_path, compiled())
    keep(session)
    for name, age in (("new", 0), ("old", 2 * 24 * 3600)):
        (state / f".compilediag-{name}").mkdir()
        shutil.copy(session.path, state / f".compilediag-{name}")
        then = (state / f".compilediag-{name}").stat().st_mtime - age
        os.utime(state / f".compilediag-{name}", (then, then))
    keep(session)
    assert [path.name for path in state.glob(".*")] == [".compilediag-new"] and len(list(state.glob("*.cdiag"))) == 2


def test_without_a_kept_session_it_is_one_line(state, capsys):
    for arguments in (["last"], ["last", "plan"], ["last", "fix"]):
        assert main(arguments) == 2
        assert (
            capsys.readouterr().err
            == "compilediag: no session is kept; `compilediag run train.py` keeps that of its run\n"
        )
    assert main(["last", "plam"]) == 2 and capsys.readouterr().err.endswith("did you mean 'plan'?\n")
    assert not state.exists()


def test_sessions_in_a_folder_that_others_can_write_to_are_not_opened(state, tmp_path):
    keep(saved(tmp_path, compiled()))
    state.chmod(0o770)
    with pytest.raises(CompilediagError, match="only you can enter"):
        cd.last()
