"""The collection of programs with nothing wrong: they have no finding. Real compiler, backend "eager"."""

import pytest

import compilediag
from tests.live.collection.clean import CLEAN
from tests.live.programs import compiled


@pytest.mark.parametrize("program", CLEAN.values(), ids=CLEAN)
def test_a_program_with_nothing_wrong_has_no_finding(program):
    with compilediag.watch() as session:
        program(compiled)
    assert session.findings() == []
    assert len(session.compiles) > 0
