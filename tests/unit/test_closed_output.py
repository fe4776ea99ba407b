"""A command whose output nobody reads, or can't be written, ends quietly with the code that a shell expects."""

import os
import signal
import subprocess
import sys

import pytest

from tests.inside import keep, list_commands
from tests.tiers import quick

from .log_builder import compile_
from .session_builder import saved
from .tables_builder import compiled, sizes

pytestmark = pytest.mark.slow
#: Command -> arguments with which it prints to the standard output.
PRINTING = {
    "last": ["last"],
    "live": ["live", "run.cdiag", "--plain"],
    "plan": ["plan", "run.cdiag"],
    "findings": ["findings", "run.cdiag"],
    "findings as JSON": ["findings", "run.cdiag", "--json"],
    "live as JSON": ["live", "run.cdiag", "--json"],
    "ranks": ["ranks", "run.cdiag"],
    "diff": ["diff", "run.cdiag", "run.cdiag"],
    "coldstart": ["coldstart", "run.cdiag", "run.cdiag"],
    "check": ["check", "run.cdiag", "--max-recompiles", "9"],
    "export": ["export", "run.cdiag", "--format", "markdown"],
    "repro": ["repro", "run.cdiag"],
    "example": ["example", "size_changes"],
    "skill": ["skill"],
    "doctor": ["doctor"],
    "help": ["--help"],
    "help of a command": ["plan", "--help"],
    "log": ["plan", "a.log"],
}
#: Commands that print to the standard error, and write files.
WRITING = {
    "report": ["report", "run.cdiag", "-o", "run.html"],
    "ingest": ["ingest", "a.log", "-o", "a.cdiag"],
    "try": ["try", "absent.py"],
    "fix": ["fix", "absent.py"],
    "mcp": ["mcp", "absent.cdiag"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("closed")
    session = saved(folder, compiled(), *sizes("4", "6", "9"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        patch.delenv("COMPILEDIAG_HISTORY", raising=False)
        keep(session)
    (folder / "a.log").write_text(compile_())
    return folder


@pytest.fixture
def run_fork(program_server, folder):
    """Runs a command in a fork, for what does not depend on how the interpreter starts."""

    def run_fork(arguments, **options):
        environment = {"XDG_STATE_HOME": str(folder / "state")}
        return program_server.run("-m", "compilediag", *arguments, cwd=folder, env=environment, **options)

    return run_fork


def run(folder, arguments, redirection="", unbuffered="", **options):
    shell = ["bash", "-c", f'exec "$@" {redirection}', "bash"]
    command = [*shell, sys.executable, "-m", "compilediag", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": unbuffered, "XDG_STATE_HOME": str(folder / "state")}
    options = {"stderr": subprocess.PIPE, "env": environment, **options}
    return subprocess.run(command, cwd=folder, text=True, timeout=600, **options)


@pytest.fixture
def closed_pipe():
    """The end of a pipe that is written to; nobody has the other one."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def test_every_command_but_run_is_in_the_tables():
    names = {line[0] for line in [*PRINTING.values(), *WRITING.values()]}
    assert {command.name for command in list_commands()} - {"run"} == names - {"--help"}


@pytest.mark.parametrize("name", PRINTING)
def test_a_closed_pipe_ends_a_command_quietly(name, run_fork, closed_pipe):
    done = run_fork(PRINTING[name], stdout=closed_pipe)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


def test_a_closed_pipe_without_a_buffer(folder, closed_pipe):
    done = run(folder, PRINTING["plan"], unbuffered="1", stdout=closed_pipe)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.parametrize(
    "name", quick([*PRINTING, *WRITING], ["plan", "check", "report", "ingest"], why="a process for each command")
)
def test_a_standard_output_that_is_closed_at_the_start_changes_nothing(name, folder, run_fork):
    arguments = PRINTING.get(name) or WRITING[name]
    done, usual = run(folder, arguments, ">&- <&-"), run_fork(arguments)
    # argparse prints help to the standard error then.
    assert (done.returncode, done.stderr) == (usual.returncode, done.stderr if "help" in name else usual.stderr)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


@pytest.mark.parametrize("name", ["plan", *WRITING])
def test_messages_that_nobody_reads_end_a_command_quietly(name, folder, run_fork, closed_pipe):
    arguments = PRINTING.get(name) or WRITING[name]
    done = run_fork(arguments, stderr=closed_pipe)
    assert done.returncode == (0 if name == "plan" else 128 + signal.SIGPIPE)
    assert run(folder, arguments, "2>&-", stdout=subprocess.PIPE).returncode == (
        2 if name in ("try", "fix", "mcp") else 0
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(unbuffered, folder):
    done = run(folder, PRINTING["plan"], ">/dev/full", unbuffered)
    assert done.returncode == 2
    assert done.stderr.startswith("compilediag: can't write the output: ") and done.stderr.count("\n") == 1


def test_a_script_keeps_its_own_behavior_and_its_report_is_written(folder, closed_pipe, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint(sys.stdout is None)\n")
    options = ["run", "--report", tmp_path / "run.html", script]
    done = run(folder, options, stdout=subprocess.PIPE, stderr=closed_pipe)
    assert (done.returncode, done.stdout) == (0, "False\n") and (tmp_path / "run.html").exists()
    script.write_text("import sys\nsys.exit(3 if sys.stdout is None else 4)\n")
    assert run(folder, ["run", "--quiet", script], ">&-").returncode == 3
    script.write_text("print('to nobody')\n")
    done = run(folder, ["run", "--quiet", script], stdout=closed_pipe)
    assert done.returncode == 120 and done.stderr.count("BrokenPipeError") == 1, "as Python itself"
