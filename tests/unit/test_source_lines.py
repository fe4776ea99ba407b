"""The user's code around a line: only from a file of which it is sure that it is what was compiled."""

import os

import pytest

import compilediag as cd

from .session_builder import page_of, saved, unpack_document
from .tables_builder import compiled, recompile

CODE = [f"line_{n} = {n}" for n in range(1, 21)]


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text("\n".join(CODE))
    return path


@pytest.fixture
def read_around(tmp_path_factory):
    """The lines around a line that the explorer shows; `is_own`: of a session that this process recorded."""

    def read(file, line, code, is_own=False):
        place = {"user_file": str(file), "user_line": line, "user_code": code}
        rows = [compiled(), compiled(compile_id="0/1"), recompile("x.size()[0]", "tensor_size", "4", "6", **place)]
        session = saved(tmp_path_factory.mktemp("session"), *rows)
        ((_, document),) = page_of(session if is_own else cd.load(session.path))["rows"]["functions"]
        return unpack_document(document)["guards"][0]["around"]

    return read


def test_the_lines_around(module, read_around):
    assert read_around(module, 10, "line_10 = 10") == [(n, f"line_{n} = {n}") for n in range(6, 15)]
    assert read_around(module, 1, "line_1 = 1")[0] == (1, "line_1 = 1")
    assert read_around(module, 20, "  line_20 = 20 ")[-1] == (20, "line_20 = 20")


def test_a_line_that_is_no_longer_the_same_has_no_lines_around_it(module, read_around):
    for number, code in ((10, "line_11 = 11"), (10, None), (0, "line_1 = 1"), (99, "line_1 = 1"), (None, "line_1 = 1")):
        assert read_around(module, number, code) is None


def test_only_python_files_of_a_reasonable_size_are_read(tmp_path, module, read_around):
    secret = tmp_path / "credentials"
    secret.write_text("[default]\nkey = 1\n")
    (tmp_path / "big.py").write_text("a = 1\n" + "#" * 1_000_000)
    (tmp_path / "binary.py").write_bytes(b"a = 1\n\xff\xfe")
    (tmp_path / "folder.py").mkdir()
    os.mkfifo(tmp_path / "pipe.py")
    assert read_around(secret, 1, "[default]", is_own=True) is None
    for name in ("big.py", "binary.py", "folder.py", "pipe.py", "missing.py", "nul\0.py"):
        assert read_around(f"{tmp_path}/{name}", 1, "a = 1", is_own=True) is None
    assert read_around(os.path.relpath(module), 1, "line_1 = 1", is_own=True) is None, "relative to what?"


def test_a_cell_is_known_where_it_ran(monkeypatch, read_around):
    class Shell:
        class history_manager:
            input_hist_parsed = ["", "x = 1\ny = x * 2"]

    IPython = pytest.importorskip("IPython")
    monkeypatch.setattr(IPython, "get_ipython", lambda: Shell)
    assert read_around("Cell In[1]", 2, "y = x * 2", is_own=True) == [(1, "x = 1"), (2, "y = x * 2")]
    assert read_around("Cell In[2]", 2, "y = x * 2", is_own=True) is None
    assert read_around("Cell In[1]", 2, "y = x * 2") is None, "another notebook's cell"
