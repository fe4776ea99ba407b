"""Each specification that a plan offers is followed: known programs, on a version of torch that has specifications."""

import pytest
import torch

from tests.advice.judgements import judge_specs
from tests.advice.known_programs import load_programs
from tests.advice.runs import run_original

pytestmark = pytest.mark.skipif(
    tuple(map(int, torch.__version__.split(".")[:2])) < (2, 15),
    reason="torch.compile(dynamic_shapes=...) is public from torch 2.15 on",
)


@pytest.mark.parametrize("program", load_programs(), ids=lambda program: program.name)
def test_a_specification_works(program):
    if run_original(program).get("error"):
        pytest.skip("the program raises")
    assert [judged for judged in judge_specs(program) if judged.problems] == []
