"""The project's files agree with each other."""

import os
import re
import subprocess
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
CONDA_NAMES = {"pytorch": "torch"}


def bounds(requirements):
    """name -> bound, the strings of requirements in any spelling."""
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(r.name): str(r.specifier) for r in parsed}


def declared():
    return bounds([*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra)])


def pins():
    lines = (ROOT / "requirements-dev.txt").read_text().splitlines()
    return bounds([line for line in lines if line and not line.startswith("#")])


def test_conda_environment_agrees_with_pyproject_name_by_name():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    plain = [d for d in dependencies if isinstance(d, str) and d != "pip"]
    (by_pip,) = [d["pip"] for d in dependencies if isinstance(d, dict)]
    conda = bounds(plain + [d for d in by_pip if not d.startswith("-e")])
    conda = {CONDA_NAMES.get(name, name): bound for name, bound in conda.items()}
    assert conda.pop("python") == PROJECT["requires-python"]
    assert conda == declared()
    assert "-e ." in by_pip


@pytest.mark.parametrize("name", sorted(declared()))
def test_development_pin_is_exact_and_within_the_bound(name):
    pinned = pins()[name]
    assert re.fullmatch(r"==[\w.]+", pinned)
    assert Requirement(name + declared()[name]).specifier.contains(pinned.removeprefix("=="))


def test_every_pin_is_exact_and_torch_is_first():
    assert all(bound.startswith("==") for bound in pins().values())
    assert next(iter(pins())) == "torch"


def test_the_command_is_there():
    (entry,) = PROJECT["scripts"].items()
    from compilediag.cli import main

    assert EntryPoint(*entry, group="console_scripts").load() is main


def test_the_wheel_holds_the_static_files(tmp_path, python):
    done = python("-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT, cwd=tmp_path)
    if "No module named 'hatchling'" in done.stderr + done.stdout:
        pytest.skip("hatchling is not installed; make test installs it")
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    listed = subprocess.run(["python3", "-m", "zipfile", "-l", wheel], capture_output=True, text=True).stdout
    held = set(re.findall(r"^compilediag/\S+", listed, re.M))
    expected = {
        str(p.relative_to(ROOT)) for p in (ROOT / "compilediag").rglob("*") if p.suffix in (".py", ".js", ".css")
    }
    assert expected and held == expected


@pytest.mark.parametrize("script", [".ci/run", ".ci/setup"])
def test_scripts_can_be_run(script):
    assert os.access(ROOT / script, os.X_OK)
    assert subprocess.run(["bash", "-n", ROOT / script]).returncode == 0


def test_every_make_target_of_the_readme_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    promised = set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= promised <= targets
