"""`compilediag check -- SCRIPT` and the pytest plugin, on small programs that compile."""

import tomllib
import xml.etree.ElementTree

import pytest

SCRIPT = """
import sys, torch
f = torch.compile(lambda x, n: x * n, backend="eager", dynamic=False)
for n in range(int(sys.argv[1])):
    f(torch.ones(2), n)
sys.exit(int(sys.argv[2]))
"""
PROJECT = """
import pytest, torch

def compiled():
    torch._dynamo.reset()
    return torch.compile(lambda x, n: x * n, backend="eager", dynamic=False)

@pytest.mark.compilediag(max_recompiles=0)
def test_once():
    compiled()(torch.ones(2), 1)

@pytest.mark.compilediag(max_recompiles=0, max_graph_breaks=0)
def test_again():
    f = compiled()
    f(torch.ones(2), 1), f(torch.ones(2), 2)

def test_session(compile_session):
    compiled()(torch.ones(2), 1)
    assert len(compile_session.compiles) == 1

@pytest.mark.compilediag(max_recompiles=0)
def test_own_failure():
    assert 1 == 2

@pytest.mark.compilediag(max_recompiles=0)
def test_nothing_compiled():
    pass

@pytest.mark.compilediag(max_recompile=0)
def test_wrong_name():
    pass

def test_unwatched():
    import compilediag
    assert compilediag.current() is None
"""


def test_a_script_within_its_limits_and_beyond(program_server, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    check = ("-m", "compilediag", "check", "--max-recompiles", "1", "--")
    done = program_server.run(*check, script, "2", "0")
    assert done.returncode == 0 and "passed: 2 compiles, 1 recompile" in done.stdout, done.stderr
    done = program_server.run(*check, script, "3", "7")
    assert done.returncode == 7 and "FAILED" in done.stdout and "n was 0, then 1, 2" in done.stdout
    done = program_server.run(*check, script, "0", "0")
    assert done.returncode == 1 and "nothing was compiled, so the limits cannot be checked" in done.stdout


MODEL = """
import torch

@torch.compile(backend="eager", dynamic=False)
def step(x, n):
    return x * n

def train(*numbers):
    for n in numbers:
        step(torch.ones(2), n)
"""
MARKED = """
import pytest, torch
from model import train

@pytest.mark.compilediag(baseline=".compilediag.toml")
@pytest.mark.parametrize("numbers", [(1, 2), (1, 2, 3)])
def test_step(numbers):
    torch._dynamo.reset()
    train(*numbers)
"""


@pytest.mark.long("four checks and a pytest")
def test_one_text_baseline_for_the_command_and_the_marker(program_server, tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "train.py").write_text("import sys, model\nmodel.train(*range(int(sys.argv[1])))\n")
    (tmp_path / "test_step.py").write_text(MARKED)
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\naddopts = -p compilediag.frontends.pytest_plugin\n")
    check = ("-m", "compilediag", "check", "--baseline", ".compilediag.toml")
    done = program_server.run(*check, "--update", "train.py", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (entry,) = tomllib.loads((tmp_path / ".compilediag.toml").read_text())["accepted"]
    assert (entry["function"], entry["cause"], entry["count"]) == ("step (model.py)", "n (value)", 1)
    done = program_server.run(*check, "train.py", "3", cwd=tmp_path)
    assert done.returncode == 1 and "1 accepted, 2 found" in done.stdout
    done = program_server.run("-m", "pytest", cwd=tmp_path, env=BY_NAME)
    assert "1 failed, 1 passed" in done.stdout and "1 accepted, 2 found" in done.stdout, done.stdout + done.stderr
    done = program_server.run(*check, "--update", "train.py", "0", cwd=tmp_path)
    assert done.returncode == 1 and "was not written" in done.stderr


#: Where compilediag is installed, pytest finds the plugin by itself, and can't be given it by name as well.
BY_NAME = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def test_the_pytest_plugin_on_a_sample_project(program_server, tmp_path):
    (tmp_path / "test_sample.py").write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = --strict-markers -p compilediag.frontends.pytest_plugin\n"
    )
    done = program_server.run("-m", "pytest", "--junitxml", tmp_path / "junit.xml", cwd=tmp_path, env=BY_NAME)
    assert "3 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert "compilediag: 1 recompile, at most 0 allowed:" in done.stdout and "n was 1, then 2" in done.stdout
    assert "takes keyword arguments only: max_recompiles" in done.stdout and "assert 1 == 2" in done.stdout
    assert "compilediag: 4 tests recorded: 4 compiles, 1 recompile," in done.stdout
    cases = xml.etree.ElementTree.parse(tmp_path / "junit.xml").iter("testcase")
    details = {case.get("name"): {p.get("name"): p.get("value") for p in case.iter("property")} for case in cases}
    assert details["test_again"]["compilediag_recompiles"] == "1" and details["test_unwatched"] == {}


def test_the_plugin_costs_nothing_where_nothing_is_marked(python, tmp_path):
    (tmp_path / "test_plain.py").write_text("import sys\ndef test(): assert 'torch' not in sys.modules\n")
    done = python("-m", "pytest", "-p", "compilediag.frontends.pytest_plugin", cwd=tmp_path, env=BY_NAME)
    assert "1 passed" in done.stdout and "compilediag:" not in done.stdout.partition("=")[2].replace("plugins", "")
