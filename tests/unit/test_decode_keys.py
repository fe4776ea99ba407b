"""How a missed key differs from the nearest earlier one, in words."""

from compilediag.decode.keys import REMEMBERED, VALUE_CHARS, KeyHistory, parse_components
from compilediag.events import CacheLookup


def lines(**components):
    return [f"[{abs(hash((n, v))):x}] {n}: {v}" for n, v in components.items()]


def looked_up(history, key, outcome="miss", cache="fx_graph", **components):
    lookup = CacheLookup(time_ns=1, cache=cache, outcome=outcome, key=key)
    return history.compare(lookup, lines(**components))


def test_components_are_name_and_value_over_many_lines():
    text = "[ab12] gm: def f():\n    return 1"
    assert parse_components([text, "[cd] inductor_config[x]: True", "no component"]) == {
        "gm": "def f():\n    return 1",
        "inductor_config[x]": "True",
    }


def test_the_first_key_has_nothing_to_differ_from():
    found = looked_up(KeyHistory(), "k1", a="1")
    assert (found.nearest_key, found.key_diff) == (None, None)


def test_a_miss_is_told_against_the_nearest_earlier_key():
    history = KeyHistory()
    looked_up(history, "far", a="9", b="9", c="9")
    looked_up(history, "near", a="1", b="2", c="9")
    found = looked_up(history, "now", a="1", b="2", c="3")
    assert (found.nearest_key, found.key_diff) == ("near", ["c: 9 -> 3"])


def test_of_two_that_are_as_near_the_later_one_counts():
    history = KeyHistory()
    looked_up(history, "first", a="1")
    looked_up(history, "second", a="2")
    assert looked_up(history, "now", a="3").nearest_key == "second"


def test_a_hit_is_remembered_but_not_compared():
    history = KeyHistory()
    looked_up(history, "k1", a="1")
    assert looked_up(history, "k2", outcome="hit", a="2").key_diff is None
    assert looked_up(history, "k3", a="2", b="1").nearest_key == "k2"


def test_caches_are_not_told_against_one_another():
    history = KeyHistory()
    looked_up(history, "k1", a="1")
    assert looked_up(history, "k2", cache="aot_autograd", a="2").nearest_key is None


def test_components_that_come_and_go_are_absent():
    history = KeyHistory()
    looked_up(history, "k1", a="1", gone="x")
    assert sorted(looked_up(history, "k2", a="1", new="y").key_diff) == ["gone: x -> (absent)", "new: (absent) -> y"]


def test_of_a_graph_the_first_line_that_differs_is_told_and_long_values_are_cut():
    history = KeyHistory()
    looked_up(history, "k1", gm="def f(x):\n    a = x + 1\n    return a", big="x" * 1000)
    found = looked_up(history, "k2", gm="def f(x):\n    a = x + 2\n    return a", big="y" * 1000)
    assert found.key_diff[0] == "gm: a = x + 1 -> a = x + 2"
    assert len(found.key_diff[1]) < 2 * VALUE_CHARS + 20 and "..." in found.key_diff[1]


def test_a_graph_that_only_grew_tells_its_lengths():
    history = KeyHistory()
    looked_up(history, "k1", gm="a\nb")
    assert looked_up(history, "k2", gm="a\nb\nc").key_diff == ["gm: 2 lines -> 3 lines"]


def test_the_memory_is_bounded():
    history = KeyHistory()
    for n in range(REMEMBERED + 1):
        looked_up(history, f"k{n}", a=str(n), b=str(n))
    assert looked_up(history, "now", a="0", b="x").nearest_key != "k0", "the oldest is forgotten"
