"""The smallest set of settings that mends a workload, found by running it."""

import itertools

import torch

import compilediag
from compilediag.trials.advise import list_variants

from .programs import Growing, compiled


def advised(work):
    with compilediag.watch() as session:
        work()
    return session.advise(work)


def test_one_fix_that_does_it_all_is_enough():
    def work():
        f = compiled(lambda x: x * 2, dynamic=False)
        return [f(torch.ones(n)) for n in (4, 6, 7)]

    found = advised(work)
    assert found.fix == {"dynamic_sources": "L['x']"}
    assert [f.rule for f in found.chosen] == ["size_changes"]
    assert len(found.tried) == 1 and found.left == ()
    assert found.verification.holds and found.verification.recompiles_after == 0
    assert found.code == "torch.compiler.config.dynamic_sources = \"L['x']\""
    lines = str(found).splitlines()
    assert lines[0].startswith("2 recompiles -> 0, ")
    assert lines[1].strip() == found.code
    assert "costs: one kernel for all sizes can be slower" in str(found)


def test_two_causes_that_block_each_other_are_fixed_together():
    def work():
        f = compiled(lambda x, k: x * k, dynamic=False)
        first = [f(torch.ones(n, 3), 2) for n in (4, 6)]
        return first + [f(torch.ones(6, 3), k) for k in (5, 9)] + [f(torch.ones(8, 3), 11)]

    found = advised(work)
    assert set(found.fix["dynamic_sources"].split(",")) == {"L['x']", "L['k']"}
    assert found.verification.recompiles_after == 0
    assert len(found.tried) >= 2


def test_a_setting_of_another_kind_is_left_out_if_one_fixes_everything():
    def work():
        f = compiled(lambda x: x * 2)
        return [f(torch.ones(*size)) for size in ((4, 4), (6, 6), (6, 7))]

    found = advised(work)
    assert set(found.fix) == {"dynamic_sources"}, found
    assert found.verification.recompiles_after == 0


def test_other_settings_are_tried_for_what_still_recompiles():
    def work():
        f = compiled(lambda x, k: x * k, dynamic=False)
        return [f(torch.ones(n, 3), k) for n, k in ((4, 2), (6, 5), (1, 7), (0, 9))]

    with compilediag.watch() as session:
        work()
    session_fixes = {key for finding in session.findings() for key in finding.fix or ()}
    assert session_fixes == {"dynamic_sources", "unbacked_sources"}
    found = session.advise(work)
    assert found.verification.recompiles_after == 0, found


def test_the_variants_of_a_fix_are_its_own_then_other_kinds():
    f = compiled(lambda x: x * 2, dynamic=False)
    with compilediag.watch() as session:
        [f(torch.ones(n)) for n in (4, 6, 7)]
    fixes = [finding.fix for finding in list_variants(session.findings()[0])]
    assert fixes[0] == {"dynamic_sources": "L['x']"}
    assert {"unbacked_sources": "L['x']"} in fixes and {"assume_static_by_default": False} in fixes


def test_a_fix_that_brings_nothing_more_is_left_out():
    def work():
        f = compiled(lambda x, name: x * len(name), dynamic=False)
        g = compiled(lambda y: y + 1, dynamic=False)
        both = [f(torch.ones(n), "n" * n) for n in (4, 6, 7)]
        return both + [g(torch.ones(n)) for n in (4, 6)]

    found = advised(work)
    assert found.fix == {"dynamic_sources": "L['y']"}
    assert [f.source for f in found.left] == ["name"] or "name" in str(found.left)
    assert "in the code: " in str(found)


def test_a_fix_that_changes_results_is_never_chosen():
    def work():
        compiles = []

        def counting(graph, inputs):
            compiles.append(graph)
            return graph.forward

        f = compiled(lambda x: x * 2, dynamic=False, backend=counting)
        return [f(torch.ones(n)) + len(compiles) for n in (4, 6, 7)]

    found = advised(work)
    assert found.fix is None and found.chosen == ()
    assert found.tried[0].note.startswith("the fix changes the results: the result[1]")
    assert str(found).startswith("No setting helps this workload.")
    assert [f.rule for f in found.left] == ["size_changes"]


def test_nothing_to_fix_and_nothing_to_compare():
    f = compiled(lambda x: x * 2)
    assert str(advised(lambda: f(torch.ones(3)))) == "No setting to try for this workload."
    numbers = itertools.count()
    found = advised(lambda: next(numbers))
    assert found.fix is None
    assert str(found).startswith("Nothing was tried: two runs without the fix differ by chance")


def test_a_counter_up_to_the_limit_needs_one_setting():
    def work():
        f = compiled(Growing())
        return [f(torch.ones(2)) for _ in range(5)]

    with torch._dynamo.config.patch(recompile_limit=3):
        found = advised(work)
    assert found.fix == {"dynamic_sources": "L['self'].step"}
    assert found.verification.recompiles_after == 0
