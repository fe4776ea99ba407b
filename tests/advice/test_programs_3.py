"""Every piece of advice is executed: known programs, with what compilediag prints applied to them, part 3 of 3."""

import pytest

from tests.advice.program_checks import list_checks


@pytest.mark.parametrize(("program", "judge"), list(list_checks(2)))
def test_what_is_printed_works(program, judge):
    assert judge(program) == []
