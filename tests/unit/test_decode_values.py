"""Values of a new entry, read from its guards as torch prints them."""

from __future__ import annotations

from compilediag.decode.records.recompile_reasons import read_guard_values


def leaves(*codes):
    return "\n".join(("+- RootGuardManager", *(f"| +- LAMBDA_GUARD: {code}" for code in codes)))


def test_an_equality_with_a_constant_gives_the_value():
    found = read_guard_values(leaves("L['n'] == 2.5", "L['x'].size()[0] == 7"), ["n", "x.size()[0]"])
    assert found == {("n", "value"): "2.5", ("x.size()[0]", "symbolic_shape"): "7"}


def test_a_comparison_gives_no_value():
    codes = ("L['n'] == ___as_tensor(L['n']).item()", "2 <= L['x'].size()[0]", "L['x'].size()[0] == L['y'].size()[0]")
    assert read_guard_values(leaves(*codes), ["n", "x.size()[0]", "y.size()[0]"]) == {}


def test_guards_on_other_sources_are_left_out():
    assert read_guard_values(leaves("L['n'] == 2"), ["k"]) == {}
