"""The collection: programs whose known cause has to be the first finding, with a fix that holds; clean programs.

Real compiler, backend "eager".
"""

import functools
from dataclasses import replace

import pytest
import torch

import compilediag
from compilediag.diagnosis import diagnose
from compilediag.diagnosis.causes.recompile_findings import ADVISERS
from compilediag.events import KINDS, Compile, Recompile, RowList
from tests.live.collection.clean import CLEAN
from tests.live.collection.programs import CASES

#: Kinds of guards that no program here gives, and why.
NOT_HERE = {
    "other": "what is not understood",
    "dispatch_keys": "reported as dtype, device or requires_grad where these differ",
    "default_device": "a device mode is reported as a mode",
}


def compiled(function, **options):
    return torch.compile(function, **{"backend": "eager", **options})


@functools.cache
def watched(program):
    torch._dynamo.reset()
    with compilediag.watch() as session:
        program(compiled)
    return session


def diagnose_as_if_all_compiles_took_a_second(session):
    """Findings are ranked by seconds: which comes first must not depend on how busy this machine is."""
    compiles = [replace(row, duration_s=1.0) for row in session.data.rows(Compile)]
    recompiles = [replace(row, lost_s=None) for row in session.data.rows(Recompile)]
    others = [row for kind in KINDS if kind not in (Compile, Recompile) for row in session.data.rows(kind)]
    return diagnose(RowList([*compiles, *recompiles, *others]))


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_the_right_cause_is_first_and_its_fix_holds(case):
    session = watched(case.program)
    first, *others = diagnose_as_if_all_compiles_took_a_second(session)
    assert sorted(finding.rule for finding in session.findings()) == sorted(f.rule for f in (first, *others))
    assert first.rule == case.rule, first.title
    assert case.says in first.title
    assert first.evidence and set(first.evidence) <= set(session.events["id"])
    assert "other" not in set(session.recompiles["guard_kind"])
    assert "other" not in [finding.rule for finding in others]
    assert bool(first.fix) == case.fixed
    if case.fixed:
        verified = session.verify(first, lambda: case.program(compiled))
        assert verified.holds, verified
        assert verified.strikes_after == 0
        if first.rule != "recompile_limit":
            assert verified.recompiles_after == case.left < verified.recompiles_before


@pytest.mark.parametrize("program", CLEAN, ids=lambda program: program.__name__)
def test_a_program_with_nothing_wrong_has_no_finding(program):
    session = watched(program)
    assert session.findings() == []
    assert len(session.compiles) > 0


def test_the_collection_is_as_large_as_the_documentation_says():
    assert len(CASES) >= 50 and len({case.rule for case in CASES}) >= 35 and len(CLEAN) >= 10


def test_each_kind_of_guard_has_a_program_or_a_reason_for_none():
    kinds = {kind for case in CASES for kind in watched(case.program).recompiles["guard_kind"]}
    assert set(ADVISERS) - set(NOT_HERE) <= kinds
    assert "other" not in kinds
