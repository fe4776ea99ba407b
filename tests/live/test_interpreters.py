"""`compilediag try --python A --python B`: a script in two interpreters, which have torch and no compilediag."""

import json
import re
import sys
import sysconfig
import textwrap
import venv
from pathlib import Path

import pytest

#: It compiles one number more where the environment has the file `newer`.
SCRIPT = """
import os, sys
import torch

@torch.compile(backend="eager", dynamic=False)
def step(x, n):
    return x * n

is_newer = os.path.exists(os.path.join(sys.prefix, "newer"))
for n in range(int(sys.argv[1]) + is_newer):
    loss = float(step(torch.ones(2), n).sum())
    if n < 2:
        print("loss", loss)
"""


FRESH = pytest.mark.long("each interpreter imports torch itself")


@pytest.fixture(scope="session")
def packages(tmp_path_factory):
    """A folder with links to the packages of this environment, without compilediag."""
    folder = tmp_path_factory.mktemp("packages")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if "compilediag" not in path.name and path.suffix != ".pth":
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture
def environment(tmp_path, packages):
    """`environment(name, newer=False)`: the interpreter of an environment of its own with these packages."""

    def make(name, newer=False, has_packages=True):
        venv.create(tmp_path / name, symlinks=True, with_pip=False)
        library = tmp_path / name / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        if has_packages:
            (library / "packages.pth").write_text(f"{packages}\n")
        if newer:
            (tmp_path / name / "newer").touch()
        return tmp_path / name / "bin" / "python"

    return make


@pytest.fixture
def run_try(program_server, tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))

    def run(*args):
        return program_server.run("-m", "compilediag", "try", *args, cwd=tmp_path)

    return run


def read_row(shown, name):
    (found,) = re.findall(rf"^{name} +(\S.*?)  +(\S.*?)$", shown, re.M)
    return found


@FRESH
def test_another_environment_that_recompiles_more_is_worse(environment, run_try):
    old, new = environment("old"), environment("new", newer=True)
    done = run_try("--python", old, "--python", new, "--runs", "1", "train.py", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert read_row(done.stdout, "recompiles") == ("1", "2") and read_row(done.stdout, "compiles") == ("2", "3")
    worse = done.stdout.split("Worse with B:")[1]
    assert re.search(r"^  f-[0-9a-f]{10} +recompiles of step \(train.py:5\) for n \(value\): 1 -> 2", worse, re.M)
    assert f"A: torch {__import__('torch').__version__} ({old})" in done.stdout
    done = run_try("--json", "--python", new, "--python", old, "--runs", "1", "train.py", "2")
    found = json.loads(done.stdout)
    assert [run["recompiles"] for run in found["runs"]] == [2, 1] and all(run["guards_us"] > 0 for run in found["runs"])
    assert [change["worse"] for change in found["changes"]] == [False]
    assert (done.returncode, found["is_as_good"], found["same_output"]) == (0, True, True)


@FRESH
def test_the_same_environment_is_as_good_and_one_python_is_compared_with_this_one(environment, run_try):
    done = run_try("--python", environment("new"), "train.py", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_row(done.stdout, "recompiles") == ("1", "1") and re.search("^output +the same$", done.stdout, re.M)
    assert f"({sys.executable})" in done.stdout.splitlines()[0]


def test_an_interpreter_that_cannot_run_it_is_one_line(environment, run_try, tmp_path):
    bare = environment("bare", has_packages=False)
    (tmp_path / "not_python").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "not_python").chmod(0o755)
    for path, what in (
        (bare, "torch"),
        (tmp_path / "not_python", "3"),
        (tmp_path / "absent", "absent"),
        (tmp_path, ""),
    ):
        done = run_try("--python", path, "train.py", "2")
        assert (done.returncode, done.stdout) == (2, ""), done
        assert done.stderr.count("\n") == 1 and str(path) in done.stderr and what in done.stderr
    for more in (["--plan", "x.cdiag"], ["--save", "x.cdiag"], ["--python", "a", "--python", "b"]):
        assert run_try("--python", sys.executable, *more, "train.py", "2").returncode == 2


@FRESH
def test_what_ends_otherwise_is_not_as_good(environment, run_try, tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT + "if is_newer: sys.exit(3)\n")
    new = environment("new", newer=True)
    done = run_try("--python", sys.executable, "--python", new, "--runs", "1", "train.py", "1")
    assert done.returncode == 1 and read_row(done.stdout, "exit code") == ("0", "3")
    (tmp_path / "train.py").write_text(SCRIPT + "if is_newer: raise ValueError('mine')\n")
    done = run_try("--python", sys.executable, "--python", new, "--runs", "1", "train.py", "1")
    assert done.returncode == 1 and "ValueError: mine" in done.stdout
