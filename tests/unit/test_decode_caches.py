"""Cache look-ups as torch announces them, and how a missed key differs from the nearest one."""

import pytest

from compilediag.decode.caches import REMEMBERED, VALUE_CHARS, KeyHistory, cache_lookup, parse_components
from compilediag.events import CacheLookup


@pytest.mark.parametrize(
    ("name", "cache", "outcome"),
    [
        ("fx_graph_cache_hit", "fx_graph", "hit"),
        ("fx_graph_cache_miss", "fx_graph", "miss"),
        ("fx_graph_cache_bypass", "fx_graph", "bypass"),
        ("fx_graph_cache_disabled", "fx_graph", "disabled"),
        ("autograd_cache_hit", "aot_autograd", "hit"),
        ("autograd_cache_miss", "aot_autograd", "miss"),
        ("autograd_cache_bypass", "aot_autograd", "bypass"),
        ("aotautograd_cache_hit", "aot_autograd", "hit"),
    ],
)
def test_names_of_the_announcements(name, cache, outcome):
    found = cache_lookup(name, {"compile_id": "0/1", "key": "fabc"}, 7)
    assert (found.cache, found.outcome, found.tier) == (cache, outcome, "local")
    assert (found.compile_id, found.key, found.time_ns) == ("0/1", "fabc", 7)


@pytest.mark.parametrize("name", ["automatic_dynamic", "fx_graph_cache_hits", "my_fx_graph_cache_hit", "triton"])
def test_other_announcements_are_none(name):
    assert cache_lookup(name, {}, 1) is None


def test_seconds_are_told_from_either_unit_and_missing_is_missing():
    assert cache_lookup("fx_graph_cache_hit", {"time_saved_ns": 2_500_000_000}, 1).saved_s == 2.5
    assert cache_lookup("autograd_cache_hit", {"time_saved_ms": 1500}, 1).saved_s == 1.5
    found = cache_lookup("fx_graph_cache_miss", {"time_taken_ns": 500_000_000, "compile_id": "None"}, 1)
    assert (found.taken_s, found.saved_s, found.compile_id, found.key) == (0.5, None, None, None)


def test_a_guard_miss_and_a_bypass_say_so():
    assert cache_lookup("fx_graph_cache_miss", {"cache_status_detailed": "guard_miss"}, 1).outcome == "guard_miss"
    assert cache_lookup("fx_graph_cache_hit", {"cache_status_detailed": "guard_miss"}, 1).outcome == "hit"
    found = cache_lookup("autograd_cache_bypass", {"cache_bypass_reason": "Unsupported call_method"}, 1)
    assert found.reason == "Unsupported call_method"


# Differences


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
