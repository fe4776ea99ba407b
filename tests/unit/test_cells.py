"""Files of notebook cells are shown with the cell's number."""

import sys
import types

import pytest

from compilediag.events import Recompile
from compilediag.system.source_files import CellNames

interactiveshell = pytest.importorskip("IPython.core.interactiveshell")


@pytest.fixture
def shell():
    shell = interactiveshell.InteractiveShell.instance()
    yield shell
    shell.reset()
    interactiveshell.InteractiveShell.clear_instance()


def file_of_a_cell(shell, name):
    shell.run_cell(f"def {name}(): pass", store_history=True)
    return shell.user_ns[name].__code__.co_filename


def test_code_of_a_cell_is_named_after_the_cell(shell):
    first, second = file_of_a_cell(shell, "f"), file_of_a_cell(shell, "g")
    names = CellNames()
    assert (names.name(first), names.name(second)) == ("Cell In[1]", "Cell In[2]")


def test_a_cell_that_runs_again_keeps_the_number_that_it_was_seen_under(shell):
    names = CellNames()
    file = file_of_a_cell(shell, "f")
    assert names.name(file) == "Cell In[1]"
    shell.compile._filename_map[file] = 7  # what IPython does where the same code runs again under one file name
    assert shell.compile.format_code_name(file) == ("Cell", "In[7]")
    assert names.name(file) == "Cell In[1]"


def test_real_files_keep_their_names(shell):
    names = CellNames()
    assert names.name(__file__) == __file__
    assert names.name(None) is None


def test_events_are_renamed_in_every_column_that_holds_a_file(shell):
    file = file_of_a_cell(shell, "f")
    event = CellNames().rename(Recompile(time_ns=1, file=file, user_file=file, function="f"))
    assert (event.file, event.user_file, event.function) == ("Cell In[1]", "Cell In[1]", "f")


def test_an_ipython_that_is_only_half_imported_has_no_cells(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    assert CellNames().name("<ipython-input-1>") == "<ipython-input-1>"


def test_a_cell_of_marimo_has_the_id_that_its_tracebacks_show():
    names = CellNames()
    assert names.name("/tmp/marimo_4711/__marimo__cell_Hbol_.py") == "marimo cell Hbol"
    assert names.name("/home/ada/__marimo__.py") == "/home/ada/__marimo__.py"
