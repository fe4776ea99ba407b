"""The project's files agree with each other."""

import ast
import functools
import importlib
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.loading import load_script

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
PROJECT_VERSION = re.search(r'__version__ = "([^"]+)"', (ROOT / "compilediag" / "version.py").read_text())[1]
CONDA_NAMES = {"pytorch": "torch", "python-build": "build"}
#: triton comes with torch's CUDA builds; the pinned set is for machines without a GPU.
NOT_PINNED = {"triton"}


def bounds(requirements):
    """name -> bound, the strings of requirements in any spelling."""
    parsed = [Requirement(text) for text in requirements]
    return {canonicalize_name(r.name): str(r.specifier) for r in parsed}


def declared():
    return bounds([*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra)])


def pins():
    files = ("requirements-dev.txt", "requirements-libraries.txt")
    lines = [line for file in files for line in (ROOT / file).read_text().splitlines()]
    return bounds([line for line in lines if line and not line.startswith("#")])


def test_conda_environment_agrees_with_pyproject_name_by_name():
    dependencies = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    plain = [d for d in dependencies if isinstance(d, str) and d != "pip"]
    (by_pip,) = [d["pip"] for d in dependencies if isinstance(d, dict)]
    conda = bounds(plain + [d for d in by_pip if not d.startswith("-e")])
    conda = {CONDA_NAMES.get(name, name): bound for name, bound in conda.items()}
    assert conda.pop("python") == PROJECT["requires-python"]
    libraries = bounds(EXTRAS["libraries"])  # in an environment of their own, see `make test-libraries`
    assert conda == {name: bound for name, bound in declared().items() if name not in libraries}
    assert "-e ." in by_pip


@pytest.mark.parametrize("name", sorted(declared().keys() - NOT_PINNED))
def test_development_pin_is_exact_and_within_the_bound(name):
    pinned = pins()[name]
    assert re.fullmatch(r"==[\w.]+", pinned)
    assert Requirement(name + declared()[name]).specifier.contains(pinned.removeprefix("=="))


def test_every_pin_is_exact_and_torch_is_first():
    assert all(bound.startswith("==") for bound in pins().values())
    assert next(iter(pins())) == "torch"


def test_the_command_is_there():
    (entry,) = PROJECT["scripts"].items()
    assert EntryPoint(*entry, group="console_scripts").load()(["example", "size_changes"]) == 0


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel and the sdist of this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


def test_the_wheel_contains_every_file_of_the_package(built):
    (wheel,) = built.glob("*.whl")
    contained = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("compilediag/")}
    kinds = (".py", ".js", ".css", ".ts", ".json", ".md", ".typed")
    expected = {
        str(p.relative_to(ROOT))
        for p in (ROOT / "compilediag").rglob("*")
        if p.suffix in kinds or p.name in ("py.typed", "LICENSES")
    }
    assert "compilediag/py.typed" in expected and contained == expected


def test_the_sdist_contains_tests_and_docs(built):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        tops = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"compilediag", "tests", "docs", "notebooks", "benchmarks", "README.md", "LICENSE", "pyproject.toml"} <= tops


def test_twine_accepts_both(built):
    command = [sys.executable, "-m", "twine", "check", "--strict", *built.iterdir()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_works_in_an_empty_environment(built, tmp_path):
    """Without torch: the package imports, and the command says in one line what is missing."""
    (wheel,) = built.glob("*.whl")
    venv.create(tmp_path / "empty", with_pip=False)
    programs = tmp_path / "empty" / "bin"
    pip = [sys.executable, "-m", "pip", "--python", programs / "python"]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = functools.partial(subprocess.run, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=600)
    installed = run([*pip, "install", "--no-deps", "--no-index", wheel])
    assert installed.returncode == 0, installed.stderr
    version = run([programs / "python", "-I", "-c", "import compilediag; print(compilediag.__version__)"])
    assert version.stdout.strip() == PROJECT_VERSION, version.stderr
    doctor = run([programs / "compilediag", "doctor"])
    assert "torch" in doctor.stdout + doctor.stderr and "Traceback" not in doctor.stderr


def test_every_make_target_of_the_readme_is_in_the_makefile():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    promised = set(re.findall(r"make ([a-z]+)", (ROOT / "README.md").read_text()))
    assert {"demo", "test"} <= promised <= targets


@pytest.mark.parametrize("file", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name)
def test_a_benchmark_imports_what_exists(file):
    """The benchmarks do not run in the tests, and some of them import in functions."""
    imports = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    own = [
        (node.module, alias.name)
        for node in imports
        for alias in node.names
        if node.module.startswith(("compilediag", "tests"))
    ]
    assert [name for module, name in own if not is_importable(module, name)] == []


@pytest.mark.parametrize(
    "folder", sorted((ROOT / "benchmarks/assistants/programs").iterdir()), ids=lambda path: path.name
)
def test_a_program_for_assistants_has_a_change_by_hand_and_does_not_give_it_away(folder, tmp_path):
    measuring = load_script(ROOT / "benchmarks/assistants/measure.py")
    (program,) = (row for row in measuring.read_programs() if row.name == folder.name)
    assert program.title and program.cause and program.source.startswith("https://")
    measuring.copy_program(folder, tmp_path / "copy")
    before = {path.name: path.read_text() for path in (tmp_path / "copy").iterdir()}
    assert "program.py" in before and all(name.endswith(".py") for name in before)
    assert measuring.apply_patch((folder / "change.patch").read_text(), tmp_path / "copy")
    after = {path.name: path.read_text() for path in (tmp_path / "copy").iterdir()}
    assert after != before
    for text in (*before.values(), *after.values()):
        compile(text, "program.py", "exec")
        assert "compilediag" not in text


def is_importable(module, name):
    """`name` is in `module`, or is a module of that package."""
    try:
        found = importlib.import_module(module)
        return hasattr(found, name) or bool(importlib.import_module(f"{module}.{name}"))
    except ImportError:
        return False
