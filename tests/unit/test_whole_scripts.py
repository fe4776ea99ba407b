"""The table of whole scripts agrees with the scripts and with the changes by hand; running them is for others."""

import ast
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.loading import load_script

measure = load_script(Path(__file__).resolve().parents[1] / "scripts" / "measure.py")
TRUTH = measure.read_truth()
ROWS = pytest.mark.parametrize("row", TRUTH, ids=lambda row: row.name)


def test_every_script_and_every_change_has_a_row():
    names = [row.name for row in TRUTH]
    assert sorted(names) == sorted(path.name for path in measure.FOLDER.iterdir() if any(path.glob("*.py")))
    assert {path.stem for path in (measure.FOLDER / "changes").iterdir()} <= set(names)


@ROWS
def test_row_agrees_with_itself(row):
    assert row.start in {path.name for path in row.folder.iterdir()}
    assert (row.change is not None) == (row.kind == "fixable")
    before = (row.operations, row.bypasses, row.recompiles, row.graph_breaks)
    after = (row.operations_by_hand, row.bypasses_by_hand, row.recompiles_by_hand, row.graph_breaks_by_hand)
    none = (0, 0, 0, 0)
    kinds = {"healthy": before == after == none, "needed": before == after > none, "fixable": before > after}
    assert [kind for kind, holds in kinds.items() if holds] == [row.kind]
    assert bool(row.left) == (row.recompiles_by_hand > 0)


@pytest.mark.parametrize("row", [row for row in TRUTH if row.change], ids=lambda row: row.name)
def test_change_by_hand_applies_and_has_so_many_lines(row, tmp_path):
    copy = shutil.copytree(row.folder, tmp_path / row.name)
    subprocess.run(["git", "apply", "-p1", row.change], cwd=copy, check=True)
    changed = [path for path in copy.glob("*.py") if path.read_text() != (row.folder / path.name).read_text()]
    assert changed and all(ast.parse(path.read_text()) for path in changed)
    assert measure.changed_lines(row.change.read_text()) == row.lines_by_hand
