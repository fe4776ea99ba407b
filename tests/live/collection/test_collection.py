"""The collection: `verify` holds for the fixes of known programs (tests/advice), and programs with nothing wrong.

Real compiler, backend "eager".
"""

import pytest
import torch

import compilediag
from tests.advice.known_programs import load_programs
from tests.live.collection.clean import CLEAN

#: The programs with one cause that a setting alone fixes. What raises without the setting has no results to compare.
CASES = [
    program
    for program in load_programs()
    if len(program.causes) == 1 and any(way.settings for way in program.causes[0].ways) and not program.fails
]


def compiled(function, **options):
    return torch.compile(function, **{"backend": "eager", **options})


@pytest.fixture
def eager(monkeypatch):
    """A script's torch.compile uses the backend "eager"."""
    monkeypatch.setattr(torch.compile, "__kwdefaults__", {**torch.compile.__kwdefaults__, "backend": "eager"})


@pytest.mark.parametrize("program", CASES, ids=lambda program: program.name)
def test_the_fix_of_a_finding_holds(program, eager):
    code = compile(program.source, str(program.path), "exec")

    def work():
        names = {"__name__": "__main__", "__file__": str(program.path)}
        torch.manual_seed(0)
        exec(code, names)
        return names["results"]

    with compilediag.watch() as session:
        work()
    cause = program.causes[0]
    finding = next(finding for finding in session.findings() if finding.rule == cause.rule and finding.fix)
    verified = session.verify(finding, work)
    assert verified.holds, verified
    assert verified.strikes_after == 0 < verified.strikes_before
    assert verified.recompiles_after <= program.after <= verified.recompiles_before
    assert verified.recompiles_after < verified.recompiles_before or cause.rule == "refused_calls"


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.__name__)
def test_a_program_with_nothing_wrong_has_no_finding(program):
    torch._dynamo.reset()
    with compilediag.watch() as session:
        program(compiled)
    assert session.findings() == []
    assert len(session.compiles) > 0


def test_the_collection_is_as_large_as_the_documentation_says():
    assert len(CASES) >= 20 and len(CLEAN) >= 10
