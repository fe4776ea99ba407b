"""The harness notices what bad advice does: silent eager execution, other results, exceptions, graph breaks."""

import pytest

from tests.advice.known_programs import FOLDER, load_program
from tests.advice.runs import find_problems, run_original, run_source
from tests.advice.source_changes import (
    insert_setup,
    replace_texts,
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
