"""The user's code around a line: only from a file of which it is sure that it is what was compiled."""

import os

import pytest

from compilediag.system.source_files import MAX_BYTES
from compilediag.views.explorer import SourceLines

CODE = [f"line_{n} = {n}" for n in range(1, 21)]


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text("\n".join(CODE))
    return path


def test_the_lines_around(module):
    lines = SourceLines(is_own=False)
    found = lines.read_around(str(module), 10, "line_10 = 10")
    assert found == [(n, f"line_{n} = {n}") for n in range(6, 15)]
    assert lines.read_around(str(module), 1, "line_1 = 1")[0] == (1, "line_1 = 1")
    assert lines.read_around(str(module), 20, "  line_20 = 20 ")[-1] == (20, "line_20 = 20")


def test_a_line_that_is_no_longer_the_same_has_no_lines_around_it(module):
    lines = SourceLines(is_own=False)
    for number, code in ((10, "line_11 = 11"), (10, None), (0, "line_1 = 1"), (99, "line_1 = 1"), (None, "line_1 = 1")):
        assert lines.read_around(str(module), number, code) is None


def test_only_python_files_of_a_reasonable_size_are_read(tmp_path, module):
    lines = SourceLines(is_own=True)
    secret = tmp_path / "credentials"
    secret.write_text("[default]\nkey = 1\n")
    big = tmp_path / "big.py"
    big.write_text("a = 1\n" + "#" * MAX_BYTES)
    binary = tmp_path / "binary.py"
    binary.write_bytes(b"a = 1\n\xff\xfe")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    assert lines.read_around(str(secret), 1, "[default]") is None
    for name in ("big.py", "binary.py", "folder.py", "pipe.py", "missing.py", "nul\0.py"):
        assert lines.read_around(f"{tmp_path}/{name}", 1, "a = 1") is None
    assert lines.read_around(os.path.relpath(module), 1, "line_1 = 1") is None, "relative to what?"


def test_a_cell_is_known_where_it_ran(monkeypatch):
    class Shell:
        class history_manager:
            input_hist_parsed = ["", "x = 1\ny = x * 2"]

    IPython = pytest.importorskip("IPython")
    monkeypatch.setattr(IPython, "get_ipython", lambda: Shell)
    assert SourceLines(is_own=True).read_around("Cell In[1]", 2, "y = x * 2") == [(1, "x = 1"), (2, "y = x * 2")]
    assert SourceLines(is_own=True).read_around("Cell In[2]", 2, "y = x * 2") is None
    assert SourceLines(is_own=False).read_around("Cell In[1]", 2, "y = x * 2") is None, "another notebook's cell"
