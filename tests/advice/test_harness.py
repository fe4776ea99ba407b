"""The harness notices what bad advice does: silent eager execution, other results, exceptions, graph breaks."""

import difflib

import pytest

from tests.advice.known_programs import FOLDER, load_program
from tests.advice.runs import find_problems, is_equal, run_original, run_source
from tests.advice.source_changes import (
    CannotApply,
    apply_edits,
    apply_patch,
    insert_setup,
    replace_texts,
    set_compile_option,
)

PROGRAM = load_program(FOLDER / "first_batch_sizes.toml")
BAD_CHANGES = {
    "not compiled": ("@torch.compile\n", "", "operations ran in graphs, now 0"),
    "other results": ("return x * 2", "return x * 3", "other results"),
    "an exception": ("return x * 2", "return x * unknown", "it raises NameError"),
    "a graph break": ("return x * 2", "torch._dynamo.graph_break()\n    return x * 2", "a new graph break"),
    "no improvement": ("return x * 2", "return 2 * x", "1 recompiles -> 1, not 0"),
}


@pytest.mark.parametrize(("old", "new", "problem"), BAD_CHANGES.values(), ids=BAD_CHANGES)
def test_a_bad_change_is_noticed(old, new, problem):
    source = replace_texts(PROGRAM.source, [(old, new)])
    problems = find_problems(PROGRAM, run_original(PROGRAM), run_source(PROGRAM, source), 0, PROGRAM.keeps_operations)
    assert any(problem in found for found in problems), problems


def test_a_run_leaves_nothing_for_the_next_one():
    source = insert_setup(
        PROGRAM.source, "torch._dynamo.config.recompile_limit = 1\ntorch.set_default_dtype(torch.float64)"
    )
    assert run_source(PROGRAM, source)["results"] != run_original(PROGRAM)["results"]
    again = run_source(PROGRAM, PROGRAM.source + "\n")
    assert again["results"] == run_original(PROGRAM)["results"]
    assert len(again["recompiles"]) == 1


def test_a_block_of_settings_comes_after_the_imports():
    source = '"""Text."""\n\nimport torch\nfrom os import path\n\nx = 1\nimport sys\n'
    lines = insert_setup(source, "torch.a = 1").splitlines()
    assert lines.index("torch.a = 1") == lines.index("from os import path") + 2 < lines.index("x = 1")


def test_an_edit_and_a_patch_need_the_text_that_they_expect():
    old, new = "a = 1\nb = 2\nc = 3\n", "a = 1\nb = 5\nc = 3\nd = 4\n"
    patch = "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), "a/x.py", "b/x.py"))
    assert apply_patch(old, patch) == new
    with pytest.raises(CannotApply):
        apply_patch(old.replace("b = 2", "b = 3"), patch)
    mark = "torch._dynamo.mark_dynamic(a, 0)"
    edit = {"file": "x.py", "line": 2, "kind": "insert_before", "old": "b = 2", "new": mark, "code": "b = 2"}
    assert apply_edits(old, [edit], "x.py") == f"import torch\na = 1\n{mark}\nb = 2\nc = 3\n"
    with pytest.raises(CannotApply):
        apply_edits(old, [{**edit, "file": "y.py"}], "x.py")
    with pytest.raises(CannotApply):
        replace_texts("a a", [("a", "b")])


def test_an_option_is_given_to_each_compile():
    source = "@torch.compile\ndef f(x):\n    return x\n\ng = torch.compile(h, dynamic=False)\nblock.compile()\n"
    changed = set_compile_option(source, "dynamic", None)
    assert changed.count("dynamic=None") == 3 and "dynamic=False" not in changed


def test_results_are_equal_up_to_rounding():
    assert is_equal([1.0, {"a": 2.0}], [1.00001, {"a": 2}])
    assert not is_equal([1.0], [1.1])
    assert not is_equal({"tensor": ["torch.float32", [2]]}, {"tensor": ["torch.float64", [2]]})
    assert not is_equal([1.0], [1.0, 2.0])
