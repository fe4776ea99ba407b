"""The collection of programs with nothing wrong: they have no finding. Real compiler, backend "eager"."""

import pytest
import torch

import compilediag
from tests.live.collection.clean import CLEAN


def compiled(function, **options):
    return torch.compile(function, **{"backend": "eager", **options})


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.__name__)
def test_a_program_with_nothing_wrong_has_no_finding(program):
    with compilediag.watch() as session:
        program(compiled)
    assert session.findings() == []
    assert len(session.compiles) > 0
