"""`import compilediag` costs nothing and needs nothing: its names load when they are used."""

import json

import pytest

import compilediag

HOST = {"torch", "triton", "IPython", "ipykernel", "plotly", "anywidget", "ipywidgets"}


def test_the_public_names_load_without_torch_pandas_and_jupyter(python_without):
    code = "import compilediag as cd; print([callable(getattr(cd, n)) for n in cd.__all__ if n != '__version__'])"
    done = python_without(HOST | {"pandas", "numpy"}, code)
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout.lower())) == {True}


def test_watching_without_torch_is_one_clear_line(python_without):
    code = """
import compilediag as cd
try:
    cd.start()
except Exception as error:
    print(type(error).__name__, error)
"""
    done = python_without({"torch"}, code)
    assert done.stdout.startswith("CompilediagError torch is not installed"), done.stdout + done.stderr
    assert done.stdout.count("\n") == 1


def test_a_torch_that_is_too_old_is_one_line_with_its_version(python, tmp_path):
    """A folder that comes first on the path, with an older torch in it as an installer would leave it."""
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("__version__ = '2.9.1'\n")
    metadata = tmp_path / "torch-2.9.1.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.1\n")
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
import compilediag as cd
try:
    cd.start()
except Exception as error:
    print(type(error).__name__, error)
"""
    done = python("-c", code)
    assert done.stdout.startswith("CompilediagError torch 2.9.1 is too old"), done.stdout + done.stderr
    assert done.stdout.count("\n") == 1


def test_help_loads_nothing_heavy(python_without):
    code = """
from compilediag.cli import main
for command in ([], ["run"], ["report"], ["doctor"]):
    try:
        main([*command, "--help"])
    except SystemExit as ended:
        assert ended.code == 0
"""
    done = python_without(HOST | {"pandas", "numpy"}, code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: compilediag") == 4


def test_the_function_watch_survives_the_import_of_its_module(python):
    code = """
import compilediag as cd
import compilediag.watch
from compilediag.watch import start
print(callable(cd.watch), cd.start is start)
"""
    done = python("-c", code)
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_the_names_are_those_that_are_listed():
    assert set(compilediag.__all__) <= set(dir(compilediag))
    with pytest.raises(AttributeError, match="no attribute 'wach'"):
        _ = compilediag.wach
