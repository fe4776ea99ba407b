"""Real libraries: one finding per root cause, in the script's own lines, and a plan that removes what it claims.

Where a library is missing its programs are skipped. `make test-libraries` installs all of them.
"""

import pytest

from compilediag.diagnosis.recipes import RECIPES
from tests.advice.judgements import JUDGES
from tests.libraries.library_programs import HERE, load_library_failures, load_library_programs

PROGRAMS = {program.name: program for program in load_library_programs()}


def list_checks():
    """Every check of every program; what does not work yet has to fail, so that it is noticed when it works."""
    for program in PROGRAMS.values():
        missing = ", ".join(program.missing)
        skip = pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}; see `make test-libraries`")
        for name, judge in JUDGES.items():
            reason = load_library_failures().get(name, {}).get(program.name)
            marks = [skip, *([pytest.mark.xfail(reason=reason, strict=True)] if reason else [])]
            yield pytest.param(program, judge, id=f"{program.name}-{name}", marks=marks)


@pytest.mark.parametrize(("program", "judge"), list(list_checks()))
def test_what_is_printed_works(program, judge):
    assert judge(program) == []


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_each_recipe_is_followed_by_a_program(recipe):
    ways = [way for cause in PROGRAMS[recipe.program].causes for way in cause.ways]
    assert any(way.text and way.text in recipe.action for way in ways)


def test_each_program_has_its_causes_written_down():
    assert all(program.causes for program in PROGRAMS.values())
    assert {program.path for program in PROGRAMS.values()} == set((HERE / "programs").glob("*.py"))
